/* SPDX-License-Identifier: Apache-2.0 */
#include "selfcheck.h"

#include "problem.h"
#include "selfcheck_witness.h"
#include "workspace.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Checks vendor engines; with CLATTN_SELFCHECK=all every engine except `reference`, with "off" none. */
static bool is_wanted(const clattn_context *context, const struct engine *engine)
{
    const bool ignored = context->ignores_environment;
    if (engine == &cla_engine_reference || cla_variable_is(ignored, VARIABLE_SELFCHECK, "off"))
        return false;
    return engine->vendor || cla_variable_is(ignored, VARIABLE_SELFCHECK, "all");
}

static clattn_status no_memory(clattn_error *error)
{
    return cla_fail(error, CLATTN_OUT_OF_HOST_MEMORY, "", "out of host memory while checking an engine");
}

/* A copy of the plan for another problem with the same kernel source, which borrows the plan's kernels. give_back ends it. */
static clattn_status borrow(const clattn_plan *plan, const clattn_problem *problem, clattn_plan *copy, clattn_error *error)
{
    *copy = *plan;
    copy->problem = *problem;
    copy->workspace = cla_workspace_bytes(problem, &plan->config);
    copy->max_launch_ms = 0.0;
    copy->scratch = (struct scratch){0};
    if (!cla_lock_init(&copy->lock))
        return no_memory(error);
    return CLATTN_SUCCESS;
}

static void give_back(clattn_plan *copy)
{
    cla_scratch_release(&copy->scratch);
    cla_lock_destroy(&copy->lock);
}

/* Enqueues and waits. A failure is the engine's, not the caller's: it is reported in `why`. */
static bool run(clattn_plan *plan, cl_command_queue queue, struct check_data *data, float *o, float *lse, char *why,
                size_t why_size)
{
    clattn_error error;
    clattn_call call;
    clattn_error_init(&error);
    clattn_call_init(&call, plan);
    if (!cla_check_data_bind(data, queue, &call))
        return cla_decline(why, why_size, "self-check: buffers cannot be made");
    if (clattn_enqueue(plan, queue, &call, 0, NULL, NULL, &error) != CLATTN_SUCCESS)
        return cla_decline(why, why_size, "self-check: %.120s", error.message);
    if (!cla_check_data_read(data, queue, o, lse))
        return cla_decline(why, why_size, "self-check: the device failed");
    return true;
}

/* Largest difference; infinity if one is NaN or infinite, unless both are the same. */
static double difference(const float *a, const float *b, size_t count)
{
    double largest = 0.0;
    for (size_t i = 0; i < count; i++) {
        const double d = a[i] == b[i] ? 0.0 : fabs((double)a[i] - (double)b[i]);
        if (!(d <= largest))
            largest = isnan(d) ? INFINITY : d;
    }
    return largest;
}

static clattn_status compare(clattn_plan *plan, cl_command_queue queue, struct check_data *data, bool *right, char *why,
                             size_t why_size, clattn_error *error)
{
    float *values = calloc(2 * (data->o_count + data->lse_count), sizeof *values);
    if (!values)
        return no_memory(error);
    float *const o = values, *const o2 = o + data->o_count, *const lse = o2 + data->o_count,
                 *const lse2 = lse + data->lse_count;
    clattn_status status = CLATTN_SUCCESS;
    *right = run(plan, queue, data, o, lse, why, why_size);
    if (*right && !cla_check_witness(data, o2, lse2)) {
        status = no_memory(error);
    } else if (*right) {
        const double d = difference(o, o2, data->o_count), e = difference(lse, lse2, data->lse_count);
        if (d > cla_check_tolerance(&plan->problem) || e > 1e-3)
            *right = cla_decline(why, why_size, "self-check: output is off by %.1e, LSE by %.1e", d, e);
    }
    free(values);
    return status;
}

static clattn_status check_case(clattn_plan *plan, int number, cl_command_queue queue, bool *right, char *why, size_t why_size,
                                clattn_error *error)
{
    clattn_problem given, problem;
    clattn_plan copy;
    struct check_data data;
    cla_check_problem(&plan->problem, &plan->config, number, &given);
    TRY(cla_problem_take(&given, &problem, error));
    TRY(borrow(plan, &problem, &copy, error));
    const clattn_status status = cla_check_data_make(plan->context->cl, &problem, &data)
                                     ? compare(&copy, queue, &data, right, why, why_size, error)
                                     : no_memory(error);
    cla_check_data_free(&data);
    give_back(&copy);
    return status;
}

static clattn_status check_all(clattn_plan *plan, bool *right, char *why, size_t why_size, clattn_error *error)
{
    cl_int code = CL_SUCCESS;
    cl_command_queue queue = clCreateCommandQueue(plan->context->cl, plan->context->device, 0, &code);
    if (code != CL_SUCCESS)
        return cla_fail_cl(error, code, "clCreateCommandQueue");
    clattn_status status = CLATTN_SUCCESS;
    *right = true;
    for (int i = 0; i < CLA_CHECK_CASES && *right && status == CLATTN_SUCCESS; i++)
        status = check_case(plan, i, queue, right, why, why_size, error);
    clReleaseCommandQueue(queue);
    return status;
}

static bool recall(clattn_context *context, cl_program program, char *why, size_t why_size)
{
    cla_lock_take(&context->lock);
    const bool found = cla_verdict_find(context->verdicts, program, why, why_size);
    cla_lock_give(&context->lock);
    return found;
}

static void remember(clattn_context *context, cl_program program, const char *why)
{
    cla_lock_take(&context->lock);
    cla_verdict_add(&context->verdicts, program, why);
    cla_lock_give(&context->lock);
}

clattn_status cla_selfcheck(clattn_plan *plan, cl_program program, bool *right, char *why, size_t why_size, clattn_error *error)
{
    static const char passed[] = "right";
    clattn_context *context = plan->context;
    struct cache_key key;
    struct text stored = {0};
    *right = true;
    if (!is_wanted(plan->context, plan->config.engine))
        return CLATTN_SUCCESS;
    if (recall(context, program, why, why_size)) {
        *right = why[0] == '\0';
        return CLATTN_SUCCESS;
    }
    const char *options = plan->options.data ? plan->options.data : "";
    const bool cached = cla_cache_key_of(&context->cache, "verdict", options, &plan->source.text, &key);
    if (cached && cla_cache_load(&context->cache, &key, &stored) && stored.length == sizeof passed &&
        memcmp(stored.data, passed, sizeof passed) == 0) {
        cla_text_free(&stored);
        remember(context, program, "");
        return CLATTN_SUCCESS;
    }
    cla_text_free(&stored);
    TRY(check_all(plan, right, why, why_size, error));
    remember(context, program, *right ? "" : why);
    /* A failure is not cached: the next process checks again, since the device may have had a temporary problem. */
    if (*right && cached)
        cla_cache_store(&context->cache, &key, passed, sizeof passed);
    return CLATTN_SUCCESS;
}
