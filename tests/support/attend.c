/* SPDX-License-Identifier: Apache-2.0 */
#include "attend.h"

struct bench bench;

void bench_context_open(struct bench *other, const char *overrides)
{
    clattn_error error;
    clattn_context_options options;
    cl_int code = CL_SUCCESS;
    clattn_error_init(&error);
    clattn_context_options_init(&options);
    options.overrides = overrides;
    options.cache_off = true; /* what tests build is of no use to anyone */
    assert_ok(clattn_context_create(NULL, NULL, &options, &other->context, &error), &error);
    other->queue = clCreateCommandQueue(clattn_context_cl(other->context), clattn_context_device(other->context), 0, &code);
    assert_int_equal(code, CL_SUCCESS);
}

void bench_context_close(struct bench *other)
{
    clReleaseCommandQueue(other->queue);
    clattn_context_destroy(other->context);
}

int bench_open(void **state)
{
    (void)state;
    bench_context_open(&bench, NULL);
    return 0;
}

int bench_close(void **state)
{
    (void)state;
    bench_context_close(&bench);
    return 0;
}

cl_command_queue bench_queue_with(cl_command_queue_properties properties)
{
    cl_int code = CL_SUCCESS;
    cl_command_queue queue =
        clCreateCommandQueue(clattn_context_cl(bench.context), clattn_context_device(bench.context), properties, &code);
    return code == CL_SUCCESS ? queue : NULL;
}

static void parse(struct trial *trial, const char *text)
{
    clattn_error error;
    clattn_error_init(&error);
    assert_ok(trial_parse(text, trial, &error), &error);
}

static void need_no_failure(const struct trial_result *result, const char *engine, const char *text)
{
    if (!result->ok) {
        fail_msg("%s, \"%s\": %s", engine, text, result->message);
    }
}

bool engine_serves(const char *engine, const char *text)
{
    clattn_problem problem;
    clattn_plan_options options;
    clattn_error error;
    clattn_error_init(&error);
    assert_ok(clattn_problem_parse(text, &problem, &error), &error);
    clattn_plan_options_init(&options);
    options.at_bounds = true;
    options.engine = engine;
    const clattn_status status = clattn_supported(bench.context, &problem, &options, &error);
    if (status != CLATTN_UNSUPPORTED) {
        assert_ok(status, &error);
    }
    return status == CLATTN_SUCCESS;
}

bool attend_check(const char *engine, const char *text)
{
    struct trial trial;
    struct trial_result result;
    parse(&trial, text);
    trial_run_engine(bench.context, bench.queue, engine, &trial, &result);
    if (result.status == CLATTN_UNSUPPORTED) {
        return false;
    }
    need_no_failure(&result, engine, text);
    assert_string_equal(result.engine, engine);
    return true;
}

void attend_begin(struct attend *attend, const char *text)
{
    memset(attend, 0, sizeof *attend);
    parse(&attend->trial, text);
    if (attend->trial.shift < 0) {
        attend->trial.shift = 0;
    }
    assert_true(trial_data_create(&attend->data, &attend->trial));
    attend_fill(&attend->data.q, 0.0f);
    attend_fill(&attend->data.k, 0.0f);
    attend_fill(&attend->data.v, 0.0f);
}

void attend_end(struct attend *attend) { trial_data_destroy(&attend->data); }

void attend_fill(const struct trial_tensor *tensor, float x)
{
    for (int64_t b = 0; b < tensor->size[0]; b++) {
        for (int64_t h = 0; h < tensor->size[1]; h++) {
            for (int64_t s = 0; s < tensor->size[2]; s++) {
                for (int64_t d = 0; d < tensor->size[3]; d++) {
                    trial_set(tensor, b, h, s, d, x);
                }
            }
        }
    }
}

bool attend_launch(struct attend *attend, const char *engine)
{
    clattn_error error;
    clattn_plan_options options;
    clattn_plan *plan = NULL;
    clattn_error_init(&error);
    trial_plan_options(&attend->trial, engine, &options);
    const clattn_status status = clattn_plan_create(bench.context, &attend->trial.problem, &options, &plan, &error);
    if (status == CLATTN_UNSUPPORTED) {
        return false;
    }
    assert_ok(status, &error);
    const bool launched = trial_launch(bench.context, bench.queue, plan, &attend->trial, &attend->data, &attend->result);
    clattn_plan_destroy(plan);
    if (!launched) {
        fail_msg("%s: %s", engine, attend->result.message);
    }
    return true;
}

bool attend_run(struct attend *attend, const char *engine)
{
    if (!attend_launch(attend, engine)) {
        return false;
    }
    trial_judge(&attend->trial, &attend->data, &attend->result);
    need_no_failure(&attend->result, engine, "numbers set by hand");
    return true;
}

void assert_near(double got, double want, double tolerance)
{
    if (!(got == want || fabs(got - want) <= tolerance)) {
        fail_msg("got %.9g, wanted %.9g within %.3g", got, want, tolerance);
    }
}
