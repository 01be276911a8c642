/* SPDX-License-Identifier: Apache-2.0 */
#include "queue.h"

/* Codes by which drivers report, at the next call, that the device failed during earlier work. */
static bool may_be_loss(cl_int code)
{
    return code == CL_INVALID_COMMAND_QUEUE || code == CL_OUT_OF_RESOURCES ||
           code == CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
}

clattn_status cla_fail_enqueue(clattn_context *context, cl_command_queue queue, cl_int code, const char *call,
                               clattn_error *error)
{
    const bool lost = code == CL_INVALID_COMMAND_QUEUE || (may_be_loss(code) && may_be_loss(clFlush(queue)));
    if (!lost)
        return cla_fail_cl(error, code, call);
    cla_lock_take(&context->lock);
    context->lost = true;
    cla_lock_give(&context->lock);
    cla_fail(
        error, CLATTN_DEVICE_LOST, "",
        "%s: %s (%d): the device failed while it ran earlier work; make a new OpenCL context, and a new clattn context of it",
        call, cla_cl_name(code), (int)code);
    cla_set_cl_code(error, code);
    return CLATTN_DEVICE_LOST;
}

clattn_status cla_check_alive(clattn_context *context, clattn_error *error)
{
    cla_lock_take(&context->lock);
    const bool lost = context->lost;
    cla_lock_give(&context->lock);
    if (lost)
        return cla_fail(error, CLATTN_DEVICE_LOST, "",
                        "the device of this context failed earlier; make a new OpenCL context, and a new clattn context of it");
    return CLATTN_SUCCESS;
}

clattn_status cla_check_queue(clattn_context *context, cl_command_queue queue, cl_uint wait_count, const cl_event *wait_list,
                              clattn_error *error)
{
    cl_context cl = NULL;
    cl_device_id device = NULL;
    TRY(cla_check_alive(context, error));
    if (!queue)
        return cla_fail(error, CLATTN_INVALID_ARGUMENT, "queue", "queue is NULL");
    cl_int code = clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof cl, &cl, NULL);
    if (code == CL_SUCCESS)
        code = clGetCommandQueueInfo(queue, CL_QUEUE_DEVICE, sizeof device, &device, NULL);
    if (code != CL_SUCCESS)
        return cla_fail(error, CLATTN_INVALID_ARGUMENT, "queue", "queue is no OpenCL command queue (clGetCommandQueueInfo: %s)",
                        cla_cl_name(code));
    if (cl != context->cl || device != context->device)
        return cla_fail(error, CLATTN_INVALID_ARGUMENT, "queue", "queue belongs to another OpenCL %s than the plan",
                        cl != context->cl ? "context" : "device");
    if (wait_count > 0 && !wait_list)
        return cla_fail(error, CLATTN_INVALID_ARGUMENT, "wait_list", "wait_list is NULL while wait_count is %u",
                        (unsigned)wait_count);
    for (cl_uint i = 0; i < wait_count; i++) /* some drivers crash on it */
        if (!wait_list[i])
            return cla_fail(error, CLATTN_INVALID_ARGUMENT, "wait_list", "event %u of wait_list is NULL", (unsigned)i);
    return CLATTN_SUCCESS;
}

bool cla_is_in_order(cl_command_queue queue)
{
    cl_command_queue_properties properties = CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;
    return clGetCommandQueueInfo(queue, CL_QUEUE_PROPERTIES, sizeof properties, &properties, NULL) == CL_SUCCESS &&
           !(properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
}

clattn_status cla_enqueue_marker(clattn_context *context, cl_command_queue queue, cl_uint wait_count, const cl_event *wait_list,
                                 cl_event *event, clattn_error *error)
{
    if (!event)
        return CLATTN_SUCCESS;
    const cl_int code = clEnqueueMarkerWithWaitList(queue, wait_count, wait_count ? wait_list : NULL, event);
    return code == CL_SUCCESS ? CLATTN_SUCCESS : cla_fail_enqueue(context, queue, code, "clEnqueueMarkerWithWaitList", error);
}
