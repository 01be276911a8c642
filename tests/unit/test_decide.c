/* SPDX-License-Identifier: Apache-2.0
 * The one decision (cla_decide) that plans, clattn_explain and tools share, over the facts of real devices. */
#include "support.h"

#include "choose.h"
#include "device_facts.h"
#include "files.h"
#include "problem.h"
#include "random.h"
#include "random_shape.h"
#include "trial.h"

enum { PROBLEMS = 500 };

static clattn_error error;

static char *facts_text(const char *name)
{
    char *path = path_join(DEVICE_FACTS, name), *text = file_read(path);
    assert_non_null(text);
    free(path);
    return text;
}

/* "candidate 1: nv_mma, block_m ..." and so on, as explain prints them. */
static void list_candidates(const struct candidates *candidates, struct text *out)
{
    for (size_t i = 0; i < candidates->count; i++) {
        cla_text_add(out, "candidate %zu: %s, ", i + 1, candidates->list[i].engine->name);
        cla_config_print(&candidates->list[i], out);
        cla_text_add(out, "\n");
    }
}

static void explain(const char *facts, const clattn_problem *problem, const clattn_plan_options *options, char *text,
                    size_t size)
{
    size_t needed = 0;
    assert_ok(clattn_explain(facts, problem, options, text, size, &needed, &error), &error);
    assert_true(needed <= size);
}

/* Groups that take one tile after another cannot be sliced: explain names what a plan takes instead. */
static void explain_knows_what_slices_rule_out(void **state)
{
    (void)state;
    static char text[1 << 16];
    char *facts = facts_text("nvidia-hopper-h200.facts");
    const clattn_problem problem = shape_of("b2 hq8 q2048 k2048 d64 fp16");
    clattn_plan_options options;
    clattn_plan_options_init(&options);
    explain(facts, &problem, &options, text, sizeof text);
    assert_true(strncmp(text, "candidate 1: nv_wgmma, ", 23) == 0);
    options.max_launch_ms = 1.0;
    explain(facts, &problem, &options, text, sizeof text);
    assert_true(strncmp(text, "candidate 1: nv_mma, ", 21) == 0);
    assert_null(strstr(text, "nv_wgmma"));
    free(facts);
}

static void explain_and_plans_decide_alike(void **state)
{
    (void)state;
    static char text[1 << 16], shape[600];
    struct names devices;
    uint64_t random = 7;
    size_t sliced = 0;
    assert_true(folder_list(DEVICE_FACTS, ".facts", &devices));
    for (int i = 0; i < PROBLEMS; i++) {
        const char *device = devices.list[(size_t)i % devices.count];
        char *given = facts_text(device);
        struct facts facts;
        struct trial trial;
        struct text expected = {0};
        struct candidates *candidates = calloc(1, sizeof *candidates);
        clattn_problem problem;
        clattn_plan_options options;
        assert_non_null(candidates);
        random_shape(&random, true, shape, sizeof shape);
        assert_ok(trial_parse(shape, &trial, &error), &error);
        assert_ok(cla_facts_parse(given, &facts, &error), &error);
        assert_ok(cla_problem_take(&trial.problem, &problem, &error), &error);
        trial_plan_options(&trial, NULL, &options);
        options.max_launch_ms = i % 3 == 0 ? 2.0 : 0.0;
        sliced += options.max_launch_ms > 0.0;
        assert_ok(cla_decide(&facts, &problem, &options, candidates, &error), &error);
        list_candidates(candidates, &expected);
        explain(given, &trial.problem, &options, text, sizeof text);
        if (strncmp(text, expected.data, expected.length) != 0) {
            fail_msg("%s, \"%s\": explained as\n%swhere a plan has\n%s", device, shape, text, expected.data);
        }
        cla_text_free(&expected);
        cla_text_free(&candidates->declined);
        free(candidates);
        free(given);
    }
    assert_true(sliced > 100);
    names_free(&devices);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(explain_knows_what_slices_rule_out),
        cmocka_unit_test(explain_and_plans_decide_alike),
    };
    clattn_error_init(&error);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
