/* SPDX-License-Identifier: Apache-2.0
 * clattn_supported is right for random problems, every engine, and small and large devices: a supported problem runs with right
 * results; any other is refused with UNSUPPORTED and a reason, and outputs are unchanged. */
#define _POSIX_C_SOURCE 200809L
#include "attend.h"
#include "buffers.h"

#include "random_shape.h"

enum { PROBLEMS = 24, EMULATED_PROBLEMS = 4 };

/* Facts of devices; "": this one. */
static const char *const devices[] = {"", "max_work_group=1,local_mem=1K", "local_mem=8K,max_work_group=32"};

static void expect_refusal(const struct bench *on, const char *engine, const struct trial *trial, const char *text)
{
    clattn_plan_options options;
    clattn_error error;
    clattn_plan *plan = (clattn_plan *)(uintptr_t)1;
    clattn_error_init(&error);
    trial_plan_options(trial, engine, &options);
    if (clattn_plan_create(on->context, &trial->problem, &options, &plan, &error) != CLATTN_UNSUPPORTED) {
        fail_msg("%s, \"%s\": not supported, but the plan gives %s", engine, text, error.message);
    }
    assert_null(plan);
    assert_contains(error.message, engine);
}

/* Counts what was refused. */
static size_t check_engine(const struct bench *on, const char *engine, const struct trial *trial, const char *text)
{
    clattn_plan_options options;
    clattn_error error;
    struct trial_result result;
    clattn_error_init(&error);
    trial_plan_options(trial, engine, &options);
    const clattn_status status = clattn_supported(on->context, &trial->problem, &options, &error);
    if (status == CLATTN_UNSUPPORTED) {
        expect_refusal(on, engine, trial, text);
        return 1;
    }
    if (status != CLATTN_SUCCESS) {
        fail_msg("%s, \"%s\": %s", engine, text, error.message);
    }
    trial_run_engine(on->context, on->queue, engine, trial, &result);
    if (!result.ok) {
        fail_msg("%s, \"%s\": supported, but: %s", engine, text, result.message);
    }
    return 0;
}

static void supported_means_right(void **state)
{
    (void)state;
    uint64_t random = 20;
    size_t refused = 0;
    for (size_t d = 0; d < COUNT_OF(devices); d++) {
        struct bench on = bench;
        if (devices[d][0]) {
            bench_context_open(&on, devices[d]);
        }
        for (int i = 0; i < (d == 0 ? PROBLEMS : EMULATED_PROBLEMS); i++) {
            char text[512];
            struct trial trial;
            clattn_error error;
            clattn_error_init(&error);
            random_shape(&random, false, text, sizeof text);
            assert_ok(trial_parse(text, &trial, &error), &error);
            FOR_EACH_ENGINE(engine)
            {
                const size_t refusals = check_engine(&on, engine, &trial, text);
                refused += cla_engines[engine_row]->vendor ? 0 : refusals;
            }
            /* Without a named engine, some engine serves every problem. */
            assert_ok(clattn_supported(on.context, &trial.problem, NULL, &error), &error);
        }
        if (devices[d][0]) {
            bench_context_close(&on);
        }
    }
    assert_true(refused > 0); /* or the other half of this test did nothing */
}

/* The one-call form is given its outputs even when it is refused. */
static void refusal_leaves_outputs_untouched(void **state)
{
    (void)state;
    struct bench small;
    struct buffers buffers;
    clattn_problem p;
    clattn_error error;
    clattn_error_init(&error);
    assert_ok(clattn_problem_parse("hq2 q5 k9 d64 lse", &p, &error), &error);
    bench_context_open(&small, "max_work_group=1,local_mem=1K");
    buffers_create(&buffers, clattn_context_cl(small.context), &p, 0);
    setenv("CLATTN_ENGINE", "simt", 1);
    const clattn_status status = clattn_attention(small.context, small.queue, &p, buffers.q, buffers.k, buffers.v, buffers.o,
                                                  buffers.lse, 0, NULL, NULL, &error);
    unsetenv("CLATTN_ENGINE");
    assert_int_equal(status, CLATTN_UNSUPPORTED);
    assert_contains(error.message, "simt");
    assert_true(buffers_untouched(&buffers, small.queue));
    buffers_destroy(&buffers);
    bench_context_close(&small);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(supported_means_right),
        cmocka_unit_test(refusal_leaves_outputs_untouched),
    };
    return cmocka_run_group_tests(tests, bench_open, bench_close);
}
