/* SPDX-License-Identifier: Apache-2.0
 * Arguments that no correct program passes: each is refused with a status that names the field, nothing is launched, and the
 * library stays usable. Ordinary mistakes are tested in test_api.c. */
/* ctest: quick */
#include "buffers.h"

#define SHAPE "b2 hq4 hkv2 q5 k7 d8 dv4 lse"

static clattn_error error;

static void null_arguments_are_refused(void **state)
{
    (void)state;
    size_t needed = 1;
    cl_device_id device;
    assert_int_equal(clattn_devices(NULL, NULL, &error), CLATTN_INVALID_ARGUMENT);
    assert_int_equal(clattn_device_find(NULL, NULL, &error), CLATTN_INVALID_ARGUMENT);
    assert_int_equal(clattn_device_find("no such device, 7:9", &device, &error), CLATTN_NO_DEVICE);
    assert_int_equal(clattn_context_facts(NULL, NULL, 0, &needed), CLATTN_INVALID_ARGUMENT);
    assert_int_equal(clattn_plan_describe(NULL, NULL, 0, &needed), CLATTN_INVALID_ARGUMENT);
    assert_int_equal(clattn_plan_source(NULL, NULL, 0, &needed), CLATTN_INVALID_ARGUMENT);
    assert_int_equal(clattn_problem_print(NULL, NULL, 0, &needed), CLATTN_INVALID_ARGUMENT);
    assert_int_equal(clattn_problem_parse(NULL, NULL, &error), CLATTN_INVALID_ARGUMENT);
    assert_int_equal(clattn_device_facts(NULL, NULL, NULL, 0, NULL, &error), CLATTN_INVALID_ARGUMENT);
    assert_int_equal(clattn_explain(NULL, NULL, NULL, NULL, 0, NULL, &error), CLATTN_INVALID_ARGUMENT);
    assert_string_equal(clattn_plan_engine(NULL), "");
    assert_int_equal(clattn_workspace_size(NULL), 0);
    assert_int_equal(clattn_context_build_count(NULL), 0);
    assert_null(clattn_context_cl(NULL));
    assert_null(clattn_context_device(NULL));
    assert_null(clattn_engine_name(SIZE_MAX));
    clattn_problem_init(NULL);
    clattn_problem_set_layout(NULL, CLATTN_BHSD);
    clattn_call_init(NULL, NULL);
    clattn_merge_init(NULL);
    clattn_error_init(NULL);
    clattn_context_options_init(NULL);
    clattn_plan_options_init(NULL);
    clattn_alibi_slopes(4, NULL);
    float slope = 7.0f;
    clattn_alibi_slopes(-1, &slope);
    clattn_alibi_slopes(INT64_MIN, &slope);
    assert_true(slope == 7.0f);
}

/* Every number of a problem at its extremes is either accepted or refused with a message, and nothing is launched. */
static void extreme_problems_are_refused_or_served(void **state)
{
    (void)state;
    static const int64_t extremes[] = {INT64_MIN,        INT64_MIN + 1,    -2,       (int64_t)1 << 29,
                                       (int64_t)1 << 30, (int64_t)1 << 62, INT64_MAX};
    clattn_problem shape;
    assert_ok(clattn_problem_parse(SHAPE " scores=bias mask bias alibi window=3,4", &shape, &error), &error);
    for (size_t i = 0; i < COUNT_OF(extremes); i++) {
        clattn_problem p = shape;
        int64_t *const fields[] = {&p.batch,
                                   &p.seq_q,
                                   &p.seq_kv,
                                   &p.heads_q,
                                   &p.heads_kv,
                                   &p.head_dim_qk,
                                   &p.head_dim_v,
                                   &p.offset,
                                   &p.window.left,
                                   &p.window.right,
                                   &p.mask.columns,
                                   &p.bias.columns,
                                   &p.scores.first_head,
                                   &p.scores.heads,
                                   &p.packed.total_q,
                                   &p.packed.total_kv,
                                   &p.scores.strides.head,
                                   &p.mask.strides.row};
        for (size_t f = 0; f < COUNT_OF(fields); f++) {
            p = shape;
            p.corner = CLATTN_EXPLICIT;
            *fields[f] = extremes[i];
            clattn_problem_set_layout(&p, CLATTN_SBHD);
            const clattn_status status = clattn_supported(bench.context, &p, NULL, &error);
            if (status != CLATTN_SUCCESS) {
                assert_true(status == CLATTN_INVALID_ARGUMENT || status == CLATTN_UNSUPPORTED);
                assert_true(error.message[0] != '\0');
            }
        }
    }
}

/* All at once: products of sizes that would wrap. */
static void products_of_sizes_do_not_wrap(void **state)
{
    (void)state;
    clattn_problem p;
    clattn_problem_init(&p);
    p.batch = p.heads_q = p.heads_kv = (int64_t)1 << 29;
    p.seq_q = p.seq_kv = (int64_t)1 << 29;
    p.head_dim_qk = p.head_dim_v = 8;
    clattn_problem_set_layout(&p, CLATTN_BHSD);
    assert_refused(clattn_supported(bench.context, &p, NULL, &error), CLATTN_INVALID_ARGUMENT, &error, "problem.batch");
    p.batch = 1;
    p.heads_q = p.heads_kv = 2;
    p.mask.present = true;
    p.mask.strides.head = 1;
    clattn_problem_set_layout(&p, CLATTN_BHSD);
    FOR_EACH_ENGINE(engine)
    {
        clattn_plan_options options;
        clattn_plan_options_init(&options);
        options.at_bounds = true;
        options.engine = engine;
        options.chunk = INT64_MAX;
        const clattn_status status = clattn_supported(bench.context, &p, &options, &error);
        assert_true(status == CLATTN_SUCCESS || status == CLATTN_UNSUPPORTED);
        options.chunk = INT64_MIN;
        (void)clattn_supported(bench.context, &p, &options, &error);
    }
}

static cl_mem make(cl_mem_flags flags)
{
    cl_int code;
    cl_mem mem = clCreateBuffer(clattn_context_cl(bench.context), flags, 65536, NULL, &code);
    assert_int_equal(code, CL_SUCCESS);
    return mem;
}

static struct buffers buffers;
static clattn_plan *plan;

static int start(void **state)
{
    (void)state;
    clattn_problem problem;
    clattn_error_init(&error);
    clattn_problem_parse(SHAPE, &problem, NULL);
    plan = plan_of(bench.context, SHAPE, "reference");
    buffers_create(&buffers, clattn_context_cl(bench.context), &problem, 0);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    buffers_destroy(&buffers);
    clattn_plan_destroy(plan);
    return 0;
}

static void expect(const clattn_call *call, const char *field, const char *text)
{
    assert_refused(clattn_enqueue(plan, bench.queue, call, 0, NULL, NULL, &error), CLATTN_INVALID_ARGUMENT, &error, field);
    assert_contains(error.message, text);
    assert_true(buffers_untouched(&buffers, bench.queue));
}

/* Buffers whose flags do not allow what the kernels do with them. */
static void wrong_kinds_of_memory_are_refused(void **state)
{
    (void)state;
    cl_mem readable = make(CL_MEM_READ_ONLY), writable = make(CL_MEM_WRITE_ONLY);
    clattn_call call = buffers_call(&buffers, plan);
    call.o.handle = readable;
    expect(&call, "call.o", "CL_MEM_READ_WRITE");
    call = buffers_call(&buffers, plan);
    call.lse.handle = readable;
    expect(&call, "call.lse", "CL_MEM_READ_WRITE");
    call = buffers_call(&buffers, plan);
    call.k.handle = writable;
    expect(&call, "call.k", "CL_MEM_READ_WRITE");
    call = buffers_call(&buffers, plan);
    call.q.kind = (clattn_buffer_kind)77;
    expect(&call, "call.q", "clattn_mem");
    /* What they may do is enough. */
    call = buffers_call(&buffers, plan);
    call.q.handle = call.k.handle = call.v.handle = readable;
    call.o.handle = call.lse.handle = writable;
    call.lse.offset = 32768;
    assert_ok(clattn_enqueue(plan, bench.queue, &call, 0, NULL, NULL, &error), &error);
    assert_int_equal(clFinish(bench.queue), CL_SUCCESS);
    clReleaseMemObject(readable);
    clReleaseMemObject(writable);
}

static void bad_wait_lists_are_refused(void **state)
{
    (void)state;
    const cl_event none[2] = {NULL, NULL};
    const clattn_call call = buffers_call(&buffers, plan);
    assert_refused(clattn_enqueue(plan, bench.queue, &call, 2, none, NULL, &error), CLATTN_INVALID_ARGUMENT, &error,
                   "wait_list");
    assert_refused(clattn_enqueue(plan, bench.queue, &call, 2, NULL, NULL, &error), CLATTN_INVALID_ARGUMENT, &error,
                   "wait_list");
    assert_true(buffers_untouched(&buffers, bench.queue));
}

/* A call whose wait list fails also fails; the queue, the plan and the context stay usable. */
static void a_failed_event_does_no_harm(void **state)
{
    (void)state;
    cl_int code;
    cl_event event = NULL, failing = clCreateUserEvent(clattn_context_cl(bench.context), &code);
    assert_int_equal(code, CL_SUCCESS);
    const clattn_call call = buffers_call(&buffers, plan);
    assert_ok(clattn_enqueue(plan, bench.queue, &call, 1, &failing, &event, &error), &error);
    assert_int_equal(clSetUserEventStatus(failing, -5), CL_SUCCESS);
    assert_int_not_equal(clWaitForEvents(1, &event), CL_SUCCESS);
    clReleaseEvent(event);
    clReleaseEvent(failing);
}

static void images_are_refused_as_buffers(void **state)
{
    (void)state;
    static const cl_image_format format = {CL_RGBA, CL_FLOAT};
    cl_image_desc about;
    cl_bool there = CL_FALSE;
    cl_int code;
    clGetDeviceInfo(clattn_context_device(bench.context), CL_DEVICE_IMAGE_SUPPORT, sizeof there, &there, NULL);
    if (!there) {
        skip();
    }
    memset(&about, 0, sizeof about);
    about.image_type = CL_MEM_OBJECT_IMAGE2D;
    about.image_width = about.image_height = 64;
    cl_mem image = clCreateImage(clattn_context_cl(bench.context), CL_MEM_READ_WRITE, &format, &about, NULL, &code);
    assert_int_equal(code, CL_SUCCESS);
    clattn_call call = buffers_call(&buffers, plan);
    call.v.handle = image;
    expect(&call, "call.v", "clCreateBuffer");
    clReleaseMemObject(image);
}

/* A sub-buffer ends where it says, although its parent buffer goes on. */
static void sub_buffers_end_where_they_say(void **state)
{
    (void)state;
    cl_mem whole = make(CL_MEM_READ_WRITE);
    const size_t needed = 2 * 4 * 5 * 4 * sizeof(float);
    for (size_t cut = 0; cut < 2; cut++) {
        const cl_buffer_region region = {4096, needed - cut * sizeof(float)};
        cl_int code;
        cl_mem part = clCreateSubBuffer(whole, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &region, &code);
        assert_int_equal(code, CL_SUCCESS);
        clattn_call call = buffers_call(&buffers, plan);
        call.o = clattn_mem(part, 0);
        if (cut) {
            expect(&call, "call.o", "reach");
        } else {
            assert_ok(clattn_enqueue(plan, bench.queue, &call, 0, NULL, NULL, &error), &error);
        }
        assert_int_equal(clFinish(bench.queue), CL_SUCCESS);
        clReleaseMemObject(part);
    }
    clReleaseMemObject(whole);
}

static void bad_merges_are_refused(void **state)
{
    (void)state;
    clattn_merge m;
    cl_mem mem = make(CL_MEM_READ_WRITE), readable = make(CL_MEM_READ_ONLY);
    clattn_merge_init(&m);
    m.batch = m.heads = m.seq_q = 2;
    m.head_dim = 4;
    m.a = (clattn_partial){.o = clattn_mem(mem, 0),
                           .lse = clattn_mem(mem, 4096),
                           .o_layout = {CLATTN_FP32, {16, 8, 4, 1}},
                           .lse_strides = {.batch = 4, .head = 2, .row = 1}};
    m.b = m.out = m.a;
    const clattn_merge good = m;
#define MERGE() clattn_enqueue_merge(bench.context, bench.queue, &m, 0, NULL, NULL, &error)
    assert_ok(MERGE(), &error);
    m.out.o_layout.strides.head = 0;
    assert_refused(MERGE(), CLATTN_INVALID_ARGUMENT, &error, "merge.out.o_layout.strides.head");
    m = good;
    m.out.lse_strides.row = 0;
    assert_refused(MERGE(), CLATTN_INVALID_ARGUMENT, &error, "merge.out.lse_strides.row");
    m = good;
    m.out.o = clattn_mem(readable, 0);
    assert_refused(MERGE(), CLATTN_INVALID_ARGUMENT, &error, "merge.out.o");
    m = good;
    m.head_dim = -1;
    assert_refused(MERGE(), CLATTN_INVALID_ARGUMENT, &error, "merge.head_dim");
    m = good;
    m.batch = m.heads = m.seq_q = (int64_t)1 << 29; /* their product wraps to 0 */
    assert_refused(MERGE(), CLATTN_INVALID_ARGUMENT, &error, "merge.batch");
    m = good;
    m.struct_size = 8;
    assert_refused(MERGE(), CLATTN_INVALID_ARGUMENT, &error, "merge.struct_size");
    m = good;
    m.a.o_layout.type = (clattn_type)9;
    assert_refused(MERGE(), CLATTN_INVALID_ARGUMENT, &error, "merge.a.o");
    m = good;
    m.seq_q = 0;
    m.out.o_layout.strides.head = 0; /* contiguous tensors without rows have such strides */
    assert_ok(MERGE(), &error);
    assert_int_equal(clFinish(bench.queue), CL_SUCCESS);
    clReleaseMemObject(mem);
    clReleaseMemObject(readable);
}

/* Words in place of numbers, numbers too large for their type, and a very long line. */
static void bad_shapes_are_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {"",
                                        " ",
                                        "q",
                                        "q5",
                                        "d8",
                                        "q5 d",
                                        "q-1 d8",
                                        "q5 d8 q99999999999999999999 ",
                                        "q5 d8 b1e9",
                                        "q5 d8 hq3 hkv2",
                                        "q5 d0",
                                        "q5 d8 softcap=nan",
                                        "q5 d8 softcap=-1",
                                        "q5 d8 scale=inf",
                                        "q5 d8 window=1",
                                        "q5 d8 window=1,2,3",
                                        "q5 d8 mask=",
                                        "q5 d8 bias=kk",
                                        "q5 d8 mask=z",
                                        "q5 d8 packed=int16",
                                        "q5 d8 scores=odd",
                                        "q5 d8 score-heads=1",
                                        "q5 d8 causal=",
                                        "q5 d8 \x01\xff",
                                        "q5 d8 %s%n"};
    clattn_problem p;
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        if (clattn_problem_parse(texts[i], &p, &error) == CLATTN_SUCCESS) {
            if (clattn_supported(bench.context, &p, NULL, &error) == CLATTN_SUCCESS) {
                fail_msg("'%s' is taken", texts[i]);
            }
        }
        assert_true(error.message[0] != '\0');
    }
    enum { LONG = 1 << 20 };
    char *endless = malloc(LONG + 1);
    memset(endless, 'q', LONG);
    endless[LONG] = '\0';
    assert_int_equal(clattn_problem_parse(endless, &p, &error), CLATTN_INVALID_ARGUMENT);
    for (size_t i = 0; i + 3 < LONG; i += 3) {
        memcpy(endless + i, "q5 ", 3);
    }
    (void)clattn_problem_parse(endless, &p, &error);
    free(endless);
}

/* Texts that do not fit are cut, and the needed size is returned. */
static void short_output_buffers_are_not_overrun(void **state)
{
    (void)state;
    size_t needed = 0;
    char text[8] = "1234567";
    assert_int_equal(clattn_plan_describe(plan, text, 4, &needed), CLATTN_SUCCESS);
    assert_true(needed > 4 && strlen(text) == 3);
    assert_string_equal(text + 4, "567");
    assert_int_equal(clattn_plan_describe(plan, NULL, 0, &needed), CLATTN_SUCCESS);
    assert_int_equal(clattn_context_facts(bench.context, text, 1, NULL), CLATTN_SUCCESS);
    assert_string_equal(text, "");
}

/* Finite numbers at the ends of their range, whose quotients and products overflow fp32. */
static void extreme_factors_do_no_harm(void **state)
{
    (void)state;
    static const char *const words[] = {"softcap=3e38", "softcap=1e-45", "scale=3e38", "scale=-3e38 softcap=5", "scale=1e-45"};
    FOR_EACH_ENGINE(engine)
    {
        for (size_t i = 0; i < COUNT_OF(words); i++) {
            char shape[128];
            snprintf(shape, sizeof shape, "hq2 hkv1 q9 k70 d8 dv12 lse mask=qk seed=7 %s", words[i]);
            attend_check(engine, shape);
        }
    }
}

/* After all refusals the library still works. */
static void the_context_still_works_after_all_that(void **state)
{
    (void)state;
    clattn_call call = buffers_call(&buffers, plan);
    assert_ok(clattn_enqueue(plan, bench.queue, &call, 0, NULL, NULL, &error), &error);
    assert_true(buffers_all_one(&buffers, bench.queue));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(null_arguments_are_refused),
        TEST(extreme_problems_are_refused_or_served),
        TEST(products_of_sizes_do_not_wrap),
        TEST(wrong_kinds_of_memory_are_refused),
        TEST(sub_buffers_end_where_they_say),
        TEST(images_are_refused_as_buffers),
        TEST(bad_merges_are_refused),
        TEST(bad_wait_lists_are_refused),
        TEST(a_failed_event_does_no_harm),
        TEST(bad_shapes_are_refused),
        TEST(short_output_buffers_are_not_overrun),
        TEST(extreme_factors_do_no_harm),
        TEST(the_context_still_works_after_all_that),
    };
    return cmocka_run_group_tests(tests, bench_open, bench_close);
}
