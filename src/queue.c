/* SPDX-License-Identifier: Apache-2.0 */
#include "queue.h"

clattn_status cla_check_queue(const clattn_context *context, cl_command_queue queue, cl_uint wait_count,
                              const cl_event *wait_list, clattn_error *error)
{
    cl_context cl = NULL;
    cl_device_id device = NULL;
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
    return CLATTN_SUCCESS;
}

bool cla_is_in_order(cl_command_queue queue)
{
    cl_command_queue_properties properties = CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;
    return clGetCommandQueueInfo(queue, CL_QUEUE_PROPERTIES, sizeof properties, &properties, NULL) == CL_SUCCESS &&
           !(properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
}

clattn_status cla_enqueue_marker(cl_command_queue queue, cl_uint wait_count, const cl_event *wait_list, cl_event *event,
                                 clattn_error *error)
{
    if (!event)
        return CLATTN_SUCCESS;
    const cl_int code = clEnqueueMarkerWithWaitList(queue, wait_count, wait_count ? wait_list : NULL, event);
    return code == CL_SUCCESS ? CLATTN_SUCCESS : cla_fail_cl(error, code, "clEnqueueMarkerWithWaitList");
}
