/* SPDX-License-Identifier: Apache-2.0 */
#include "buffers.h"

static cl_mem filled(cl_context cl, size_t count, float value)
{
    cl_int code;
    float *data = malloc(count * sizeof *data);
    assert_non_null(data);
    for (size_t i = 0; i < count; i++) {
        data[i] = isnan(value) ? value : value + 0.001f * (float)(i % 7) * (float)(value == 0.0f);
    }
    cl_mem mem = clCreateBuffer(cl, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, count * sizeof *data, data, &code);
    assert_int_equal(code, CL_SUCCESS);
    free(data);
    return mem;
}

void buffers_create(struct buffers *b, cl_context cl, const clattn_problem *p, size_t slack)
{
    const size_t rows = (size_t)(p->batch * p->heads_q * p->seq_q), keys = (size_t)(p->batch * p->heads_kv * p->seq_kv);
    b->o_count = rows * (size_t)p->head_dim_v + slack;
    b->q = filled(cl, rows * (size_t)p->head_dim_qk + slack + 1, 0.0f);
    b->k = filled(cl, keys * (size_t)p->head_dim_qk + slack + 1, 0.0f);
    b->v = filled(cl, keys * (size_t)p->head_dim_v + slack + 1, 1.0f);
    b->o = filled(cl, b->o_count + 1, NAN);
    b->lse = filled(cl, rows + slack + 1, NAN);
}

void buffers_destroy(struct buffers *b)
{
    clReleaseMemObject(b->q);
    clReleaseMemObject(b->k);
    clReleaseMemObject(b->v);
    clReleaseMemObject(b->o);
    clReleaseMemObject(b->lse);
}

clattn_call buffers_call(const struct buffers *b, const clattn_plan *plan)
{
    clattn_call call;
    clattn_call_init(&call, plan);
    call.q = clattn_mem(b->q, 0);
    call.k = clattn_mem(b->k, 0);
    call.v = clattn_mem(b->v, 0);
    call.o = clattn_mem(b->o, 0);
    call.lse = clattn_mem(b->lse, 0);
    return call;
}

void buffers_poison(const struct buffers *b, cl_command_queue queue)
{
    float *data = malloc(b->o_count * sizeof *data);
    assert_non_null(data);
    for (size_t i = 0; i < b->o_count; i++) {
        data[i] = NAN;
    }
    assert_int_equal(clEnqueueWriteBuffer(queue, b->o, CL_TRUE, 0, b->o_count * sizeof *data, data, 0, NULL, NULL), CL_SUCCESS);
    free(data);
}

float *buffers_read(const struct buffers *b, cl_command_queue queue)
{
    float *data = malloc(b->o_count * sizeof *data);
    assert_non_null(data);
    assert_int_equal(clFinish(queue), CL_SUCCESS);
    assert_int_equal(clEnqueueReadBuffer(queue, b->o, CL_TRUE, 0, b->o_count * sizeof *data, data, 0, NULL, NULL), CL_SUCCESS);
    return data;
}

bool buffers_all_one(const struct buffers *b, cl_command_queue queue)
{
    float *data = buffers_read(b, queue);
    bool one = true;
    for (size_t i = 0; i < b->o_count; i++) {
        one = one && fabsf(data[i] - 1.0f) < 1e-5f;
    }
    free(data);
    return one;
}

bool buffers_untouched(const struct buffers *b, cl_command_queue queue)
{
    float *data = buffers_read(b, queue);
    bool untouched = true;
    for (size_t i = 0; i < b->o_count; i++) {
        untouched = untouched && isnan(data[i]);
    }
    free(data);
    return untouched;
}

clattn_plan *plan_of(clattn_context *context, const char *shape, const char *engine)
{
    clattn_problem problem;
    clattn_plan_options options;
    clattn_error error;
    clattn_plan *plan = NULL;
    clattn_error_init(&error);
    clattn_plan_options_init(&options);
    options.at_bounds = true;
    options.engine = engine;
    assert_ok(clattn_problem_parse(shape, &problem, &error), &error);
    assert_ok(clattn_plan_create(context, &problem, &options, &plan, &error), &error);
    return plan;
}
