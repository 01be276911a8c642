/* SPDX-License-Identifier: Apache-2.0 */
#include "rate.h"

#include "plan.h"
#include "problem.h"
#include "queue.h"

#include <stdlib.h>

/* One head for each compute unit, with a few tiles each: enough to fill a device, and short. */
enum { TRIAL_QUERIES = 128, TRIAL_KEYS = 256, TRIAL_RUNS = 3, TRIAL_MAX_HEADS = 4096 };

static void make_trial(const clattn_context *context, const clattn_problem *given, int64_t queries, clattn_problem *trial)
{
    const uint64_t units = context->facts.compute_units;
    clattn_problem_init(trial);
    trial->batch = 1;
    trial->heads_q = trial->heads_kv = units > TRIAL_MAX_HEADS ? TRIAL_MAX_HEADS : units > 0 ? (int64_t)units : 1;
    trial->seq_q = queries;
    trial->seq_kv = TRIAL_KEYS;
    trial->head_dim_qk = given->head_dim_qk;
    trial->head_dim_v = given->head_dim_v;
    trial->q.type = given->q.type;
    trial->k.type = given->k.type;
    trial->v.type = given->v.type;
    trial->o.type = given->o.type;
    clattn_problem_set_layout(trial, CLATTN_BHSD);
}

/* Zeros, written by the host: before OpenCL 1.2 no call fills a buffer. */
static cl_mem make_buffer(clattn_context *context, int64_t elements, clattn_type type, cl_int *code)
{
    const size_t bytes = (size_t)elements * cla_type_size(type);
    void *zeros = calloc(bytes, 1);
    cl_mem buffer = NULL;
    *code = CL_OUT_OF_HOST_MEMORY;
    if (zeros)
        buffer = clCreateBuffer(context->cl, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, bytes, zeros, code);
    free(zeros);
    return buffer;
}

static clattn_status time_once(clattn_context *context, clattn_plan *plan, cl_command_queue queue, const clattn_call *call,
                               double *milliseconds, clattn_error *error)
{
    cl_event event = NULL;
    cl_ulong start = 0, end = 0;
    TRY(clattn_enqueue(plan, queue, call, 0, NULL, &event, error));
    const char *call_name = "clWaitForEvents";
    cl_int code = clWaitForEvents(1, &event);
    if (code == CL_SUCCESS) {
        call_name = "clGetEventProfilingInfo";
        code = clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_START, sizeof start, &start, NULL);
    }
    if (code == CL_SUCCESS)
        code = clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof end, &end, NULL);
    clReleaseEvent(event);
    *milliseconds = end > start ? (double)(end - start) * 1e-6 : 0.0;
    return code == CL_SUCCESS ? CLATTN_SUCCESS : cla_fail_enqueue(context, queue, code, call_name, error);
}

/* The shortest of a few runs; the first one includes one-time costs. */
static clattn_status time_plan(clattn_context *context, clattn_plan *plan, const clattn_call *call, double *best,
                               clattn_error *error)
{
    cl_int code = CL_SUCCESS;
    cl_command_queue queue = clCreateCommandQueue(context->cl, context->device, CL_QUEUE_PROFILING_ENABLE, &code);
    if (code != CL_SUCCESS)
        return cla_fail_cl(error, code, "clCreateCommandQueue");
    clattn_status status = CLATTN_SUCCESS;
    *best = 0.0;
    for (int i = 0; i < TRIAL_RUNS && status == CLATTN_SUCCESS; i++) {
        double milliseconds = 0.0;
        status = time_once(context, plan, queue, call, &milliseconds, error);
        if (milliseconds > 0.0 && (*best == 0.0 || milliseconds < *best))
            *best = milliseconds;
    }
    clReleaseCommandQueue(queue);
    return status;
}

static clattn_status measure(clattn_context *context, const clattn_problem *problem, const struct engine *engine, double *rate,
                             clattn_error *error)
{
    clattn_problem trial;
    clattn_plan_options options;
    clattn_plan *plan = NULL;
    clattn_call call;
    cl_mem buffers[4] = {NULL};
    double milliseconds = 0.0;
    clattn_plan_options_init(&options);
    options.engine = engine->name;
    options.max_launch_ms = -1.0;
    options.at_bounds = true;
    make_trial(context, problem, TRIAL_QUERIES, &trial);
    clattn_status status = cla_plan_make(context, &trial, &options, NULL, &plan, error);
    if (status == CLATTN_UNSUPPORTED) { /* the engine is for few queries */
        make_trial(context, problem, 1, &trial);
        status = cla_plan_make(context, &trial, &options, NULL, &plan, error);
    }
    if (status != CLATTN_SUCCESS)
        return status;
    clattn_call_init(&call, plan);
    clattn_buffer *const places[] = {&call.q, &call.k, &call.v, &call.o};
    const clattn_tensor *const tensors[] = {&trial.q, &trial.k, &trial.v, &trial.o};
    for (int i = 0; i < 4 && status == CLATTN_SUCCESS; i++) {
        cl_int code;
        buffers[i] = make_buffer(context, tensors[i]->strides.batch, tensors[i]->type, &code);
        *places[i] = clattn_mem(buffers[i], 0);
        if (code != CL_SUCCESS)
            status = cla_fail_cl(error, code, "clCreateBuffer");
    }
    if (status == CLATTN_SUCCESS)
        status = time_plan(context, plan, &call, &milliseconds, error);
    const double work =
        (double)trial.heads_q * (double)trial.seq_q * TRIAL_KEYS * (double)(trial.head_dim_qk + trial.head_dim_v);
    /* The clock is too coarse: assume a whole millisecond, which makes slices smaller than needed. */
    *rate = work / (milliseconds > 0.0 ? milliseconds : 1.0);
    for (int i = 0; i < 4; i++)
        if (buffers[i])
            clReleaseMemObject(buffers[i]);
    clattn_plan_destroy(plan);
    return status;
}

static double *find_rate(clattn_context *context, const struct engine *engine)
{
    size_t i = 0;
    while (cla_engines[i] != engine)
        i++;
    return &context->rates[i];
}

clattn_status cla_find_rate(clattn_context *context, const clattn_problem *problem, const struct engine *engine, double *rate,
                            clattn_error *error)
{
    double *known = find_rate(context, engine);
    cla_lock_take(&context->lock);
    *rate = *known;
    cla_lock_give(&context->lock);
    if (*rate > 0.0)
        return CLATTN_SUCCESS;
    TRY(measure(context, problem, engine, rate, error));
    cla_lock_take(&context->lock);
    *known = *rate;
    cla_lock_give(&context->lock);
    return CLATTN_SUCCESS;
}
