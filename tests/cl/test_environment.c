/* SPDX-License-Identifier: Apache-2.0
 * Environment variables, applications that ignore them, and what the library changes in its process. */
/* ctest: quick */
#include "attend.h"

#include <signal.h>

static clattn_error error;

static clattn_status open_with(bool ignore, clattn_context **context)
{
    clattn_context_options options;
    clattn_context_options_init(&options);
    options.ignore_environment = ignore;
    *context = NULL;
    return clattn_context_create(NULL, NULL, &options, context, &error);
}

static void make_problem(const char *shape, clattn_problem *problem)
{
    assert_ok(clattn_problem_parse(shape, problem, &error), &error);
}

/* Sets a variable for one statement. */
#define WITH(name, value) for (bool with_once = setenv((name), (value), 1) == 0; with_once; with_once = unsetenv(name) != 0)

static int start(void **state)
{
    (void)state;
    clattn_error_init(&error);
    return 0;
}

static void an_error_that_comes_of_a_variable_names_it(void **state)
{
    (void)state;
    static const struct {
        const char *name, *value;
        clattn_status status;
    } contexts[] = {{"CLATTN_DEVICE", "no such device", CLATTN_NO_DEVICE},
                    {"CLATTN_DEVICE_OVERRIDE", "nothing", CLATTN_INVALID_ARGUMENT}},
      plans[] = {{"CLATTN_ENGINE", "no-such-engine", CLATTN_INVALID_ARGUMENT},
                 {"CLATTN_SOURCE_DIR", "/nonexistent", CLATTN_INVALID_ARGUMENT}};
    clattn_context *context = NULL;
    clattn_plan *plan = NULL;
    clattn_problem problem;
    char *device = getenv("CLATTN_DEVICE") != NULL ? strdup(getenv("CLATTN_DEVICE")) : NULL;
    make_problem("q3 k4 d8", &problem);
    for (size_t i = 0; i < COUNT_OF(contexts); i++) {
        WITH(contexts[i].name, contexts[i].value)
        {
            assert_refused(open_with(false, &context), contexts[i].status, &error, contexts[i].name);
            assert_contains(error.message, contexts[i].name);
            assert_ok(open_with(true, &context), &error);
            clattn_context_destroy(context);
        }
    }
    if (device != NULL) {
        setenv("CLATTN_DEVICE", device, 1);
    }
    free(device);
    for (size_t i = 0; i < COUNT_OF(plans); i++) {
        WITH(plans[i].name, plans[i].value)
        {
            assert_ok(open_with(false, &context), &error);
            assert_refused(clattn_plan_create(context, &problem, NULL, &plan, &error), plans[i].status, &error, plans[i].name);
            assert_contains(error.message, plans[i].name);
            clattn_context_destroy(context);
            assert_ok(open_with(true, &context), &error);
            assert_ok(clattn_plan_create(context, &problem, NULL, &plan, &error), &error);
            clattn_plan_destroy(plan);
            clattn_context_destroy(context);
        }
    }
}

static void a_build_that_fails_by_a_variable_names_it(void **state)
{
    (void)state;
    clattn_context *context = NULL;
    clattn_plan *plan = NULL;
    clattn_problem problem;
    clattn_plan_options options;
    make_problem("q3 k4 d8", &problem);
    clattn_plan_options_init(&options);
    options.engine = "reference";
    WITH("CLATTN_BUILD_OPTIONS", "-D args=broken(")
    {
        assert_ok(open_with(false, &context), &error);
        assert_int_equal(clattn_plan_create(context, &problem, &options, &plan, &error), CLATTN_BUILD_FAILED);
        assert_contains(error.message, "CLATTN_BUILD_OPTIONS");
        clattn_context_destroy(context);
    }
}

/* The variable overrides the options, unless the application ignores the environment. */
static void the_environment_chooses_the_engine(void **state)
{
    (void)state;
    clattn_context *context = NULL;
    clattn_plan *plan = NULL;
    clattn_problem problem;
    clattn_plan_options options;
    make_problem("q3 k4 d8", &problem);
    clattn_plan_options_init(&options);
    options.engine = "reference";
    WITH("CLATTN_ENGINE", "unfused")
    {
        assert_ok(open_with(false, &context), &error);
        assert_ok(clattn_plan_create(context, &problem, &options, &plan, &error), &error);
        assert_string_equal(clattn_plan_engine(plan), "unfused");
        clattn_plan_destroy(plan);
        clattn_context_destroy(context);
        assert_ok(open_with(true, &context), &error);
        assert_ok(clattn_plan_create(context, &problem, &options, &plan, &error), &error);
        assert_string_equal(clattn_plan_engine(plan), "reference");
        clattn_plan_destroy(plan);
        clattn_context_destroy(context);
    }
    /* An engine that cannot serve: the reason names the variable. */
    WITH("CLATTN_ENGINE", "nv_wgmma")
    {
        assert_ok(open_with(false, &context), &error);
        if (clattn_plan_create(context, &problem, &options, &plan, &error) == CLATTN_UNSUPPORTED) {
            assert_contains(error.message, "CLATTN_ENGINE");
        }
        clattn_plan_destroy(plan);
        clattn_context_destroy(context);
    }
}

/* An engine of matrix tiles needs a permission that the process keeps; the library requests it only where that is allowed. Runs
 * first, before another test has taken it. */
static void a_process_that_must_not_change_stays_as_it_is(void **state)
{
    (void)state;
    clattn_context_options options;
    clattn_context *context = NULL;
    clattn_plan *plan = NULL;
    clattn_problem problem;
    static char small_stack[8192];
    const stack_t small = {.ss_sp = small_stack, .ss_size = sizeof small_stack};
    stack_t before;
    if (sigaltstack(NULL, &before) != 0 || sigaltstack(&small, NULL) != 0) {
        skip(); /* nothing to keep */
    }
    assert_int_equal(sigaltstack(&before, NULL), 0);
    make_problem("hq4 q64 k64 d64 bf16", &problem);
    for (int way = 0; way < 2; way++) {
        clattn_context_options_init(&options);
        assert_true(options.allow_process_changes);
        options.allow_process_changes = way != 0;
        if (way == 1) {
            setenv("CLATTN_PROCESS_CHANGES", "off", 1);
        }
        assert_ok(clattn_context_create(NULL, NULL, &options, &context, &error), &error);
        unsetenv("CLATTN_PROCESS_CHANGES");
        assert_ok(clattn_plan_create(context, &problem, NULL, &plan, &error), &error);
        assert_string_not_equal(clattn_plan_engine(plan), "cpu_amx");
        clattn_plan_destroy(plan);
        clattn_context_destroy(context);
        assert_int_equal(sigaltstack(&small, NULL), 0);
        assert_int_equal(sigaltstack(&before, NULL), 0);
    }
}

int main(void)
{
    unsetenv("CLATTN_ENGINE");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_process_that_must_not_change_stays_as_it_is, start),
        cmocka_unit_test_setup(an_error_that_comes_of_a_variable_names_it, start),
        cmocka_unit_test_setup(a_build_that_fails_by_a_variable_names_it, start),
        cmocka_unit_test_setup(the_environment_chooses_the_engine, start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
