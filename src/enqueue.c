/* SPDX-License-Identifier: Apache-2.0
 * Turns a checked call into launches on the caller's queue. */
#include "buffer.h"
#include "call.h"
#include "plan.h"
#include "queue.h"

#include <string.h>

/* Sets one buffer argument. One that is absent and was absent before is skipped; others are set every time, since OpenCL may
 * reuse a handle for another buffer. */
static cl_int set_buffer(const clattn_context *context, struct plan_kernel *kernel, cl_uint index, const clattn_buffer *buffer)
{
    const uint32_t bit = (uint32_t)1 << index;
    if (!buffer && (kernel->absent & bit))
        return CL_SUCCESS;
    kernel->absent &= ~bit;
    const cl_int code = cla_set_buffer(context, kernel->cl, index, buffer);
    if (code == CL_SUCCESS && !buffer)
        kernel->absent |= bit;
    return code;
}

static cl_int set_numbers(struct plan_kernel *kernel, cl_uint index, const struct launch_args *args)
{
    /* This compares bytes, not numbers, on purpose. */
    /* NOLINTNEXTLINE(bugprone-suspicious-memory-comparison,cert-exp42-c,cert-flp37-c) */
    if (kernel->has_args && memcmp(&kernel->args, args, sizeof *args) == 0)
        return CL_SUCCESS;
    kernel->args = *args;
    const cl_int code = clSetKernelArg(kernel->cl, index, sizeof *args, args);
    kernel->has_args = code == CL_SUCCESS;
    return code;
}

static clattn_status set_arguments(const clattn_context *context, struct plan_kernel *kernel, const clattn_call *call,
                                   const struct launch_args *args, clattn_error *error)
{
    /* In the order of KERNEL_PARAMETERS in cl/args.cl. Absent buffers are NULL arguments: one signature serves all kernels. */
    const clattn_buffer *const buffers[] = {
        &call->q,
        &call->k,
        &call->v,
        &call->o,
        args->lse_floats ? &call->lse : NULL,
        args->scores_kind ? &call->scores : NULL,
        &call->workspace,
        args->has_mask ? &call->mask : NULL,
        args->bias_type ? &call->bias : NULL,
        args->has_factors ? &call->bias_factors : NULL,
        args->has_slopes ? &call->alibi : NULL,
        args->has_sinks ? &call->sinks : NULL,
        args->q_lengths_type ? &call->q_lengths : NULL,
        args->kv_lengths_type ? &call->kv_lengths : NULL,
        args->starts_type ? &call->q_starts : NULL,
        args->starts_type ? &call->kv_starts : NULL,
        args->offsets_type ? &call->offsets : NULL,
    };
    const cl_uint count = sizeof buffers / sizeof *buffers;
    cl_int code = CL_SUCCESS;
    for (cl_uint i = 0; i < count && code == CL_SUCCESS; i++)
        code = set_buffer(context, kernel, i, buffers[i]);
    if (code == CL_SUCCESS)
        code = set_numbers(kernel, count, args);
    return code == CL_SUCCESS ? CLATTN_SUCCESS : cla_fail_cl(error, code, "clSetKernelArg");
}

/* What the launches of one call have in common. */
struct chain {
    clattn_context *context;
    cl_command_queue queue;
    cl_uint wait_count;
    const cl_event *wait_list;
    bool in_order;   /* the queue itself keeps the order: no event between launches */
    cl_event before; /* the last launch so far; NULL: the caller's wait list */
    bool wants_first;
    cl_event first; /* of the first launch, if requested */
};

/* Enqueues one launch that waits for the previous one, so that an out-of-order queue keeps their order. */
static clattn_status enqueue_one(struct chain *chain, cl_kernel kernel, size_t groups, size_t work_group, bool last,
                                 cl_event *event, clattn_error *error)
{
    const size_t global = groups * work_group;
    const bool is_link = !last && !chain->in_order, is_first = chain->wants_first && !chain->first;
    cl_event after = NULL;
    const cl_int code = clEnqueueNDRangeKernel(
        chain->queue, kernel, 1, NULL, &global, &work_group, chain->before ? 1 : chain->wait_count,
        chain->before ? &chain->before : chain->wait_list, is_link || is_first || (last && event) ? &after : NULL);
    if (chain->before)
        clReleaseEvent(chain->before);
    chain->before = NULL;
    if (code == CL_SUCCESS && is_first && clRetainEvent(after) == CL_SUCCESS)
        chain->first = after;
    if (code == CL_SUCCESS && last && event)
        *event = after;
    else if (code == CL_SUCCESS && is_link)
        chain->before = after;
    else if (after)
        clReleaseEvent(after);
    if (chain->in_order) {
        chain->wait_count = 0;
        chain->wait_list = NULL;
    }
    return code == CL_SUCCESS ? CLATTN_SUCCESS
                              : cla_fail_enqueue(chain->context, chain->queue, code, "clEnqueueNDRangeKernel", error);
}

/* Number of groups in one launch. Some drivers reset a device whose queue runs for seconds, and a desktop on the same device
 * does not respond meanwhile. */
static size_t slice_of(const clattn_plan *plan, const struct launch *launch)
{
    if (plan->max_launch_ms <= 0.0 || launch->scores <= 0.0)
        return launch->groups;
    const double work = launch->scores * (double)(plan->problem.head_dim_qk + plan->problem.head_dim_v);
    const double groups = plan->max_launch_ms * plan->rate / work;
    return groups < 1.0 ? 1 : groups > 1e9 ? 1000000000 : (size_t)groups;
}

/* The launches of one call in order, long ones in slices. With the plan's lock held: the arguments belong to the kernel object.
 */
static clattn_status enqueue_launches(clattn_plan *plan, const struct config *config, struct chain *chain,
                                      const clattn_call *call, bool is_last, cl_event *event, clattn_error *error)
{
    clattn_problem sized = plan->problem;
    struct launch_args args;
    struct launch launches[CLA_MAX_LAUNCHES];
    clattn_status status = CLATTN_SUCCESS;
    sized.batch = call->batch, sized.seq_q = call->seq_q, sized.seq_kv = call->seq_kv;
    cla_launch_args(&sized, config, call, &args);
    if (config->merge_inside || config->engine->numbers_calls)
        args.call_number = cla_call_number(plan->context);
    const size_t count = cla_launch_list(config, &args, launches);
    for (size_t i = 0; i < count && status == CLATTN_SUCCESS; i++) {
        const size_t groups = launches[i].groups, slice = slice_of(plan, &launches[i]);
        for (size_t first = 0; first < groups && status == CLATTN_SUCCESS; first += slice) {
            const size_t some = groups - first < slice ? groups - first : slice;
            args.first_team = (int64_t)(first * (size_t)(config->work_group / config->team));
            status = set_arguments(plan->context, &plan->kernels[i], call, &args, error);
            if (status == CLATTN_SUCCESS)
                status = enqueue_one(chain, plan->kernels[i].cl, some, launches[i].work_group,
                                     is_last && i + 1 == count && first + some == groups, event, error);
        }
    }
    return status;
}

/* Scores that another engine gives come before the plan's own launches: both use the same workspace. */
static clattn_status enqueue_parts(clattn_plan *plan, const struct choice *choice, struct chain *chain, const clattn_call *call,
                                   cl_event *event, clattn_error *error)
{
    if (plan->scores)
        TRY(enqueue_launches(plan->scores, &plan->scores->config, chain, call, false, NULL, error));
    return enqueue_launches(choice->plan, &choice->config, chain, call, true, event, error);
}

/* A call without work enqueues one marker. */
static clattn_status enqueue_nothing(const clattn_plan *plan, struct chain *chain, cl_event *event, clattn_error *error)
{
    cl_event marker = NULL;
    const bool is_wanted = event || chain->wants_first;
    TRY(cla_enqueue_marker(plan->context, chain->queue, chain->wait_count, chain->wait_list, is_wanted ? &marker : NULL,
                           error));
    if (event)
        *event = marker;
    if (chain->wants_first) {
        chain->first = marker;
        if (event)
            clRetainEvent(marker);
    }
    return CLATTN_SUCCESS;
}

clattn_status clattn_enqueue(clattn_plan *plan, cl_command_queue queue, const clattn_call *given, cl_uint wait_count,
                             const cl_event *wait_list, cl_event *event, clattn_error *error)
{
    clattn_call call;
    struct choice choice;
    bool empty = false;
    cla_clear(error);
    if (!plan)
        return cla_fail(error, CLATTN_INVALID_ARGUMENT, "plan", "plan is NULL");
    TRY(cla_check_queue(plan->context, queue, wait_count, wait_list, error));
    if (wait_count == 0)
        wait_list = NULL;
    TRY(cla_call_take(plan, given, &call, &choice, &empty, error));
    cl_mem own = NULL;
    clattn_status status = CLATTN_SUCCESS;
    struct chain chain = {.context = plan->context,
                          .queue = queue,
                          .wait_count = wait_count,
                          .wait_list = wait_list,
                          .in_order = cla_is_in_order(queue),
                          .wants_first = call.first_event != NULL};
    if (empty) {
        TRY(enqueue_nothing(plan, &chain, event, error));
        if (call.first_event)
            *call.first_event = chain.first;
        return CLATTN_SUCCESS;
    }
    cla_lock_take(&plan->lock);
    if (choice.workspace > 0 && call.workspace.kind == CLATTN_BUFFER_NONE) {
        status = cla_scratch_take(&plan->scratch, plan->context->cl, queue, chain.in_order, choice.workspace, &own, error);
        call.workspace = clattn_mem(own, 0);
    }
    if (status == CLATTN_SUCCESS)
        status = enqueue_parts(plan, &choice, &chain, &call, event, error);
    if (chain.before)
        clReleaseEvent(chain.before);
    cla_scratch_give(&plan->scratch, own);
    cla_lock_give(&plan->lock);
    if (status == CLATTN_SUCCESS && call.first_event)
        *call.first_event = chain.first;
    else if (chain.first)
        clReleaseEvent(chain.first);
    return status;
}
