/* SPDX-License-Identifier: Apache-2.0
 * Calls at the limits of validation: batches without rows, workspaces a byte short, pointers that no kernel needs, outputs that
 * overlap inputs. */
/* ctest: quick */
#include "buffers.h"

static clattn_error error;

static int start(void **state)
{
    (void)state;
    clattn_error_init(&error);
    return 0;
}

static clattn_problem problem_of(const char *shape)
{
    clattn_problem problem;
    assert_ok(clattn_problem_parse(shape, &problem, &error), &error);
    return problem;
}

static clattn_plan *plan_with(clattn_context *context, const clattn_problem *problem, const clattn_plan_options *options)
{
    clattn_plan *plan = NULL;
    assert_ok(clattn_plan_create(context, problem, options, &plan, &error), &error);
    return plan;
}

static clattn_buffer make(clattn_context *context, size_t bytes)
{
    cl_int code;
    cl_mem mem = clCreateBuffer(clattn_context_cl(context), CL_MEM_READ_WRITE, bytes, NULL, &code);
    assert_int_equal(code, CL_SUCCESS);
    return clattn_mem(mem, 0);
}

static void drop(clattn_buffer buffer) { clReleaseMemObject((cl_mem)buffer.handle); }

/* A batch whose sequences are all empty, as schedulers make them, needs no buffer, and its event completes. */
static void packed_batches_without_a_row_are_served(void **state)
{
    (void)state;
    static const char *const shapes[] = {"b3 hq4 hkv2 q5 k7 d8 lse packed", "b1 hq2 q1 k1 d8 packed=int64",
                                         "b2 hq2 q5 k9 d8 packed scores=bias"};
    for (size_t i = 0; i < COUNT_OF(shapes); i++)
        for (int64_t keys = 0; keys < 10; keys += 9)
            FOR_EACH_ENGINE(engine)
            {
                clattn_problem problem = problem_of(shapes[i]);
                clattn_plan_options options;
                clattn_plan *plan = NULL;
                clattn_call call;
                cl_event event = NULL;
                problem.packed.total_q = 0;
                problem.packed.total_kv = keys;
                clattn_problem_set_layout(&problem, CLATTN_BHSD);
                clattn_plan_options_init(&options);
                options.engine = engine;
                const clattn_status status = clattn_plan_create(bench.context, &problem, &options, &plan, &error);
                if (status == CLATTN_UNSUPPORTED)
                    continue;
                assert_ok(status, &error);
                clattn_call_init(&call, plan);
                assert_ok(clattn_enqueue(plan, bench.queue, &call, 0, NULL, &event, &error), &error);
                assert_non_null(event);
                assert_int_equal(clWaitForEvents(1, &event), CL_SUCCESS);
                clReleaseEvent(event);
                clattn_plan_destroy(plan);
            }
}

/* The caller's buffer has exactly the size that the call needs, then up to four bytes less. */
static void a_workspace_a_byte_short_is_refused(void **state)
{
    (void)state;
    static const char *const shapes[] = {"h4 q300 k96 d16 mask=qk", "h4 q48 k40 d16 mask=qk", "h2 q1 k1100 d16"};
    for (size_t i = 0; i < COUNT_OF(shapes); i++) {
        const clattn_problem problem = problem_of(shapes[i]);
        clattn_plan *plan = plan_with(bench.context, &problem, NULL);
        size_t wanted = 0;
        struct buffers buffers;
        buffers_create(&buffers, clattn_context_cl(bench.context), &problem, 0);
        clattn_call call = buffers_call(&buffers, plan);
        assert_ok(clattn_call_workspace(plan, &call, &wanted, &error), &error);
        const clattn_buffer mask = make(bench.context, 300 * 96);
        call.mask = mask;
        for (size_t less = 0; less <= 4 && less < wanted; less++) {
            call.workspace = make(bench.context, wanted - less);
            if (less == 0) {
                assert_ok(clattn_enqueue(plan, bench.queue, &call, 0, NULL, NULL, &error), &error);
            } else {
                char needed[64];
                snprintf(needed, sizeof needed, "which takes %zu bytes", (wanted + 3) / 4 * 4);
                assert_refused(clattn_enqueue(plan, bench.queue, &call, 0, NULL, NULL, &error), CLATTN_INVALID_ARGUMENT, &error,
                               "call.workspace");
                assert_contains(error.message, needed);
            }
            assert_int_equal(clFinish(bench.queue), CL_SUCCESS);
            if (wanted > 0) {
                call.workspace.offset = 4096;
                assert_refused(clattn_enqueue(plan, bench.queue, &call, 0, NULL, NULL, &error), CLATTN_INVALID_ARGUMENT, &error,
                               "call.workspace");
                call.workspace.offset = 2;
                assert_refused(clattn_enqueue(plan, bench.queue, &call, 0, NULL, NULL, &error), CLATTN_INVALID_ARGUMENT, &error,
                               "call.workspace");
            }
            drop(call.workspace);
        }
        if (wanted > 0) {
            call.workspace = clattn_mem(NULL, 0);
            assert_refused(clattn_enqueue(plan, bench.queue, &call, 0, NULL, NULL, &error), CLATTN_INVALID_ARGUMENT, &error,
                           "call.workspace");
        }
        drop(mask);
        buffers_destroy(&buffers);
        clattn_plan_destroy(plan);
    }
}

/* A pointer that no kernel needs may have any value, on a device without shared virtual memory too. */
static void buffers_that_no_kernel_needs_are_ignored(void **state)
{
    (void)state;
    static float somewhere[4];
    struct bench other;
    bench_context_open(&other, "svm=0");
    const clattn_problem problem = problem_of("h2 q5 k0 d8");
    clattn_plan *plan = plan_with(other.context, &problem, NULL);
    struct buffers buffers;
    assert_int_equal(clattn_workspace_size(plan), 0);
    buffers_create(&buffers, clattn_context_cl(other.context), &problem, 0);
    clattn_call call = buffers_call(&buffers, plan);
    call.k = clattn_svm(somewhere, 0);
    call.v = clattn_mem(NULL, 3);
    call.workspace = clattn_svm(somewhere, 0);
    assert_ok(clattn_enqueue(plan, other.queue, &call, 0, NULL, NULL, &error), &error);
    assert_int_equal(clFinish(other.queue), CL_SUCCESS);
    call.q = clattn_svm(somewhere, 0);
    assert_refused(clattn_enqueue(plan, other.queue, &call, 0, NULL, NULL, &error), CLATTN_UNSUPPORTED, &error, "call.q");
    buffers_destroy(&buffers);
    clattn_plan_destroy(plan);
    bench_context_close(&other);
}

static void overlapping_outputs_are_refused(void **state)
{
    (void)state;
    const clattn_problem problem = problem_of("b2 hq4 hkv4 q8 k8 d8 lse");
    clattn_plan *plan = plan_of(bench.context, "b2 hq4 hkv4 q8 k8 d8 lse", "reference");
    struct buffers buffers;
    buffers_create(&buffers, clattn_context_cl(bench.context), &problem, 0);
    clattn_call call = buffers_call(&buffers, plan);
    clattn_buffer *const inputs[] = {&call.q, &call.k, &call.v, &call.lse};
    for (size_t i = 0; i < COUNT_OF(inputs); i++) {
        const clattn_buffer kept = *inputs[i];
        *inputs[i] = call.o;
        assert_refused(clattn_enqueue(plan, bench.queue, &call, 0, NULL, NULL, &error), CLATTN_INVALID_ARGUMENT, &error,
                       "call.o");
        *inputs[i] = kept;
    }
    assert_true(buffers_untouched(&buffers, bench.queue));
    /* Inputs may share what they like, and parts of one buffer are places of their own. */
    const size_t bytes = buffers.o_count * sizeof(float);
    const clattn_buffer all = make(bench.context, 2 * bytes);
    call.q = call.k = call.v = all;
    call.o = clattn_mem((cl_mem)all.handle, bytes);
    assert_ok(clattn_enqueue(plan, bench.queue, &call, 0, NULL, NULL, &error), &error);
    call.o.offset -= sizeof(float);
    assert_refused(clattn_enqueue(plan, bench.queue, &call, 0, NULL, NULL, &error), CLATTN_INVALID_ARGUMENT, &error, "call.o");
    assert_int_equal(clFinish(bench.queue), CL_SUCCESS);
    drop(all);
    buffers_destroy(&buffers);
    clattn_plan_destroy(plan);
}

/* A number of milliseconds past any int. */
static void slices_may_have_any_length(void **state)
{
    (void)state;
    const clattn_problem problem = problem_of("q5 k7 d8");
    clattn_plan_options options;
    char text[2000];
    clattn_plan_options_init(&options);
    options.engine = "reference";
    options.max_launch_ms = 1e10;
    clattn_plan *plan = plan_with(bench.context, &problem, &options);
    assert_int_equal(clattn_plan_describe(plan, text, sizeof text, NULL), CLATTN_SUCCESS);
    assert_contains(text, "slices of about 10000000000 ms");
    clattn_plan_destroy(plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(packed_batches_without_a_row_are_served, start),
        cmocka_unit_test_setup(a_workspace_a_byte_short_is_refused, start),
        cmocka_unit_test_setup(buffers_that_no_kernel_needs_are_ignored, start),
        cmocka_unit_test_setup(overlapping_outputs_are_refused, start),
        cmocka_unit_test_setup(slices_may_have_any_length, start),
    };
    return cmocka_run_group_tests(tests, bench_open, bench_close);
}
