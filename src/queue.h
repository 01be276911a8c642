/* SPDX-License-Identifier: Apache-2.0
 * The caller's queue, wait list and event. */
#ifndef CLATTN_QUEUE_H
#define CLATTN_QUEUE_H

#include "context.h"

/* A queue of the context's device, and a wait list that is there if it is counted. Errors: INVALID_ARGUMENT, DEVICE_LOST. */
clattn_status cla_check_queue(clattn_context *context, cl_command_queue queue, cl_uint wait_count, const cl_event *wait_list,
                              clattn_error *error);

/* Whether the queue runs its commands one after another. */
bool cla_is_in_order(cl_command_queue queue);

/* The event of a call that launches nothing; none when `event` is NULL. */
clattn_status cla_enqueue_marker(clattn_context *context, cl_command_queue queue, cl_uint wait_count, const cl_event *wait_list,
                                 cl_event *event, clattn_error *error);

/* The status for a code of a call that enqueues or waits. The rule of what means a lost device: CL_INVALID_COMMAND_QUEUE, of a
 * queue that was valid a moment before; CL_OUT_OF_RESOURCES or CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, when clFlush on
 * the same queue fails in such a way too. By itself the former may be a plain lack of memory, the latter an event that the
 * caller made fail. A context whose device was lost stays so. */
clattn_status cla_fail_enqueue(clattn_context *context, cl_command_queue queue, cl_int code, const char *call,
                               clattn_error *error);

/* Errors: DEVICE_LOST, once cla_fail_enqueue has said so. */
clattn_status cla_check_alive(clattn_context *context, clattn_error *error);

#endif
