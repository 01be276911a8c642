/* SPDX-License-Identifier: Apache-2.0
 * Creates plans: builds them, self-checks engines that go past the standard, measures the rate for slicing. Above plan.c and
 * enqueue.c, since checking and measuring run plans. */
#include "plan.h"
#include "plan_options.h"
#include "queue.h"
#include "rate.h"
#include "selfcheck.h"

/* Plain loops on a GPU are so slow that a driver's watchdog could stop them. */
#define REFERENCE_MAX_LAUNCH_MS 500.0

/* Prepares one engine. */
static clattn_status prepare_engine(clattn_plan *plan, double asked, clattn_error *error)
{
    const bool is_slow = plan->config.engine == &cla_engine_reference && plan->context->facts.device_kind == DEVICE_GPU;
    plan->max_launch_ms = asked > 0.0 ? asked : asked == 0.0 && is_slow ? REFERENCE_MAX_LAUNCH_MS : 0.0;
    if (plan->max_launch_ms == 0.0)
        return CLATTN_SUCCESS;
    return cla_find_rate(plan->context, &plan->problem, plan->config.engine, &plan->rate, error);
}

static clattn_status prepare_slices(clattn_plan *plan, double asked, clattn_error *error)
{
    TRY(prepare_engine(plan, asked, error));
    if (plan->scores)
        TRY(prepare_engine(plan->scores, asked, error));
    if (plan->max_launch_ms > 0.0)
        cla_text_add(&plan->description, "launches: cut into slices of about %.0f ms\n", plan->max_launch_ms);
    for (size_t i = 0; i < plan->variant_count; i++)
        TRY(prepare_engine(plan->variants[i], asked, error));
    return CLATTN_SUCCESS;
}

clattn_status clattn_plan_create(clattn_context *context, const clattn_problem *problem, const clattn_plan_options *given,
                                 clattn_plan **out, clattn_error *error)
{
    clattn_plan_options options;
    cla_clear(error);
    if (out)
        *out = NULL;
    if (!context || !out)
        return cla_fail(error, CLATTN_INVALID_ARGUMENT, context ? "plan" : "context", "%s is NULL",
                        context ? "plan" : "context");
    TRY(cla_check_alive(context, error));
    TRY(cla_plan_options_take(given, context->ignores_environment, &options, error));
    TRY(cla_plan_options_blame(cla_plan_make(context, problem, &options, cla_selfcheck, out, error),
                               context->ignores_environment, error));
    const clattn_status status = prepare_slices(*out, options.max_launch_ms, error);
    if (status != CLATTN_SUCCESS) {
        clattn_plan_destroy(*out);
        *out = NULL;
        return status;
    }
    cla_log(&context->logger, CLATTN_LOG_INFO, (*out)->description.data ? (*out)->description.data : "");
    return CLATTN_SUCCESS;
}

clattn_status clattn_attention(clattn_context *context, cl_command_queue queue, const clattn_problem *problem, cl_mem q,
                               cl_mem k, cl_mem v, cl_mem o, cl_mem lse, cl_uint wait_count, const cl_event *wait_list,
                               cl_event *event, clattn_error *error)
{
    clattn_plan *plan = NULL;
    clattn_plan_options options;
    clattn_call call;
    clattn_plan_options_init(&options);
    options.at_bounds = true;
    TRY(clattn_plan_create(context, problem, &options, &plan, error));
    clattn_call_init(&call, plan);
    call.q = clattn_mem(q, 0);
    call.k = clattn_mem(k, 0);
    call.v = clattn_mem(v, 0);
    call.o = clattn_mem(o, 0);
    if (lse)
        call.lse = clattn_mem(lse, 0);
    const clattn_status status = clattn_enqueue(plan, queue, &call, wait_count, wait_list, event, error);
    clattn_plan_destroy(plan);
    return status;
}
