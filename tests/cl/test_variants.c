/* SPDX-License-Identifier: Apache-2.0
 * A plan holds the kernels for calls below its bounds. Each call uses the kernel that a plan made for it would use: the same
 * bits, a workspace of its own size, and no build after the first call. */
#include "attend.h"
#include "buffers.h"

#include <string.h>

static clattn_error error;

static clattn_plan *make(const char *shape, const char *engine, bool at_bounds, clattn_problem *problem)
{
    clattn_plan_options options;
    clattn_plan *plan = NULL;
    clattn_plan_options_init(&options);
    options.engine = engine;
    options.at_bounds = at_bounds;
    assert_ok(clattn_problem_parse(shape, problem, &error), &error);
    assert_ok(clattn_plan_create(bench.context, problem, &options, &plan, &error), &error);
    return plan;
}

/* Numbers that are neither equal nor ordered. */
static cl_mem noise(size_t count, unsigned seed)
{
    cl_int code;
    float *data = malloc(count * sizeof *data);
    assert_non_null(data);
    for (size_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        data[i] = (float)(seed >> 8) / (float)(1 << 23) - 1.0f;
    }
    cl_mem mem = clCreateBuffer(clattn_context_cl(bench.context), CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR,
                                count * sizeof *data, data, &code);
    assert_int_equal(code, CL_SUCCESS);
    free(data);
    return mem;
}

#define BOUNDS "hq2 hkv1 q9 k1100 d16"

static void a_small_call_has_the_bits_of_its_own_plan(void **state)
{
    (void)state;
    static const struct {
        int64_t seq_q, seq_kv;
    } calls[] = {{9, 1100}, {9, 40}, {1, 1100}, {1, 40}, {2, 1030}, {4, 100}, {5, 1024}};
    enum { MOST = 2 * 9 * 16 };
    cl_mem q = noise(MOST, 1), k = noise(1100 * 16, 2), v = noise(1100 * 16, 3), o = noise(MOST, 4);
    static const char *const engines[] = {NULL, "simt"};
    for (size_t e = 0; e < COUNT_OF(engines); e++) {
        const char *const engine = engines[e];
        clattn_problem problem;
        clattn_plan *plan = make(BOUNDS, engine, false, &problem);
        const size_t builds = clattn_context_build_count(bench.context);
        for (size_t i = 0; i < COUNT_OF(calls); i++) {
            float results[2][MOST];
            clattn_problem own = problem;
            clattn_plan_options options;
            clattn_plan *plans[] = {plan, NULL};
            clattn_plan_options_init(&options);
            options.engine = engine;
            options.at_bounds = true;
            own.seq_q = calls[i].seq_q, own.seq_kv = calls[i].seq_kv;
            assert_ok(clattn_plan_create(bench.context, &own, &options, &plans[1], &error), &error);
            for (int j = 0; j < 2; j++) {
                clattn_call call;
                clattn_call_init(&call, plans[j]);
                call.seq_q = own.seq_q, call.seq_kv = own.seq_kv;
                call.q = clattn_mem(q, 0), call.k = clattn_mem(k, 0), call.v = clattn_mem(v, 0), call.o = clattn_mem(o, 0);
                assert_ok(clattn_enqueue(plans[j], bench.queue, &call, 0, NULL, NULL, &error), &error);
                assert_int_equal(clEnqueueReadBuffer(bench.queue, o, CL_TRUE, 0, sizeof results[j], results[j], 0, NULL, NULL),
                                 CL_SUCCESS);
            }
            if (memcmp(results[0], results[1], sizeof results[0]) != 0) {
                fail_msg("%s, q%d k%d: other bits than those of a plan for it", engine ? engine : "any engine", (int)own.seq_q,
                         (int)own.seq_kv);
            }
            clattn_plan_destroy(plans[1]);
        }
        /* Neither the calls nor the plans made for them had anything to build. */
        assert_int_equal(clattn_context_build_count(bench.context), builds);
        clattn_plan_destroy(plan);
    }
    clReleaseMemObject(q);
    clReleaseMemObject(k);
    clReleaseMemObject(v);
    clReleaseMemObject(o);
}

static void calls_at_the_bounds_need_one_kernel(void **state)
{
    (void)state;
    char text[16384];
    struct bench own;
    clattn_problem problem;
    bench_context_open(&own, NULL);
    const struct bench outer = bench;
    bench = own;
    clattn_plan *plan = make("hq2 q40 k50 d16", NULL, true, &problem);
    assert_int_equal(clattn_context_build_count(own.context), 1);
    assert_int_equal(clattn_plan_describe(plan, text, sizeof text, NULL), CLATTN_SUCCESS);
    assert_null(strstr(text, "smaller calls"));
    clattn_plan_destroy(plan);
    bench = outer;
    bench_context_close(&own);
}

/* The list of variants is part of the description; on a CPU one query has an engine of its own. */
static void the_description_lists_variants(void **state)
{
    (void)state;
    char text[16384], facts[8192];
    clattn_problem problem;
    clattn_plan *plan = make(BOUNDS, NULL, false, &problem);
    assert_int_equal(clattn_plan_describe(plan, text, sizeof text, NULL), CLATTN_SUCCESS);
    assert_int_equal(clattn_context_facts(bench.context, facts, sizeof facts, NULL), CLATTN_SUCCESS);
    if (strstr(facts, "device_kind=cpu")) {
        assert_contains(text, "smaller calls: by cpu_decode\n");
    }
    clattn_plan_destroy(plan);
}

static bool count_progress(void *user, size_t done, size_t count)
{
    size_t *const calls = user;
    assert_true(count == 1 && done == *calls);
    ++*calls;
    return true;
}

/* Prefill, then decoding of one to eight queries at a time: a warm-up at the largest sizes builds everything, for one plan and
 * for plans of every size, the one-call form included. */
static void a_chat_builds_nothing_after_a_warm_up(void **state)
{
    (void)state;
    static const int64_t chat[][2] = {{1, 1},    {7, 7},    {33, 33},   {500, 500}, {2048, 2048}, {1, 100},
                                      {1, 1023}, {1, 1024}, {2, 1500},  {3, 900},   {4, 2049},    {5, 4100},
                                      {8, 60},   {8, 8192}, {16, 3000}, {17, 5000}, {100, 8192},  {1024, 7000}};
    struct bench own;
    size_t calls = 0;
    clattn_problem largest;
    const clattn_problem *const problems[] = {&largest};
    bench_context_open(&own, NULL);
    assert_ok(clattn_problem_parse("hq2 q2048 k8192 d16 causal=bottom-right", &largest, &error), &error);
    assert_ok(clattn_warm_up(own.context, problems, 1, NULL, count_progress, &calls, &error), &error);
    assert_int_equal(calls, 2);
    const size_t builds = clattn_context_build_count(own.context);
    assert_true(builds >= 1);
    for (size_t i = 0; i < COUNT_OF(chat); i++) {
        clattn_problem p = largest;
        clattn_plan_options options;
        p.seq_q = chat[i][0], p.seq_kv = chat[i][1];
        clattn_problem_set_layout(&p, CLATTN_BHSD);
        clattn_plan_options_init(&options);
        for (int at_bounds = 0; at_bounds < 2; at_bounds++) {
            clattn_plan *plan = NULL;
            options.at_bounds = at_bounds != 0;
            assert_ok(clattn_plan_create(own.context, &p, &options, &plan, &error), &error);
            if (clattn_context_build_count(own.context) != builds) {
                fail_msg("q%d k%d builds", (int)p.seq_q, (int)p.seq_kv);
            }
            clattn_plan_destroy(plan);
        }
    }
    assert_refused(clattn_warm_up(NULL, problems, 1, NULL, NULL, NULL, &error), CLATTN_INVALID_ARGUMENT, &error, "context");
    bench_context_close(&own);
}

/* With every option that needs a buffer and any strides, the launches of a warm-up stay within their buffers. */
static void any_problem_can_be_warmed_up(void **state)
{
    (void)state;
    static const char *const shapes[] = {
        "b2 hq4 hkv2 q40 k50 d8 lse mask=bhqk bias=hqk alibi sinks q-lengths kv-lengths=int64 scores=softmax",
        "b3 hq2 q5 k1100 d8 fp16 causal=bottom-right packed",
        "b2 hq2 q0 k5 d8",
        "hq2 q3 k0 d8 lse",
    };
    clattn_plan_options options;
    clattn_plan_options_init(&options);
    options.at_bounds = true;
    for (size_t i = 0; i < COUNT_OF(shapes); i++) {
        clattn_problem p;
        const clattn_problem *const problems[] = {&p};
        assert_ok(clattn_problem_parse(shapes[i], &p, &error), &error);
        if (i == 0) {
            p.k.strides = (clattn_strides){1000, -400, 1, 50};
        }
        assert_ok(clattn_warm_up(bench.context, problems, 1, &options, NULL, NULL, &error), &error);
    }
}

/* The speed of each variant's engine is measured, of those for few queries too. */
static void a_plan_with_variants_may_be_sliced(void **state)
{
    (void)state;
    clattn_problem problem;
    clattn_plan_options options;
    clattn_plan *plan = NULL;
    clattn_plan_options_init(&options);
    options.max_launch_ms = 10.0;
    assert_ok(clattn_problem_parse("hq2 q64 k1100 d16", &problem, &error), &error);
    assert_ok(clattn_plan_create(bench.context, &problem, &options, &plan, &error), &error);
    clattn_plan_destroy(plan);
}

static void a_call_needs_the_workspace_of_its_size(void **state)
{
    (void)state;
    clattn_problem problem;
    if (!engine_serves("cpu", "b256 q8 k32768 d16")) {
        skip();
    }
    clattn_plan *plan = make("b256 q8 k32768 d16", "cpu", true, &problem);
    clattn_call call;
    size_t few = 0, many = 0, whole = 0;
    cl_int code;
    clattn_call_init(&call, plan);
    assert_ok(clattn_call_workspace(plan, &call, &whole, &error), &error);
    assert_int_equal(whole, clattn_workspace_size(plan));
    assert_true(whole > (size_t)256 * 8 * 64 * 16 * 4);
    call.batch = 1, call.seq_q = 1, call.seq_kv = 600;
    assert_ok(clattn_call_workspace(plan, &call, &many, &error), &error);
    call.seq_kv = 100;
    assert_ok(clattn_call_workspace(plan, &call, &few, &error), &error);
    assert_true(few < 256 && many <= 512);

    cl_context cl = clattn_context_cl(bench.context);
    cl_mem in = noise(600 * 16, 1), out = noise(16, 2);
    cl_mem enough = clCreateBuffer(cl, 0, many, NULL, &code), small = clCreateBuffer(cl, 0, many - 4, NULL, &code);
    call.seq_kv = 600;
    call.q = call.k = call.v = clattn_mem(in, 0), call.o = clattn_mem(out, 0);
    call.workspace = clattn_mem(small, 0);
    assert_refused(clattn_enqueue(plan, bench.queue, &call, 0, NULL, NULL, &error), CLATTN_INVALID_ARGUMENT, &error,
                   "call.workspace");
    call.workspace = clattn_mem(enough, 0);
    assert_ok(clattn_enqueue(plan, bench.queue, &call, 0, NULL, NULL, &error), &error);
    /* One that the library makes grows with the calls of a queue. */
    call.workspace = (clattn_buffer){0};
    for (call.seq_kv = 1; call.seq_kv < 600; call.seq_kv += 149) {
        assert_ok(clattn_enqueue(plan, bench.queue, &call, 0, NULL, NULL, &error), &error);
    }
    assert_int_equal(clFinish(bench.queue), CL_SUCCESS);
    call.seq_q = 9;
    assert_refused(clattn_call_workspace(plan, &call, &few, &error), CLATTN_INVALID_ARGUMENT, &error, "call.seq_q");
    assert_refused(clattn_call_workspace(NULL, &call, &few, &error), CLATTN_INVALID_ARGUMENT, &error, "plan");
    clReleaseMemObject(in);
    clReleaseMemObject(out);
    clReleaseMemObject(enough);
    clReleaseMemObject(small);
    clattn_plan_destroy(plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_small_call_has_the_bits_of_its_own_plan),
        cmocka_unit_test(calls_at_the_bounds_need_one_kernel),
        cmocka_unit_test(the_description_lists_variants),
        cmocka_unit_test(a_chat_builds_nothing_after_a_warm_up),
        cmocka_unit_test(any_problem_can_be_warmed_up),
        cmocka_unit_test(a_call_needs_the_workspace_of_its_size),
        cmocka_unit_test(a_plan_with_variants_may_be_sliced),
    };
    clattn_error_init(&error);
    return cmocka_run_group_tests(tests, bench_open, bench_close);
}
