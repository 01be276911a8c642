/* SPDX-License-Identifier: Apache-2.0
 * Functions for the caller's queue, wait list and event. */
#ifndef CLATTN_QUEUE_H
#define CLATTN_QUEUE_H

#include "context.h"

/* Checks that the queue is of the context's device, and that the wait list has as many events as it says. Errors:
 * INVALID_ARGUMENT, DEVICE_LOST. */
clattn_status cla_check_queue(clattn_context *context, cl_command_queue queue, cl_uint wait_count, const cl_event *wait_list,
                              clattn_error *error);

/* Whether the queue runs its commands one after another. */
bool cla_is_in_order(cl_command_queue queue);

/* Enqueues a marker, for a call that launches nothing; without an event if `event` is NULL. */
clattn_status cla_enqueue_marker(clattn_context *context, cl_command_queue queue, cl_uint wait_count, const cl_event *wait_list,
                                 cl_event *event, clattn_error *error);

/* The status for an error code of a call that enqueues or waits. It is DEVICE_LOST for CL_INVALID_COMMAND_QUEUE of a queue
 * that was just valid, and for CL_OUT_OF_RESOURCES or CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST if clFlush on the same
 * queue fails with such a code too. Alone, the former may be a lack of memory, and the latter an event that the caller set to
 * failed. A lost device stays lost for its context. */
clattn_status cla_fail_enqueue(clattn_context *context, cl_command_queue queue, cl_int code, const char *call,
                               clattn_error *error);

/* Errors: DEVICE_LOST, after cla_fail_enqueue has returned it. */
clattn_status cla_check_alive(clattn_context *context, clattn_error *error);

#endif
