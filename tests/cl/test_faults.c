/* SPDX-License-Identifier: Apache-2.0
 * Each OpenCL call of the library fails in turn: an error that names the call, nothing leaked, and the next attempt is fine.
 * Where the library does not need the call (facts of a device, the cache), the failure has no effect and results are right. */
/* ctest: quick */
#include "layered.h"
#include "steps.h"

static struct layer_state *layer;

static int open_all(void **state)
{
    (void)state;
    layer_request();
    layer = layer_open();
    stage_open();
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    stage_close();
    return layer_live(layer) == 0 ? 0 : -1;
}

/* -------------------------------------------------------------------------------------------------------------- faults */

/* Queries whose answer the library does not need. */
static bool can_do_without(const char *call, bool warm)
{
    static const char *const calls[] = {
        "clGetDeviceInfo",  "clGetPlatformInfo",         "clGetKernelWorkGroupInfo", "clGetProgramBuildInfo",
        "clGetProgramInfo", "clCreateProgramWithBinary", "clCreateKernelsInProgram",
    };
    for (size_t i = 0; i < COUNT_OF(calls); i++) {
        if (strcmp(call, calls[i]) == 0) {
            return true;
        }
    }
    return strncmp(call, "clRelease", 9) == 0 || (warm && strcmp(call, "clBuildProgram") == 0);
}

/* A queue's context and device must be known; whether it is in-order need not. */
static bool may_go_either_way(const char *call) { return strcmp(call, "clGetCommandQueueInfo") == 0; }

/* A step whose call number `n` fails. False: it has fewer calls. */
static bool one_fault(struct session *s, size_t step, long n, cl_int code, bool warm)
{
    layer->failed[0] = '\0';
    layer->calls = 0;
    layer->fail_code = code;
    layer->fail_at = n;
    layer->counting = true;
    const clattn_status status = step_run(s, step);
    layer->counting = false;
    layer->fail_at = 0;
    if (layer->failed[0] == '\0') {
        assert_ok(status, &stage.error);
        return false;
    }
    if (status == CLATTN_SUCCESS ? !can_do_without(layer->failed, warm) && !may_go_either_way(layer->failed)
                                 : strstr(stage.error.message, layer->failed) == NULL) {
        fail_msg("step %zu, call %ld (%s, %s) failed: %s \"%s\"", step, n, layer->failed, warm ? "warm" : "cold",
                 clattn_status_name(status), stage.error.message);
    }
    /* The first question to a device is whether it is one. */
    if (status != CLATTN_SUCCESS && can_do_without(layer->failed, warm) && status != CLATTN_NO_DEVICE) {
        fail_msg("step %zu, call %ld: %s is not needed, but: %s", step, n, layer->failed, stage.error.message);
    }
    if (status != CLATTN_SUCCESS) {
        assert_true(code != CL_OUT_OF_HOST_MEMORY || stage.error.cl_code == 0 || stage.error.cl_code == code);
        assert_ok(step_run(s, step), &stage.error); /* the next attempt, on the same objects */
    }
    return true;
}

/* Every call of one step. `fresh` makes new objects each time; otherwise the step is repeated on the same. */
static long all_faults(size_t step, cl_int code, bool warm, bool fresh, bool own_cl)
{
    struct session s = {.own_cl = own_cl};
    long n = 1;
    const long live = layer_live(layer);
    for (bool more = true; more; n++) {
        if (fresh && !warm) {
            stage_forget();
        }
        steps_run(&s, fresh || n == 1 ? 0 : step, step);
        buffers_poison(&stage.buffers, stage.queue);
        more = one_fault(&s, step, n, code, warm);
        if (!own_cl) {
            steps_run(&s, step + 1, STEPS);
            if (step < STEP_MERGE) {
                assert_true(buffers_all_one(&stage.buffers, stage.queue));
            }
        }
        if (fresh) {
            session_close(&s);
            assert_int_equal(layer_live(layer), live);
        }
    }
    session_close(&s);
    assert_int_equal(layer_live(layer), live);
    return n - 2;
}

static void count_of_step(const char *what, long calls, long at_least)
{
    print_message("%s: each of %ld calls failed once\n", what, calls);
    assert_true(calls >= at_least);
}

static const cl_int codes[] = {CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY};

static void a_fault_while_a_context_is_created_is_handled(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(codes); i++) {
        count_of_step("context of the caller's", all_faults(STEP_CONTEXT, codes[i], true, true, false), 20);
        count_of_step("context of its own", all_faults(STEP_CONTEXT, codes[i], true, true, true), 20);
    }
}

static void a_fault_while_a_plan_is_created_is_handled(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(codes); i++) {
        count_of_step("plan, cold", all_faults(STEP_PLAN, codes[i], false, true, false), 6);
        count_of_step("plan, warm", all_faults(STEP_PLAN, codes[i], true, true, false), 6);
    }
}

static void a_fault_while_a_call_is_enqueued_is_handled(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(codes); i++) {
        count_of_step("call", all_faults(STEP_ENQUEUE, codes[i], true, false, false), 25);
    }
}

static void a_fault_while_results_are_merged_is_handled(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(codes); i++) {
        count_of_step("merge, cold", all_faults(STEP_MERGE, codes[i], false, true, false), 20);
        count_of_step("merge, warm", all_faults(STEP_MERGE, codes[i], true, true, false), 20);
        count_of_step("merge, again", all_faults(STEP_MERGE, codes[i], true, false, false), 20);
    }
}

static void a_fault_while_objects_are_destroyed_does_no_harm(void **state)
{
    (void)state;
    long n = 1;
    const long live = layer_live(layer);
    for (bool more = true; more; n++) {
        struct session s = {.own_cl = false};
        steps_run(&s, 0, STEPS);
        clFinish(stage.queue);
        layer->failed[0] = '\0';
        layer->calls = 0;
        layer->fail_code = CL_OUT_OF_RESOURCES;
        layer->fail_at = n;
        layer->counting = true;
        clattn_plan_destroy(s.plan);
        clattn_context_destroy(s.context);
        layer->counting = false;
        layer->fail_at = 0;
        more = layer->failed[0] != '\0';
        assert_int_equal(layer_live(layer), live);
    }
    count_of_step("destroying", n - 2, 4);
}

/* ---------------------------------------------------------------------------------------------------------- other uses */

static void builds_are_counted_below_the_library(void **state)
{
    (void)state;
    struct session s = {0};
    stage_forget();
    layer->source_builds = layer->binary_builds = 0;
    steps_run(&s, 0, STEPS);
    /* The plan, on a GPU a program of its own that adds up chunks of keys, and the merge. */
    const long builds = layer->source_builds;
    assert_in_range(builds, 2, 3);
    assert_int_equal(layer->binary_builds, 0);
    assert_int_equal(clattn_context_build_count(s.context), builds);
    session_close(&s);
    layer->source_builds = layer->binary_builds = 0;
    steps_run(&s, 0, STEPS);
    assert_int_equal(layer->source_builds, 0);
    assert_int_equal(layer->binary_builds, builds);
    assert_int_equal(clattn_context_build_count(s.context), 0);
    session_close(&s);
}

static void another_driver_version_builds_again(void **state)
{
    (void)state;
    struct session s = {0};
    stage_forget();
    layer->source_builds = 0;
    steps_run(&s, 0, STEP_ENQUEUE);
    const long builds = layer->source_builds;
    assert_in_range(builds, 1, 2);
    session_close(&s);
    layer->driver_version = "99.9, the next one";
    steps_run(&s, 0, STEP_ENQUEUE);
    assert_int_equal(layer->source_builds, 2 * builds);
    session_close(&s);
    steps_run(&s, 0, STEP_ENQUEUE);
    assert_int_equal(layer->source_builds, 2 * builds);
    session_close(&s);
    layer->driver_version = NULL;
    steps_run(&s, 0, STEP_ENQUEUE);
    assert_int_equal(layer->source_builds, 2 * builds);
    session_close(&s);
}

/* The driver answers an enqueue with this code, and the flush after it, if there is one, too. */
static clattn_status enqueue_answered(struct session *s, cl_int code, bool flush_fails)
{
    layer->fail_code = code;
    layer->fail_names[0] = "clEnqueueNDRangeKernel";
    layer->fail_names[1] = flush_fails ? "clFlush" : NULL;
    layer->counting = true;
    const clattn_status status = step_run(s, STEP_ENQUEUE);
    layer->counting = false;
    layer->fail_names[0] = layer->fail_names[1] = NULL;
    return status;
}

static void need_lost(struct session *s, cl_int code, bool flush_fails)
{
    clattn_plan *plan = NULL;
    steps_run(s, 0, STEP_MERGE);
    assert_int_equal(enqueue_answered(s, code, flush_fails), CLATTN_DEVICE_LOST);
    assert_int_equal(stage.error.cl_code, code);
    assert_contains(stage.error.message, "clEnqueueNDRangeKernel");
    /* From then on nothing is tried any more. */
    assert_int_equal(step_run(s, STEP_ENQUEUE), CLATTN_DEVICE_LOST);
    assert_int_equal(step_run(s, STEP_MERGE), CLATTN_DEVICE_LOST);
    assert_int_equal(clattn_plan_create(s->context, &stage.problem, NULL, &plan, &stage.error), CLATTN_DEVICE_LOST);
    assert_null(plan);
    session_close(s);
    steps_run(s, 0, STEP_MERGE); /* another context is not concerned */
    session_close(s);
}

static void a_lost_device_stays_lost(void **state)
{
    (void)state;
    struct session s = {0};
    const long live = layer_live(layer);
    steps_run(&s, 0, STEP_MERGE);
    /* A lack of resources, and an event of the wait list that failed, are no loss by themselves. */
    assert_int_equal(enqueue_answered(&s, CL_OUT_OF_RESOURCES, false), CLATTN_OPENCL);
    assert_int_equal(enqueue_answered(&s, CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, false), CLATTN_OPENCL);
    assert_int_equal(enqueue_answered(&s, CL_INVALID_KERNEL_ARGS, true), CLATTN_OPENCL);
    assert_ok(step_run(&s, STEP_ENQUEUE), &stage.error);
    session_close(&s);
    need_lost(&s, CL_INVALID_COMMAND_QUEUE, false);
    need_lost(&s, CL_OUT_OF_RESOURCES, true);
    need_lost(&s, CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, true);
    assert_int_equal(layer_live(layer), live);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(builds_are_counted_below_the_library),
        cmocka_unit_test(a_fault_while_a_context_is_created_is_handled),
        cmocka_unit_test(a_fault_while_a_plan_is_created_is_handled),
        cmocka_unit_test(a_fault_while_a_call_is_enqueued_is_handled),
        cmocka_unit_test(a_fault_while_results_are_merged_is_handled),
        cmocka_unit_test(a_fault_while_objects_are_destroyed_does_no_harm),
        cmocka_unit_test(another_driver_version_builds_again),
        cmocka_unit_test(a_lost_device_stays_lost),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
