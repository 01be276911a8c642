/* SPDX-License-Identifier: Apache-2.0
 * The public API: what is refused and how, before anything is launched and with the output untouched. */
/* ctest: quick */
#include "buffers.h"

static clattn_error error;
static clattn_problem problem;
static clattn_plan *plan;
static struct buffers buffers;
static clattn_call call;

#define SHAPE "b2 hq4 hkv2 q5 k7 d8 dv4"

static int start(void **state)
{
    (void)state;
    clattn_error_init(&error);
    clattn_problem_parse(SHAPE, &problem, NULL);
    plan = plan_of(bench.context, SHAPE, "reference");
    buffers_create(&buffers, clattn_context_cl(bench.context), &problem, 0);
    call = buffers_call(&buffers, plan);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    buffers_destroy(&buffers);
    clattn_plan_destroy(plan);
    return 0;
}

static clattn_status enqueue(void) { return clattn_enqueue(plan, bench.queue, &call, 0, NULL, NULL, &error); }

static void refused(const char *field)
{
    assert_refused(enqueue(), CLATTN_INVALID_ARGUMENT, &error, field);
    assert_true(buffers_untouched(&buffers, bench.queue));
}

static void a_good_call_works(void **state)
{
    (void)state;
    assert_ok(enqueue(), &error);
    assert_int_equal(error.status, CLATTN_SUCCESS);
    assert_string_equal(error.message, "");
    assert_true(buffers_all_one(&buffers, bench.queue));
}

static void no_error_struct_is_needed(void **state)
{
    (void)state;
    assert_int_equal(clattn_enqueue(plan, bench.queue, &call, 0, NULL, NULL, NULL), CLATTN_SUCCESS);
    assert_int_equal(clattn_enqueue(plan, NULL, &call, 0, NULL, NULL, NULL), CLATTN_INVALID_ARGUMENT);
    assert_int_equal(clattn_plan_create(bench.context, NULL, NULL, NULL, NULL), CLATTN_INVALID_ARGUMENT);
    clFinish(bench.queue);
}

static void null_objects_are_named(void **state)
{
    (void)state;
    clattn_plan *none = plan;
    assert_refused(clattn_enqueue(NULL, bench.queue, &call, 0, NULL, NULL, &error), CLATTN_INVALID_ARGUMENT, &error, "plan");
    assert_refused(clattn_enqueue(plan, NULL, &call, 0, NULL, NULL, &error), CLATTN_INVALID_ARGUMENT, &error, "queue");
    assert_refused(clattn_enqueue(plan, bench.queue, NULL, 0, NULL, NULL, &error), CLATTN_INVALID_ARGUMENT, &error, "call");
    assert_refused(clattn_plan_create(NULL, &problem, NULL, &none, &error), CLATTN_INVALID_ARGUMENT, &error, "context");
    assert_null(none);
    none = plan;
    assert_refused(clattn_plan_create(bench.context, NULL, NULL, &none, &error), CLATTN_INVALID_ARGUMENT, &error, "problem");
    assert_null(none);
    assert_refused(clattn_plan_create(bench.context, &problem, NULL, NULL, &error), CLATTN_INVALID_ARGUMENT, &error, "plan");
    assert_refused(clattn_context_create(NULL, NULL, NULL, NULL, &error), CLATTN_INVALID_ARGUMENT, &error, "context");
    assert_refused(clattn_supported(NULL, &problem, NULL, &error), CLATTN_INVALID_ARGUMENT, &error, "context");
    clattn_plan_destroy(NULL);
    clattn_context_destroy(NULL);
}

static void structs_must_be_initialised(void **state)
{
    (void)state;
    clattn_call raw;
    clattn_problem raw_problem;
    clattn_plan *none = NULL;
    memset(&raw, 0, sizeof raw);
    memset(&raw_problem, 0, sizeof raw_problem);
    assert_refused(clattn_enqueue(plan, bench.queue, &raw, 0, NULL, NULL, &error), CLATTN_INVALID_ARGUMENT, &error,
                   "call.struct_size");
    assert_refused(clattn_plan_create(bench.context, &raw_problem, NULL, &none, &error), CLATTN_INVALID_ARGUMENT, &error,
                   "problem.struct_size");
}

static void a_bad_problem_makes_no_plan(void **state)
{
    (void)state;
    clattn_plan *none = NULL;
    const size_t builds = clattn_context_build_count(bench.context);
    problem.heads_q = 3;
    assert_refused(clattn_plan_create(bench.context, &problem, NULL, &none, &error), CLATTN_INVALID_ARGUMENT, &error,
                   "problem.heads_q");
    assert_null(none);
    assert_refused(clattn_supported(bench.context, &problem, NULL, &error), CLATTN_INVALID_ARGUMENT, &error, "problem.heads_q");
    assert_refused(clattn_attention(bench.context, bench.queue, &problem, buffers.q, buffers.k, buffers.v, buffers.o, NULL, 0,
                                    NULL, NULL, &error),
                   CLATTN_INVALID_ARGUMENT, &error, "problem.heads_q");
    assert_true(buffers_untouched(&buffers, bench.queue));
    assert_int_equal(clattn_context_build_count(bench.context), builds);
}

static void sizes_stay_within_the_bounds(void **state)
{
    (void)state;
    call.batch = 3;
    refused("call.batch");
    call.batch = -1;
    refused("call.batch");
    call.batch = 2;
    call.seq_q = 6;
    refused("call.seq_q");
    call.seq_q = -1;
    refused("call.seq_q");
    call.seq_q = 5;
    call.seq_kv = 8;
    refused("call.seq_kv");
    call.seq_kv = INT64_MIN;
    refused("call.seq_kv");
}

static void scale_is_a_number(void **state)
{
    (void)state;
    call.scale = NAN;
    refused("call.scale");
    call.scale = INFINITY;
    refused("call.scale");
}

static void missing_buffers_are_named(void **state)
{
    (void)state;
    static const char *const fields[] = {"call.q", "call.k", "call.v", "call.o"};
    for (size_t i = 0; i < COUNT_OF(fields); i++) {
        call = buffers_call(&buffers, plan);
        clattn_buffer *all[] = {&call.q, &call.k, &call.v, &call.o};
        all[i]->kind = CLATTN_BUFFER_NONE;
        refused(fields[i]);
        all[i]->kind = CLATTN_BUFFER_MEM;
        all[i]->handle = NULL;
        refused(fields[i]);
    }
}

static void small_buffers_are_named(void **state)
{
    (void)state;
    static const char *const fields[] = {"call.q", "call.k", "call.v", "call.o"};
    /* Elements that each tensor takes; the buffers hold one more. */
    static const size_t counts[] = {2 * 4 * 5 * 8, 2 * 2 * 7 * 8, 2 * 2 * 7 * 4, 2 * 4 * 5 * 4};
    for (size_t i = 0; i < COUNT_OF(fields); i++) {
        cl_int code;
        cl_mem small = clCreateBuffer(clattn_context_cl(bench.context), 0, (counts[i] - 1) * 4, NULL, &code);
        assert_int_equal(code, CL_SUCCESS);
        call = buffers_call(&buffers, plan);
        clattn_buffer *all[] = {&call.q, &call.k, &call.v, &call.o};
        all[i]->handle = small;
        refused(fields[i]);
        clReleaseMemObject(small);
        /* The right size, shifted past its end. */
        call = buffers_call(&buffers, plan);
        all[i]->offset = 8;
        refused(fields[i]);
        all[i]->offset = SIZE_MAX - 3;
        refused(fields[i]);
        all[i]->offset = 2;
        refused(fields[i]);
    }
}

/* The offset is so large that its sum with a stride would wrap, in the type with the smallest elements. */
static void huge_offsets_do_not_wrap(void **state)
{
    (void)state;
    clattn_plan *narrow = plan_of(bench.context, "b2 hq4 hkv2 q5 k7 d8 dv4 fp16", "reference");
    clattn_call far = buffers_call(&buffers, narrow);
    static const size_t offsets[] = {SIZE_MAX - 1, SIZE_MAX / 2 + 1, SIZE_MAX / 2 - 1};
    for (size_t i = 0; i < COUNT_OF(offsets); i++) {
        far.k.offset = offsets[i] & ~(size_t)1;
        assert_refused(clattn_enqueue(narrow, bench.queue, &far, 0, NULL, NULL, &error), CLATTN_INVALID_ARGUMENT, &error,
                       "call.k");
    }
    assert_true(buffers_untouched(&buffers, bench.queue));
    clattn_plan_destroy(narrow);
}

static void strides_that_leave_the_buffer_are_named(void **state)
{
    (void)state;
    static const int64_t odd[] = {-8, 1000, (int64_t)1 << 40, INT64_MAX, INT64_MIN};
    for (size_t i = 0; i < COUNT_OF(odd); i++) {
        clattn_plan *other = NULL;
        problem.k.strides.row = odd[i];
        assert_ok(clattn_plan_create(bench.context, &problem, NULL, &other, &error), &error);
        clattn_call odd_call = buffers_call(&buffers, other);
        assert_refused(clattn_enqueue(other, bench.queue, &odd_call, 0, NULL, NULL, &error), CLATTN_INVALID_ARGUMENT, &error,
                       "call.k");
        clattn_plan_destroy(other);
    }
    assert_true(buffers_untouched(&buffers, bench.queue));
}

static void foreign_objects_are_named(void **state)
{
    (void)state;
    struct bench other;
    cl_int code;
    bench_context_open(&other, NULL);
    cl_mem foreign = clCreateBuffer(clattn_context_cl(other.context), 0, 65536, NULL, &code);
    call.v.handle = foreign;
    refused("call.v");
    call = buffers_call(&buffers, plan);
    assert_refused(clattn_enqueue(plan, other.queue, &call, 0, NULL, NULL, &error), CLATTN_INVALID_ARGUMENT, &error, "queue");
    assert_true(buffers_untouched(&buffers, bench.queue));
    clReleaseMemObject(foreign);
    bench_context_close(&other);
}

static bool find_another_device(void *user, int platform_index, int device_index, cl_platform_id platform, cl_device_id device)
{
    cl_device_id *const other = user;
    (void)platform_index, (void)device_index, (void)platform;
    if (device != clattn_context_device(bench.context)) {
        *other = device;
    }
    return *other == NULL;
}

static void a_device_outside_the_context_is_named(void **state)
{
    (void)state;
    clattn_context *none = NULL;
    cl_device_id wrong = NULL;
    assert_ok(clattn_devices(find_another_device, &wrong, &error), &error);
    if (wrong == NULL) {
        skip(); /* the only device of this machine */
    }
    assert_refused(clattn_context_create(clattn_context_cl(bench.context), wrong, NULL, &none, &error), CLATTN_INVALID_ARGUMENT,
                   &error, "device");
    assert_null(none);
}

static void a_given_context_is_used_and_retained(void **state)
{
    (void)state;
    clattn_context *adopted = NULL;
    cl_uint before = 0, during = 0, after = 0;
    cl_context cl = clattn_context_cl(bench.context);
    clGetContextInfo(cl, CL_CONTEXT_REFERENCE_COUNT, sizeof before, &before, NULL);
    assert_ok(clattn_context_create(cl, NULL, NULL, &adopted, &error), &error);
    clGetContextInfo(cl, CL_CONTEXT_REFERENCE_COUNT, sizeof during, &during, NULL);
    assert_ptr_equal(clattn_context_cl(adopted), cl);
    assert_ptr_equal(clattn_context_device(adopted), clattn_context_device(bench.context));
    assert_int_equal(during, before + 1);
    clattn_context_destroy(adopted);
    clGetContextInfo(cl, CL_CONTEXT_REFERENCE_COUNT, sizeof after, &after, NULL);
    assert_int_equal(after, before);
}

/* A call with nothing to compute succeeds, launches nothing and needs no buffer. */
static void an_empty_dimension_launches_nothing(void **state)
{
    (void)state;
    static const char *const shapes[] = {"b0 hq4 hkv2 q5 k7 d8 dv4", "b2 hq0 hkv0 q5 k7 d8 dv4", "b2 hq4 hkv2 q0 k7 d8 dv4"};
    for (size_t i = 0; i < COUNT_OF(shapes); i++) {
        clattn_plan *empty = plan_of(bench.context, shapes[i], NULL);
        clattn_call nothing;
        cl_event event = NULL;
        clattn_call_init(&nothing, empty);
        assert_ok(clattn_enqueue(empty, bench.queue, &nothing, 0, NULL, &event, &error), &error);
        assert_non_null(event);
        assert_int_equal(clWaitForEvents(1, &event), CL_SUCCESS);
        clReleaseEvent(event);
        assert_ok(clattn_enqueue(empty, bench.queue, &nothing, 0, NULL, NULL, &error), &error);
        clattn_plan_destroy(empty);
    }
    /* The same through the call's own numbers. */
    call.batch = 0;
    assert_ok(enqueue(), &error);
    call.batch = 2;
    call.seq_q = 0;
    assert_ok(enqueue(), &error);
    assert_true(buffers_untouched(&buffers, bench.queue));
}

/* Without keys the output is zero, and K and V need no buffer. */
static void no_keys_give_zeros(void **state)
{
    (void)state;
    call.seq_kv = 0;
    call.k.kind = call.v.kind = CLATTN_BUFFER_NONE;
    assert_ok(enqueue(), &error);
    float *o = buffers_read(&buffers, bench.queue);
    for (size_t i = 0; i < buffers.o_count; i++) {
        assert_true(o[i] == 0.0f);
    }
    free(o);
}

/* A tensor may start at any element of a buffer, without a sub-buffer. */
static void a_tensor_may_start_at_any_byte_offset(void **state)
{
    (void)state;
    static const size_t offsets[] = {4, 8, 64, 4100};
    for (size_t i = 0; i < COUNT_OF(offsets); i++) {
        struct buffers wide;
        buffers_create(&wide, clattn_context_cl(bench.context), &problem, offsets[i] / 4);
        clattn_call shifted = buffers_call(&wide, plan);
        shifted.q.offset = shifted.k.offset = shifted.v.offset = shifted.o.offset = offsets[i];
        assert_ok(clattn_enqueue(plan, bench.queue, &shifted, 0, NULL, NULL, &error), &error);
        float *o = buffers_read(&wide, bench.queue);
        for (size_t j = 0; j < wide.o_count; j++) {
            if (j < offsets[i] / 4) {
                assert_true(isnan(o[j]));
            } else {
                assert_near(o[j], 1.0, 1e-5);
            }
        }
        free(o);
        buffers_destroy(&wide);
    }
}

static void the_one_call_form_equals_a_plan_and_a_call(void **state)
{
    (void)state;
    assert_ok(clattn_attention(bench.context, bench.queue, &problem, buffers.q, buffers.k, buffers.v, buffers.o, NULL, 0, NULL,
                               NULL, &error),
              &error);
    assert_true(buffers_all_one(&buffers, bench.queue));
    const size_t builds = clattn_context_build_count(bench.context);
    buffers_poison(&buffers, bench.queue);
    problem.lse.present = true;
    assert_ok(clattn_attention(bench.context, bench.queue, &problem, buffers.q, buffers.k, buffers.v, buffers.o, buffers.lse, 0,
                               NULL, NULL, &error),
              &error);
    assert_true(buffers_all_one(&buffers, bench.queue));
    assert_int_equal(clattn_context_build_count(bench.context), builds);
    assert_refused(clattn_attention(bench.context, bench.queue, &problem, buffers.q, buffers.k, buffers.v, buffers.o, NULL, 0,
                                    NULL, NULL, &error),
                   CLATTN_INVALID_ARGUMENT, &error, "call.lse");
    clFinish(bench.queue);
}

/* The caller's own workspace is used, and one that is too small is refused. */
static void the_callers_workspace_is_used(void **state)
{
    (void)state;
    cl_int code;
    clattn_plan *unfused = plan_of(bench.context, SHAPE, "unfused");
    const size_t size = clattn_workspace_size(unfused);
    assert_true(size >= 2 * 4 * 5 * 7 * sizeof(float));
    assert_int_equal(clattn_workspace_size(plan), 0);
    clattn_call own = buffers_call(&buffers, unfused);
    cl_mem enough = clCreateBuffer(clattn_context_cl(bench.context), 0, size, NULL, &code);
    cl_mem small = clCreateBuffer(clattn_context_cl(bench.context), 0, size - 1, NULL, &code);
    own.workspace = clattn_mem(small, 0);
    assert_refused(clattn_enqueue(unfused, bench.queue, &own, 0, NULL, NULL, &error), CLATTN_INVALID_ARGUMENT, &error,
                   "call.workspace");
    assert_true(buffers_untouched(&buffers, bench.queue));
    own.workspace = clattn_mem(enough, 0);
    assert_ok(clattn_enqueue(unfused, bench.queue, &own, 0, NULL, NULL, &error), &error);
    assert_true(buffers_all_one(&buffers, bench.queue));
    buffers_poison(&buffers, bench.queue);
    own.workspace.kind = CLATTN_BUFFER_NONE;
    assert_ok(clattn_enqueue(unfused, bench.queue, &own, 0, NULL, NULL, &error), &error);
    assert_true(buffers_all_one(&buffers, bench.queue));
    clReleaseMemObject(enough);
    clReleaseMemObject(small);
    clattn_plan_destroy(unfused);
}

/* A program built against an older header passes shorter structs; nothing past their end is read. */
static void shorter_structs_are_accepted(void **state)
{
    (void)state;
    call.struct_size = offsetof(clattn_call, scale);
    call.scale = NAN;
    assert_ok(enqueue(), &error);
    assert_true(buffers_all_one(&buffers, bench.queue));
    clattn_plan_options options;
    clattn_plan *other = NULL;
    clattn_plan_options_init(&options);
    options.struct_size = offsetof(clattn_plan_options, avoid);
    options.engine = "reference";
    options.avoid = (const char *)(uintptr_t)1;
    assert_ok(clattn_plan_create(bench.context, &problem, &options, &other, &error), &error);
    clattn_plan_destroy(other);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_good_call_works),
        TEST(no_error_struct_is_needed),
        TEST(null_objects_are_named),
        TEST(structs_must_be_initialised),
        TEST(a_bad_problem_makes_no_plan),
        TEST(sizes_stay_within_the_bounds),
        TEST(scale_is_a_number),
        TEST(missing_buffers_are_named),
        TEST(small_buffers_are_named),
        TEST(huge_offsets_do_not_wrap),
        TEST(strides_that_leave_the_buffer_are_named),
        TEST(foreign_objects_are_named),
        TEST(a_device_outside_the_context_is_named),
        TEST(a_given_context_is_used_and_retained),
        TEST(an_empty_dimension_launches_nothing),
        TEST(no_keys_give_zeros),
        TEST(a_tensor_may_start_at_any_byte_offset),
        TEST(the_one_call_form_equals_a_plan_and_a_call),
        TEST(the_callers_workspace_is_used),
        TEST(shorter_structs_are_accepted),
    };
    return cmocka_run_group_tests(tests, bench_open, bench_close);
}
