/* SPDX-License-Identifier: Apache-2.0
 * The self-check of engines that go beyond the standard. Here every engine is checked, and one is made wrong. */
#define _POSIX_C_SOURCE 200809L
#include "attend.h"
#include "files.h"

#include <stdlib.h>

#define SHAPE "b1 hq2 hkv1 q9 k20 d16 dv12 lse"

static char *root;

static int open_all(void **state)
{
    (void)state;
    setenv("CLATTN_SELFCHECK", "all", 1);
    root = sources_copy();
    return root ? 0 : -1;
}

static int close_all(void **state)
{
    (void)state;
    unsetenv("CLATTN_SELFCHECK");
    unsetenv("CLATTN_SOURCE_DIR");
    sources_remove(root);
    return 0;
}

/* A plan for the best of simt and reference. */
static clattn_plan *plan_of(clattn_context *context, const char *shape)
{
    clattn_error error;
    clattn_problem problem;
    clattn_plan_options options;
    clattn_plan *plan = NULL;
    clattn_error_init(&error);
    clattn_plan_options_init(&options);
    options.at_bounds = true;
    options.avoid = "cpu,cpu_amx,cpu_bf16,cpu_decode,nv_mma,nv_wgmma";
    assert_ok(clattn_problem_parse(shape, &problem, &error), &error);
    assert_ok(clattn_plan_create(context, &problem, &options, &plan, &error), &error);
    return plan;
}

static void check_serves(const char *shape, const char *engine)
{
    struct bench own;
    char text[4000];
    bench_context_open(&own, NULL);
    clattn_plan *plan = plan_of(own.context, shape);
    assert_int_equal(clattn_plan_describe(plan, text, sizeof text, NULL), CLATTN_SUCCESS);
    if (strcmp(clattn_plan_engine(plan), engine) != 0) {
        fail_msg("%s serves \"%s\", not %s:\n%s", clattn_plan_engine(plan), shape, engine, text);
    }
    assert_int_equal(strstr(text, "self-check") != NULL, strcmp(engine, "simt") != 0);
    clattn_plan_destroy(plan);
    bench_context_close(&own);
}

static void an_engine_that_passes_serves(void **state)
{
    (void)state;
    check_serves(SHAPE, "simt");
    check_serves(SHAPE " mask", "simt");
    check_serves(SHAPE " bias", "simt");
    check_serves(SHAPE " alibi", "simt");
}

static void the_verdict_is_kept(void **state)
{
    (void)state;
    struct bench own;
    bench_context_open(&own, NULL);
    clattn_plan *first = plan_of(own.context, SHAPE);
    const size_t builds = clattn_context_build_count(own.context);
    clattn_plan *second = plan_of(own.context, SHAPE);
    assert_int_equal(builds, 1);
    assert_int_equal(clattn_context_build_count(own.context), builds);
    clattn_plan_destroy(first);
    clattn_plan_destroy(second);
    bench_context_close(&own);
}

static void is_caught(const char *shape, const char *file, const char *from, const char *to)
{
    setenv("CLATTN_SOURCE_DIR", root, 1);
    assert_true(sources_alter(root, file, from, to));
    check_serves(shape, "reference");
    assert_true(sources_alter(root, file, to, from));
    check_serves(shape, "simt");
    unsetenv("CLATTN_SOURCE_DIR");
}

static void a_wrong_engine_is_caught(void **state)
{
    (void)state;
    is_caught(SHAPE, "cl/engines/simt/simt_few.cl", "ENGINE_S_COL(e, c)) * factor", "ENGINE_S_COL(e, c)) * 1.0f");
    is_caught(SHAPE " alibi", "cl/score.cl", "s - o->slope", "s + o->slope");
}

static void the_self_check_can_be_switched_off(void **state)
{
    (void)state;
    setenv("CLATTN_SELFCHECK", "off", 1);
    check_serves(SHAPE, "simt");
    setenv("CLATTN_SELFCHECK", "all", 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_engine_that_passes_serves),
        cmocka_unit_test(the_verdict_is_kept),
        cmocka_unit_test(a_wrong_engine_is_caught),
        cmocka_unit_test(the_self_check_can_be_switched_off),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
