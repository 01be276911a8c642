/* SPDX-License-Identifier: Apache-2.0
 * The attention matrix (tools/verify/matrix.h) on every engine: the seeded quick sample of each group. `clattn check --full`
 * runs all of it. */
/* ctest: timeout=1800 */
#include "attend.h"

#include "matrix.h"

enum { MAX_SHOWN = 10 };

struct run {
    const char *engine;
    struct bench other; /* with the device facts of the trial before, when these were changed */
    char override[96];
    size_t ran, declined, failed;
};

/* The context for a trial's device facts; one that was made for others is closed. */
static const struct bench *bench_for(struct run *run, const struct trial *trial)
{
    if (trial->override[0] == '\0') {
        return &bench;
    }
    if (strcmp(run->override, trial->override) != 0) {
        if (run->override[0] != '\0') {
            bench_context_close(&run->other);
        }
        snprintf(run->override, sizeof run->override, "%s", trial->override);
        bench_context_open(&run->other, trial->override);
    }
    return &run->other;
}

static bool visit(void *user, const struct matrix_group *group, const char *text)
{
    struct run *run = user;
    struct trial trial;
    struct trial_result result;
    clattn_error error;
    clattn_error_init(&error);
    assert_ok(trial_parse(text, &trial, &error), &error);
    const struct bench *on = bench_for(run, &trial);
    trial_run_engine(on->context, on->queue, run->engine, &trial, &result);
    run->declined += result.status == CLATTN_UNSUPPORTED;
    run->ran += result.status != CLATTN_UNSUPPORTED;
    if (!result.ok && result.status != CLATTN_UNSUPPORTED) {
        run->failed++;
        print_error("%s, %s: \"%s\": %s\n", run->engine, group->name, text, result.message);
    }
    return run->failed < MAX_SHOWN;
}

static void every_group_is_right_on_every_engine(void **state)
{
    (void)state;
    size_t failed = 0;
    FOR_EACH_ENGINE(engine)
    {
        struct run run = {.engine = engine};
        for (size_t i = 0; i < matrix_group_count; i++) {
            matrix_walk(&matrix_groups[i], false, 1, visit, &run);
        }
        if (run.override[0] != '\0') {
            bench_context_close(&run.other);
        }
        print_message("%s: %zu trials, %zu declined, %zu failed\n", engine, run.ran, run.declined, run.failed);
        failed += run.failed;
        /* The engine that serves everything is asked everything but the weights. */
        if (strcmp(engine, "reference") == 0) {
            assert_true(run.ran >= 200);
        }
    }
    assert_int_equal(failed, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_group_is_right_on_every_engine),
    };
    return cmocka_run_group_tests(tests, bench_open, bench_close);
}
