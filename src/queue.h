/* SPDX-License-Identifier: Apache-2.0
 * The caller's queue, wait list and event. */
#ifndef CLATTN_QUEUE_H
#define CLATTN_QUEUE_H

#include "context.h"

/* A queue of the context's device, and a wait list that is there if it is counted. Errors: INVALID_ARGUMENT. */
clattn_status cla_check_queue(const clattn_context *context, cl_command_queue queue, cl_uint wait_count,
                              const cl_event *wait_list, clattn_error *error);

/* Whether the queue runs its commands one after another. */
bool cla_is_in_order(cl_command_queue queue);

/* The event of a call that launches nothing; none when `event` is NULL. */
clattn_status cla_enqueue_marker(cl_command_queue queue, cl_uint wait_count, const cl_event *wait_list, cl_event *event,
                                 clattn_error *error);

#endif
