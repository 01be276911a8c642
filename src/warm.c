/* SPDX-License-Identifier: Apache-2.0 */
#include "warm.h"

#include "arithmetic.h"
#include "problem.h"

#include <stdlib.h>

/* More than a call of one query and one key takes, unless it has a huge number of heads or of packed rows. */
#define MOST_BYTES ((size_t)64 << 20)

/* The smallest strides that these kernels accept; elements of inputs may overlap. */
static clattn_strides small_strides(const clattn_strides *planned, int64_t dim)
{
    const int64_t column = planned->column == 1 ? 1 : 8, step = column * cla_round_up(dim, 8);
    const clattn_strides small = {planned->batch == 1 ? 1 : step, planned->head == 1 ? 1 : step, planned->row == 1 ? 1 : step,
                                  column};
    return small;
}

static clattn_strides shared_or_one(const clattn_strides *planned)
{
    const clattn_strides s = {planned->batch != 0, planned->head != 0, planned->row != 0, planned->column != 0};
    return s;
}

/* A call of one query and one key. */
static clattn_call small_call(const clattn_plan *plan)
{
    const clattn_problem *p = &plan->problem;
    clattn_call call;
    clattn_call_init(&call, plan);
    call.batch = 1;
    call.seq_q = 1;
    call.seq_kv = p->seq_kv > 0;
    call.q_strides = small_strides(&p->q.strides, p->head_dim_qk);
    call.k_strides = small_strides(&p->k.strides, p->head_dim_qk);
    call.v_strides = small_strides(&p->v.strides, p->head_dim_v);
    call.o_strides = small_strides(&p->o.strides, p->head_dim_v);
    call.lse_strides = (clattn_strides){1, 1, 1, 1};
    call.mask_strides = shared_or_one(&p->mask.strides);
    call.bias_strides = shared_or_one(&p->bias.strides);
    return call;
}

/* Bytes that suffice for any of its tensors, with elements of up to 8 bytes. */
static size_t bytes_of(const clattn_problem *p)
{
    const int64_t dim = cla_round_up(p->head_dim_qk > p->head_dim_v ? p->head_dim_qk : p->head_dim_v, 8);
    const int64_t rows = p->packed.total_q > p->packed.total_kv ? p->packed.total_q : p->packed.total_kv;
    const size_t tensor = cla_bytes_times(cla_bytes_times(64, dim), p->heads_q + rows + 4);
    const size_t slopes = cla_bytes_times(cla_bytes_times(8, p->heads_q + 1), llabs(p->alibi.strides.head) + 1);
    const size_t scores = p->scores.kind == CLATTN_SCORES_NONE
                              ? 0
                              : cla_bytes_times(cla_bytes_times(8, p->heads_q + 1), llabs(p->scores.strides.head) + 1);
    return cla_bytes_plus(tensor, cla_bytes_plus(slopes, scores));
}

static clattn_status run(clattn_plan *plan, cl_command_queue queue, const cl_mem mems[4], clattn_error *error)
{
    clattn_call call = small_call(plan);
    clattn_buffer *const inputs[] = {
        &call.q,     &call.k,         &call.v,          &call.mask,    &call.bias,     &call.bias_factors, &call.alibi,
        &call.sinks, &call.q_lengths, &call.kv_lengths, &call.offsets, &call.q_starts, &call.kv_starts};
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++)
        *inputs[i] = clattn_mem(mems[0], 0);
    call.o = clattn_mem(mems[1], 0);
    call.lse = clattn_mem(mems[2], 0);
    call.scores = clattn_mem(mems[3], 0);
    const bool decides = plan->decides;
    plan->decides = false; /* uses its own kernels for every size */
    const clattn_status status = clattn_enqueue(plan, queue, &call, 0, NULL, NULL, error);
    plan->decides = decides;
    return status;
}

static clattn_status run_all(clattn_plan *plan, cl_command_queue queue, size_t bytes, clattn_error *error)
{
    cl_mem mems[4] = {NULL};
    void *zeros = calloc(bytes, 1);
    clattn_status status = CLATTN_SUCCESS;
    cl_int code = zeros ? CL_SUCCESS : CL_OUT_OF_HOST_MEMORY;
    for (int i = 0; i < 4 && code == CL_SUCCESS; i++)
        mems[i] = clCreateBuffer(plan->context->cl, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, bytes, zeros, &code);
    if (code != CL_SUCCESS)
        status = cla_fail_cl(error, code, "clCreateBuffer");
    for (size_t i = 0; i <= plan->variant_count && status == CLATTN_SUCCESS; i++)
        status = run(i ? plan->variants[i - 1] : plan, queue, mems, error);
    if (status == CLATTN_SUCCESS && (code = clFinish(queue)) != CL_SUCCESS)
        status = cla_fail_cl(error, code, "clFinish");
    for (int i = 0; i < 4; i++)
        if (mems[i])
            clReleaseMemObject(mems[i]);
    free(zeros);
    return status;
}

clattn_status cla_plan_rehearse(clattn_plan *plan, clattn_error *error)
{
    const clattn_problem *p = &plan->problem;
    const size_t bytes = bytes_of(p);
    cl_int code = CL_SUCCESS;
    if (bytes > MOST_BYTES || cla_problem_is_empty(p->batch, p->heads_q, p->seq_q))
        return CLATTN_SUCCESS;
    cl_command_queue queue = clCreateCommandQueue(plan->context->cl, plan->context->device, 0, &code);
    if (code != CL_SUCCESS)
        return cla_fail_cl(error, code, "clCreateCommandQueue");
    const clattn_status status = run_all(plan, queue, bytes, error);
    clReleaseCommandQueue(queue);
    return status;
}

clattn_status clattn_warm_up(clattn_context *context, const clattn_problem *const *problems, size_t count,
                             const clattn_plan_options *options, clattn_progress_fn progress, void *user, clattn_error *error)
{
    cla_clear(error);
    if (!context || (count > 0 && !problems))
        return cla_fail(error, CLATTN_INVALID_ARGUMENT, context ? "problems" : "context", "%s is NULL",
                        context ? "problems" : "context");
    for (size_t i = 0; i < count; i++) {
        clattn_plan *plan = NULL;
        if (progress && !progress(user, i, count))
            return CLATTN_SUCCESS;
        clattn_status status = clattn_plan_create(context, problems[i], options, &plan, error);
        /* Other drivers compile when a program is built. */
        if (status == CLATTN_SUCCESS && cla_facts_is_pocl(&context->facts))
            status = cla_plan_rehearse(plan, error);
        clattn_plan_destroy(plan);
        if (status != CLATTN_SUCCESS)
            return status;
    }
    if (progress)
        progress(user, count, count);
    return CLATTN_SUCCESS;
}
