/* SPDX-License-Identifier: Apache-2.0
 * One plan for a cache that grows: masks and biases as long as the keys of each call, and which problems a plan serves. */
/* ctest: quick */
#include "attend.h"

static clattn_error error;

/* Every query sees one key, whose number depends on batch entry, head and query; V counts the keys, so O is that number. */
struct grown {
    int64_t batch, heads_q, heads_kv, seq_q, capacity;
    bool by_head, by_batch;
};

static int64_t wanted_key(const struct grown *g, int64_t b, int64_t h, int64_t i, int64_t keys)
{
    return (5 * i + (g->by_head ? 3 * h : 0) + (g->by_batch ? 7 * b : 0)) % keys;
}

static clattn_problem problem_of(const struct grown *g, int64_t keys, bool is_bias)
{
    clattn_problem p;
    const int64_t heads = g->by_head ? g->heads_q : 1, matrix = g->seq_q * keys;
    clattn_problem_init(&p);
    p.batch = g->batch, p.heads_q = g->heads_q, p.heads_kv = g->heads_kv;
    p.seq_q = g->seq_q, p.seq_kv = g->capacity, p.head_dim_qk = p.head_dim_v = 1;
    clattn_problem_set_layout(&p, CLATTN_BHSD);
    p.seq_kv = keys;
    if (is_bias) {
        p.bias.present = true;
        p.bias.strides.column = 1, p.bias.strides.row = keys;
        p.bias.strides.head = g->by_head ? matrix : 0, p.bias.strides.batch = g->by_batch ? heads * matrix : 0;
    } else {
        p.mask.present = true;
        p.mask.strides.column = 1, p.mask.strides.row = keys;
        p.mask.strides.head = g->by_head ? matrix : 0, p.mask.strides.batch = g->by_batch ? heads * matrix : 0;
    }
    return p;
}

static cl_mem upload(const void *data, size_t size)
{
    cl_int code;
    cl_mem mem =
        clCreateBuffer(clattn_context_cl(bench.context), CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, size, (void *)data, &code);
    assert_int_equal(code, CL_SUCCESS);
    return mem;
}

/* A buffer of `count` floats: their number within each row, or 0. */
static cl_mem numbers(int64_t count, int64_t row)
{
    float *data = calloc((size_t)count, sizeof *data);
    assert_non_null(data);
    for (int64_t i = 0; row > 0 && i < count; i++)
        data[i] = (float)(i % row);
    cl_mem mem = upload(data, (size_t)count * sizeof *data);
    free(data);
    return mem;
}

static cl_mem pattern(const struct grown *g, int64_t keys, bool is_bias)
{
    const int64_t batch = g->by_batch ? g->batch : 1, heads = g->by_head ? g->heads_q : 1;
    const size_t count = (size_t)(batch * heads * g->seq_q * keys);
    float *bias = malloc(count * sizeof *bias);
    uint8_t *mask = malloc(count);
    assert_true(bias && mask);
    size_t at = 0;
    for (int64_t b = 0; b < batch; b++)
        for (int64_t h = 0; h < heads; h++)
            for (int64_t i = 0; i < g->seq_q; i++)
                for (int64_t j = 0; j < keys; j++, at++) {
                    mask[at] = j == wanted_key(g, b, h, i, keys);
                    bias[at] = mask[at] ? 0.0f : -INFINITY;
                }
    cl_mem mem = is_bias ? upload(bias, count * sizeof *bias) : upload(mask, count);
    free(bias);
    free(mask);
    return mem;
}

static void check_output(const struct grown *g, int64_t keys, cl_mem o)
{
    const size_t count = (size_t)(g->batch * g->heads_q * g->seq_q);
    float *data = malloc(count * sizeof *data);
    assert_non_null(data);
    assert_int_equal(clEnqueueReadBuffer(bench.queue, o, CL_TRUE, 0, count * sizeof *data, data, 0, NULL, NULL), CL_SUCCESS);
    size_t at = 0;
    for (int64_t b = 0; b < g->batch; b++)
        for (int64_t h = 0; h < g->heads_q; h++)
            for (int64_t i = 0; i < g->seq_q; i++, at++)
                assert_near(data[at], (double)wanted_key(g, b, h, i, keys), 1e-6);
    free(data);
}

static void grow(const struct grown *g, const char *engine, bool is_bias)
{
    static const int64_t lengths[] = {1, 17, 64};
    clattn_plan_options options;
    clattn_plan *plan = NULL;
    clattn_plan_options_init(&options);
    options.at_bounds = true;
    options.engine = engine;
    const clattn_problem bounds = problem_of(g, g->capacity, is_bias);
    assert_ok(clattn_plan_create(bench.context, &bounds, &options, &plan, &error), &error);
    cl_mem q = numbers(g->batch * g->heads_q * g->seq_q, 0), k = numbers(g->batch * g->heads_kv * g->capacity, 0);
    cl_mem v = numbers(g->batch * g->heads_kv * g->capacity, g->capacity), o = numbers(g->batch * g->heads_q * g->seq_q, 0);
    for (size_t i = 0; i < COUNT_OF(lengths); i++) {
        const clattn_problem now = problem_of(g, lengths[i], is_bias);
        cl_mem matrix = pattern(g, lengths[i], is_bias);
        clattn_call call;
        assert_true(clattn_plan_serves(plan, &now));
        clattn_call_init(&call, plan);
        clattn_call_set_problem(&call, &now);
        call.q = clattn_mem(q, 0), call.k = clattn_mem(k, 0), call.v = clattn_mem(v, 0), call.o = clattn_mem(o, 0);
        *(is_bias ? &call.bias : &call.mask) = clattn_mem(matrix, 0);
        assert_ok(clattn_enqueue(plan, bench.queue, &call, 0, NULL, NULL, &error), &error);
        check_output(g, lengths[i], o);
        clReleaseMemObject(matrix);
    }
    clReleaseMemObject(q);
    clReleaseMemObject(k);
    clReleaseMemObject(v);
    clReleaseMemObject(o);
    clattn_plan_destroy(plan);
}

static void one_plan_follows_a_growing_cache(void **state)
{
    (void)state;
    const struct grown each = {2, 4, 2, 5, 64, true, true}, shared = {1, 8, 8, 200, 64, false, false};
    FOR_EACH_ENGINE(engine)
    {
        clattn_problem p = problem_of(&each, 64, true);
        clattn_plan_options options;
        clattn_plan_options_init(&options);
        options.at_bounds = true;
        options.engine = engine;
        if (clattn_supported(bench.context, &p, &options, NULL) != CLATTN_SUCCESS)
            continue;
        grow(&each, engine, true);
        grow(&each, engine, false);
        grow(&shared, engine, true); /* many rows share the mask, so a pass classifies its tiles first */
    }
}

/* K and V without gaps between their heads: each key more moves all heads but the first. O of row i of head h is that of V,
 * which counts keys from 100 h on, averaged over the keys so far. */
static void a_cache_without_gaps_grows_over_one_plan(void **state)
{
    (void)state;
    enum { HEADS = 3, MOST = 40, DIM = 8 };
    static const char *const engines[] = {NULL, "simt"};
    for (size_t e = 0; e < COUNT_OF(engines); e++) {
        clattn_plan_options options;
        clattn_problem p;
        clattn_plan *plan = NULL;
        clattn_plan_options_init(&options);
        options.engine = engines[e];
        assert_ok(clattn_problem_parse("hq3 q1 k40 d8 lse", &p, &error), &error);
        assert_ok(clattn_plan_create(bench.context, &p, &options, &plan, &error), &error);
        cl_mem q = numbers(HEADS * DIM, 0), k = numbers(HEADS * MOST * DIM, 0);
        cl_mem o = numbers(HEADS * DIM, 0), lse = numbers(HEADS, 0);
        for (int64_t keys = 1; keys <= MOST; keys += 13) {
            float values[HEADS * MOST * DIM], out[HEADS * DIM];
            clattn_problem now = p;
            clattn_call call;
            now.seq_kv = keys;
            clattn_problem_set_layout(&now, CLATTN_BHSD);
            for (int i = 0; i < HEADS * keys * DIM; i++)
                values[i] = (float)(i / DIM % keys + 100 * (i / DIM / keys));
            cl_mem v = upload(values, sizeof values);
            assert_true(clattn_plan_serves(plan, &now));
            clattn_call_init(&call, plan);
            clattn_call_set_problem(&call, &now);
            assert_int_equal(call.k_strides.head, keys * DIM);
            call.q = clattn_mem(q, 0), call.k = clattn_mem(k, 0), call.v = clattn_mem(v, 0), call.o = clattn_mem(o, 0);
            call.lse = clattn_mem(lse, 0);
            assert_ok(clattn_enqueue(plan, bench.queue, &call, 0, NULL, NULL, &error), &error);
            assert_int_equal(clEnqueueReadBuffer(bench.queue, o, CL_TRUE, 0, sizeof out, out, 0, NULL, NULL), CL_SUCCESS);
            for (int h = 0; h < HEADS; h++)
                assert_near(out[h * DIM], 100.0 * h + (double)(keys - 1) / 2.0, 1e-4);
            /* A refusal names what its kernels rely on. */
            call.k_strides.head = keys * DIM + 2;
            assert_refused(clattn_enqueue(plan, bench.queue, &call, 0, NULL, NULL, &error), CLATTN_INVALID_ARGUMENT, &error,
                           "call.k_strides.head");
            call.k_strides.head = keys * DIM, call.v_strides.column = 4;
            assert_refused(clattn_enqueue(plan, bench.queue, &call, 0, NULL, NULL, &error), CLATTN_INVALID_ARGUMENT, &error,
                           "call.v_strides.column");
            call.v_strides.column = 1, call.lse_strides.head = 0;
            assert_refused(clattn_enqueue(plan, bench.queue, &call, 0, NULL, NULL, &error), CLATTN_INVALID_ARGUMENT, &error,
                           "call.lse_strides.head");
            clReleaseMemObject(v);
        }
        clReleaseMemObject(q);
        clReleaseMemObject(k);
        clReleaseMemObject(o);
        clReleaseMemObject(lse);
        clattn_plan_destroy(plan);
    }
}

static clattn_problem basic(void)
{
    clattn_problem p;
    assert_ok(clattn_problem_parse("b2 hq4 hkv2 q5 k7 d8 dv4 causal=3", &p, &error), &error);
    p.bias.present = true;
    p.bias.strides.column = 1, p.bias.strides.row = 7, p.bias.strides.head = 35;
    return p;
}

static void a_plan_serves_what_a_call_carries(void **state)
{
    (void)state;
    clattn_plan *plan = NULL;
    const clattn_problem made_for = basic();
    clattn_problem p = made_for;
    assert_ok(clattn_plan_create(bench.context, &made_for, NULL, &plan, &error), &error);
    assert_true(clattn_plan_serves(plan, &made_for));
    p.batch = 1, p.seq_q = 2, p.seq_kv = 3, p.scale = 2.0f, p.offset = 9;
    p.k.strides.row = 16, p.v.strides.head *= 2, p.o.strides.batch += 8; /* as aligned as the plan's */
    p.window.left = 4, p.bias.columns = 2, p.bias.strides.row = 3, p.bias.strides.head = 6;
    assert_true(clattn_plan_serves(plan, &p));

    clattn_call call;
    clattn_call_init(&call, plan);
    clattn_call_set_problem(&call, &p);
    assert_int_equal(call.struct_size, sizeof call);
    assert_true(call.batch == 1 && call.seq_q == 2 && call.seq_kv == 3 && call.scale == 2.0f && call.offset == 9);
    assert_true(call.window_left == 4 && call.window_right == -1 && call.bias_columns == 2);
    assert_true(call.bias_strides.row == 3 && call.bias_strides.head == 6 && call.bias_strides.batch == 0);
    p.scale = NAN;
    clattn_call_set_problem(&call, &p);
    assert_near(call.scale, 1.0 / sqrt(8.0), 1e-7);
    clattn_plan_destroy(plan);
}

#define NOT_SERVED(change)                                                                                                     \
    do {                                                                                                                       \
        clattn_problem p = basic();                                                                                            \
        change;                                                                                                                \
        if (clattn_plan_serves(plan, &p))                                                                                      \
            fail_msg("a plan says that it serves a problem with " #change);                                                    \
    } while (0)

static void a_plan_does_not_serve_other_fixed_options(void **state)
{
    (void)state;
    clattn_plan *plan = NULL;
    const clattn_problem made_for = basic();
    assert_ok(clattn_plan_create(bench.context, &made_for, NULL, &plan, &error), &error);
    NOT_SERVED(p.batch = 3);
    NOT_SERVED(p.seq_q = 6);
    NOT_SERVED(p.seq_kv = 8);
    NOT_SERVED(p.heads_q = 2);
    NOT_SERVED(p.heads_kv = 1);
    NOT_SERVED(p.head_dim_qk = 4);
    NOT_SERVED(p.head_dim_v = 3);
    NOT_SERVED(p.q.type = CLATTN_FP16);
    NOT_SERVED(p.k.strides.row = 10);
    NOT_SERVED(p.k.strides.row = -8);
    NOT_SERVED(p.k.strides.column = 8);
    NOT_SERVED(p.v.strides.head += 2);
    NOT_SERVED(p.o.strides.batch += 1);
    NOT_SERVED(p.causal = false);
    NOT_SERVED(p.corner = CLATTN_BOTTOM_RIGHT);
    NOT_SERVED(p.lse.present = true);
    NOT_SERVED(p.scores.kind = CLATTN_SCORES_RAW);
    NOT_SERVED(p.softcap = 1.0f);
    NOT_SERVED(p.sinks = true);
    NOT_SERVED(p.mask.present = true);
    NOT_SERVED(p.bias.present = false);
    NOT_SERVED(p.bias.type = CLATTN_FP16);
    NOT_SERVED(p.bias.factors = true);
    NOT_SERVED(p.bias.strides.head = 0);
    NOT_SERVED(p.bias.strides.batch = 140);
    NOT_SERVED(p.alibi.present = true);
    NOT_SERVED(p.q_lengths = CLATTN_INT32);
    NOT_SERVED(p.kv_lengths = CLATTN_INT32);
    NOT_SERVED(p.offsets = CLATTN_INT64);
    NOT_SERVED(p.packed.starts = CLATTN_INT32);
    NOT_SERVED(p.scale = INFINITY); /* not valid for anybody */
    assert_false(clattn_plan_serves(NULL, &made_for));
    assert_false(clattn_plan_serves(plan, NULL));
    clattn_plan_destroy(plan);
}

static void a_stride_along_one_element_does_not_matter(void **state)
{
    (void)state;
    clattn_plan *plan = NULL;
    clattn_problem p;
    assert_ok(clattn_problem_parse("hq2 q1 k7 d8", &p, &error), &error);
    assert_ok(clattn_plan_create(bench.context, &p, NULL, &plan, &error), &error);
    p.k.strides.batch = p.q.strides.row = 12345;
    assert_true(clattn_plan_serves(plan, &p));
    p.k.strides.row += 1;
    assert_false(clattn_plan_serves(plan, &p));
    clattn_plan_destroy(plan);
}

/* One head and one query: rows and heads of the scores are as long as the keys, whatever their number. */
static void scores_of_one_row_may_be_of_any_length(void **state)
{
    (void)state;
    clattn_plan *plan = NULL;
    clattn_problem p;
    assert_ok(clattn_problem_parse("q1 k9 d8 scores=softmax", &p, &error), &error);
    assert_ok(clattn_plan_create(bench.context, &p, NULL, &plan, &error), &error);
    assert_ok(clattn_problem_parse("q1 k7 d8 scores=softmax", &p, &error), &error);
    assert_true(clattn_plan_serves(plan, &p));
    clattn_plan_destroy(plan);
}

static void shared_heads_and_batches_stay_shared(void **state)
{
    (void)state;
    const struct grown g = {2, 4, 2, 5, 64, true, false};
    const clattn_problem p = problem_of(&g, 64, true);
    clattn_plan *plan = NULL;
    clattn_call call;
    assert_ok(clattn_plan_create(bench.context, &p, NULL, &plan, &error), &error);
    cl_mem mem = numbers(g.batch * g.heads_q * g.seq_q * g.capacity, 0);
    clattn_call_init(&call, plan);
    call.q = call.k = call.v = call.o = call.bias = clattn_mem(mem, 0);
    call.bias_strides.head = 0;
    assert_refused(clattn_enqueue(plan, bench.queue, &call, 0, NULL, NULL, &error), CLATTN_INVALID_ARGUMENT, &error,
                   "call.bias_strides.head");
    call.bias_strides.head = p.bias.strides.head, call.bias_strides.batch = 1;
    assert_refused(clattn_enqueue(plan, bench.queue, &call, 0, NULL, NULL, &error), CLATTN_INVALID_ARGUMENT, &error,
                   "call.bias_strides.batch");
    call.bias_strides.batch = 0, call.bias_strides.row = (int64_t)1 << 40;
    assert_refused(clattn_enqueue(plan, bench.queue, &call, 0, NULL, NULL, &error), CLATTN_INVALID_ARGUMENT, &error,
                   "call.bias");
    clReleaseMemObject(mem);
    clattn_plan_destroy(plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cache_without_gaps_grows_over_one_plan),
        cmocka_unit_test(one_plan_follows_a_growing_cache),
        cmocka_unit_test(a_plan_serves_what_a_call_carries),
        cmocka_unit_test(a_plan_does_not_serve_other_fixed_options),
        cmocka_unit_test(a_stride_along_one_element_does_not_matter),
        cmocka_unit_test(scores_of_one_row_may_be_of_any_length),
        cmocka_unit_test(shared_heads_and_batches_stay_shared),
    };
    clattn_error_init(&error);
    return cmocka_run_group_tests(tests, bench_open, bench_close);
}
