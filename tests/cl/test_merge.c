/* SPDX-License-Identifier: Apache-2.0
 * Merging of partial results: infinite LSEs, NaN, and maximum and sum in place of an LSE. */
#include "attend.h"

enum { ROWS = 6, MAX_MEMS = 8 };

static cl_mem mems[MAX_MEMS];
static size_t mem_count;

static cl_mem floats(const float *x, size_t count)
{
    cl_int code;
    const cl_mem mem = clCreateBuffer(clattn_context_cl(bench.context), CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR,
                                      count * sizeof *x, (void *)(uintptr_t)x, &code);
    assert_int_equal(code, CL_SUCCESS);
    assert_true(mem_count < MAX_MEMS);
    mems[mem_count++] = mem;
    return mem;
}

static void release_all(void)
{
    while (mem_count > 0) {
        clReleaseMemObject(mems[--mem_count]);
    }
}

static void get_floats(cl_mem mem, float *x, size_t count)
{
    assert_int_equal(clEnqueueReadBuffer(bench.queue, mem, CL_TRUE, 0, count * sizeof *x, x, 0, NULL, NULL), CL_SUCCESS);
}

/* One head, one element a row. */
static clattn_partial partial(cl_mem o, cl_mem lse, clattn_lse_form form)
{
    return (clattn_partial){.o = clattn_mem(o, 0),
                            .lse = clattn_mem(lse, 0),
                            .o_layout = {CLATTN_FP32, {ROWS, ROWS, 1, 1}},
                            .lse_strides = {.batch = ROWS, .head = ROWS, .row = 1},
                            .lse_form = form};
}

static void merge(const float *a, const float *a_lse, clattn_lse_form a_form, const float *b, const float *b_lse,
                  clattn_lse_form b_form, clattn_lse_form form, float *o, float *lse)
{
    static const float nothing[2 * ROWS];
    const size_t size = form == CLATTN_MAX_AND_SUM ? 2 * ROWS : ROWS;
    const cl_mem whole = floats(nothing, ROWS), whole_lse = floats(nothing, size);
    clattn_merge m;
    clattn_error error;
    clattn_error_init(&error);
    clattn_merge_init(&m);
    m.batch = m.heads = 1;
    m.seq_q = ROWS;
    m.head_dim = 1;
    m.a = partial(floats(a, ROWS), floats(a_lse, a_form == CLATTN_MAX_AND_SUM ? 2 * ROWS : ROWS), a_form);
    m.b = partial(floats(b, ROWS), floats(b_lse, b_form == CLATTN_MAX_AND_SUM ? 2 * ROWS : ROWS), b_form);
    m.out = partial(whole, whole_lse, form);
    assert_ok(clattn_enqueue_merge(bench.context, bench.queue, &m, 0, NULL, NULL, &error), &error);
    get_floats(whole, o, ROWS);
    get_floats(whole_lse, lse, size);
    release_all();
}

/* An infinite LSE takes all the weight, and two of them half each. NaN makes the row NaN. An empty part changes none of these.
 */
static void an_infinite_lse_has_all_the_weight(void **state)
{
    (void)state;
    const float a[ROWS] = {1.0f, 1.0f, 1.0f, 1.0f, 1.0f, 1.0f};
    const float b[ROWS] = {3.0f, 3.0f, 3.0f, 3.0f, 3.0f, 3.0f};
    const float a_lse[ROWS] = {INFINITY, 5.0f, INFINITY, NAN, INFINITY, INFINITY};
    const float b_lse[ROWS] = {5.0f, INFINITY, INFINITY, 2.0f, NAN, -INFINITY};
    const float want[ROWS] = {1.0f, 3.0f, 2.0f, NAN, NAN, 1.0f};
    float o[ROWS], lse[ROWS];
    merge(a, a_lse, CLATTN_LSE, b, b_lse, CLATTN_LSE, CLATTN_LSE, o, lse);
    for (int i = 0; i < ROWS; i++) {
        assert_true(isnan(want[i]) ? isnan(o[i]) && isnan(lse[i]) : o[i] == want[i] && lse[i] == INFINITY);
    }
}

/* At maxima of 1e9 an LSE holds no digit of the sum: 600 and 500 equal weights would count the same. */
static void maximum_and_sum_lose_nothing_where_scores_are_large(void **state)
{
    (void)state;
    const float a[ROWS] = {0.0f, 0.25f, 0.5f, NAN, 0.7f, NAN}, b[ROWS] = {1.0f, 1.0f, 1.0f, 0.3f, NAN, NAN};
    const float a_pair[2 * ROWS] = {-1e9f, 600.0f, 1e9f, 3.0f, 2.0f, 1.5f, -INFINITY, 0.0f, -7.0f, 3.0f, -INFINITY, 0.0f};
    const float b_pair[2 * ROWS] = {-1e9f, 500.0f, 1e9f, 1.0f, 3.0f, 1.0f, 4.0f, 9.0f, -INFINITY, 0.0f, -INFINITY, 0.0f};
    float o[ROWS], pair[2 * ROWS], lse[ROWS];
    merge(a, a_pair, CLATTN_MAX_AND_SUM, b, b_pair, CLATTN_MAX_AND_SUM, CLATTN_MAX_AND_SUM, o, pair);
    assert_near(o[0], 500.0 / 1100.0, 1e-7);
    assert_true(pair[0] == -1e9f && pair[1] == 1100.0f);
    assert_near(o[1], (0.75 + 1.0) / 4.0, 1e-7);
    assert_near(o[2], (0.5 * 1.5 * exp(-1.0) + 1.0) / (1.5 * exp(-1.0) + 1.0), 1e-7);
    assert_near(pair[5], 1.5 * exp(-1.0) + 1.0, 1e-6);
    assert_true(o[3] == 0.3f && pair[6] == 4.0f && pair[7] == 9.0f);
    assert_true(o[4] == 0.7f && pair[8] == -7.0f && pair[9] == 3.0f);
    assert_true(o[5] == 0.0f && pair[10] == -INFINITY && pair[11] == 0.0f);
    /* One of each, into an LSE. */
    const float b_lse[ROWS] = {-1e9f, 1e9f, 3.0f, 4.0f, -INFINITY, -INFINITY};
    merge(a, a_pair, CLATTN_MAX_AND_SUM, b, b_lse, CLATTN_LSE, CLATTN_LSE, o, lse);
    assert_near(o[0], 1.0 / 601.0, 1e-7);
    assert_near(lse[2], 3.0 + log(1.5 * exp(-1.0) + 1.0), 1e-6);
    assert_true(lse[3] == 4.0f && lse[5] == -INFINITY);
}

/* ------------------------------------------------------------------------------------------------ maximum and sum of calls */

enum { KEYS = 1100, FIRST = 600 };

/* Attention of keys begin ... end - 1, whose scores are all `score` and whose V is the number of the key; one element. False:
 * the engine declines. */
static bool attend_part(const char *engine, int64_t begin, int64_t end, int64_t chunk, float score, float *o, float *pair)
{
    static float ones[KEYS], numbers[KEYS];
    const float q[ROWS] = {score, score, score, score, score, score};
    clattn_problem p;
    clattn_plan_options options;
    clattn_plan *plan = NULL;
    clattn_call call;
    clattn_error error;
    char shape[64];
    clattn_error_init(&error);
    snprintf(shape, sizeof shape, "q%d k%d d1 scale=1 lse", ROWS, (int)(end - begin));
    assert_ok(clattn_problem_parse(shape, &p, &error), &error);
    p.lse.form = CLATTN_MAX_AND_SUM;
    clattn_plan_options_init(&options);
    options.engine = engine;
    options.chunk = chunk;
    const clattn_status status = clattn_plan_create(bench.context, &p, &options, &plan, &error);
    if (status == CLATTN_UNSUPPORTED) {
        return false;
    }
    assert_ok(status, &error);
    for (int64_t j = begin; j < end; j++) {
        ones[j - begin] = 1.0f;
        numbers[j - begin] = (float)j;
    }
    clattn_call_init(&call, plan);
    call.q = clattn_mem(floats(q, ROWS), 0);
    call.k = clattn_mem(floats(ones, KEYS), 0);
    call.v = clattn_mem(floats(numbers, KEYS), 0);
    call.o = clattn_mem(floats(q, ROWS), 0);
    call.lse = clattn_mem(floats(ones, 2 * ROWS), 0);
    assert_ok(clattn_enqueue(plan, bench.queue, &call, 0, NULL, NULL, &error), &error);
    get_floats((cl_mem)call.o.handle, o, ROWS);
    get_floats((cl_mem)call.lse.handle, pair, 2 * ROWS);
    clattn_plan_destroy(plan);
    release_all();
    return true;
}

static void parts_of_the_keys_merge_exactly_on_every_engine(void **state)
{
    (void)state;
    static const float scores[] = {0.5f, -1e4f, 1e9f};
    FOR_EACH_ENGINE(engine)
    {
        for (size_t i = 0; i < COUNT_OF(scores); i++) {
            float a[ROWS], b[ROWS], o[ROWS], a_pair[2 * ROWS], b_pair[2 * ROWS], pair[2 * ROWS];
            if (!attend_part(engine, 0, FIRST, -1, scores[i], a, a_pair) ||
                !attend_part(engine, FIRST, KEYS, 256, scores[i], b, b_pair)) {
                continue;
            }
            merge(a, a_pair, CLATTN_MAX_AND_SUM, b, b_pair, CLATTN_MAX_AND_SUM, CLATTN_MAX_AND_SUM, o, pair);
            for (int row = 0; row < ROWS; row++) {
                assert_near(a_pair[2 * row], scores[i], 1.5e-7 * fabs(scores[i]));
                assert_near(a_pair[2 * row + 1], FIRST, 1e-3);
                assert_near(b_pair[2 * row + 1], KEYS - FIRST, 1e-3);
                assert_near(o[row], (KEYS - 1) / 2.0, 2e-4);
                assert_near(pair[2 * row + 1], KEYS, 2e-3);
            }
        }
    }
}

static void an_unknown_form_is_refused(void **state)
{
    (void)state;
    clattn_problem p;
    clattn_plan *plan = NULL;
    clattn_error error;
    clattn_error_init(&error);
    assert_ok(clattn_problem_parse("q1 k1 d8 lse", &p, &error), &error);
    p.lse.form = (clattn_lse_form)7;
    assert_int_equal(clattn_plan_create(bench.context, &p, NULL, &plan, &error), CLATTN_INVALID_ARGUMENT);
    assert_string_equal(error.field, "problem.lse.form");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_infinite_lse_has_all_the_weight),
        cmocka_unit_test(maximum_and_sum_lose_nothing_where_scores_are_large),
        cmocka_unit_test(parts_of_the_keys_merge_exactly_on_every_engine),
        cmocka_unit_test(an_unknown_form_is_refused),
    };
    return cmocka_run_group_tests(tests, bench_open, bench_close);
}
