/* SPDX-License-Identifier: Apache-2.0
 * Numbers, on every engine: cases from public bug reports of attention kernels, each with an exact answer. */
/* ctest: quick */
#include "attend.h"

#include "half.h"

static void set_row(const struct trial_tensor *tensor, int64_t s, float x)
{
    for (int64_t d = 0; d < tensor->size[3]; d++) {
        trial_set(tensor, 0, 0, s, d, x);
    }
}

static float o_at(const struct attend *a, int64_t h, int64_t s, int64_t d) { return trial_get(&a->data.o, 0, h, s, d); }

static float lse_at(const struct attend *a, int64_t h, int64_t s) { return trial_get(&a->data.lse, 0, h, s, 0); }

/* With the wrong corner, decoding reads only one key. */
static void the_causal_corner_is_the_one_asked_for(void **state)
{
    (void)state;
    static const struct {
        const char *shape;
        float want;
    } rows[] = {
        {"q1 k2 d1 causal=top-left", 5.0f},
        {"q1 k2 d1 causal=bottom-right", 7.5f},
        {"q1 k2 d1", 7.5f},
        {"q1 k2 d1 causal", 5.0f},
        {"q1 k2 d1 causal=0", 5.0f},
        {"q1 k2 d1 causal=1", 7.5f},
        {"q1 k2 d1 causal=-1", 0.0f},
        {"q1 k2 d1 causal=1000000000000", 7.5f},
        {"q1 k2 d1 causal=-1000000000000", 0.0f},
    };
    FOR_EACH_ENGINE(engine)
    {
        for (size_t i = 0; i < COUNT_OF(rows); i++) {
            struct attend a;
            attend_begin(&a, rows[i].shape);
            trial_set(&a.data.v, 0, 0, 0, 0, 5.0f);
            trial_set(&a.data.v, 0, 0, 1, 0, 10.0f);
            if (attend_run(&a, engine)) {
                assert_near(o_at(&a, 0, 0, 0), rows[i].want, 1e-6);
            }
            attend_end(&a);
        }
    }
}

/* The product of Q and K exceeds the largest fp16 number before it is scaled. */
static void products_past_the_largest_fp16_number_are_right(void **state)
{
    (void)state;
    FOR_EACH_ENGINE(engine)
    {
        struct attend a;
        attend_begin(&a, "q1 k4 d128 fp16 lse");
        attend_fill(&a.data.q, 32.0f);
        attend_fill(&a.data.k, 32.0f);
        for (int64_t j = 0; j < 4; j++) {
            set_row(&a.data.v, j, (float)(j + 1));
        }
        if (attend_run(&a, engine)) {
            assert_near(o_at(&a, 0, 0, 0), 2.5, 2e-3);
            assert_near(o_at(&a, 0, 0, 127), 2.5, 2e-3);
            assert_near(lse_at(&a, 0, 0), 131072.0 / sqrt(128.0) + log(4.0), 0.01);
        }
        attend_end(&a);
    }
}

/* Sums in fp16 would overflow or drift over a long context. */
static void sums_over_a_long_context_do_not_drift(void **state)
{
    (void)state;
    FOR_EACH_ENGINE(engine)
    {
        struct attend a;
        attend_begin(&a, "q1 k4096 d8 fp16");
        attend_fill(&a.data.v, 30000.0f);
        if (attend_run(&a, engine)) {
            assert_near(o_at(&a, 0, 0, 0), 30000.0, 16.0);
        }
        attend_end(&a);
        attend_check(engine, "q1 k65536 d8 fp16");
    }
}

/* A maximum that rises by 15 with each block, then falls. */
static void a_maximum_that_rises_with_each_block_is_followed(void **state)
{
    (void)state;
    FOR_EACH_ENGINE(engine)
    {
        for (int falling = 0; falling < 2; falling++) {
            struct attend a;
            attend_begin(&a, "q3 k1024 d8 fp16 scale=1 lse");
            attend_fill(&a.data.q, 1.0f);
            for (int64_t j = 0; j < 1024; j++) {
                const int64_t block = falling ? 7 - j / 128 : j / 128;
                trial_set(&a.data.k, 0, 0, j, 0, 15.0f * (float)block);
                for (int64_t d = 0; d < 8; d++) {
                    trial_set(&a.data.v, 0, 0, j, d, (float)((j * 37 + d * 11) % 17) / 8.0f - 1.0f);
                }
            }
            if (attend_run(&a, engine)) {
                assert_near(lse_at(&a, 0, 2), 105.0 + log(128.0), 1e-3);
            }
            attend_end(&a);
        }
    }
}

/* No option is accepted and then ignored: flipping each changes a fixed output by a known amount. */
static void every_option_changes_the_output(void **state)
{
    (void)state;
    static const struct {
        const char *shape;
        double want;
    } rows[] = {
        /* keys 0, ln 3 at scale 1; V = 0, 1 */
        {"q1 k2 d1 scale=1", 0.75},  {"q1 k2 d1 scale=0", 0.5},        {"q1 k2 d1 scale=2", 0.9},
        {"q1 k2 d1 scale=-1", 0.25}, {"q1 k2 d1 scale=1 causal", 0.0}, {"q1 k2 d1 scale=1 causal=1", 0.75},
    };
    FOR_EACH_ENGINE(engine)
    {
        for (size_t i = 0; i < COUNT_OF(rows); i++) {
            struct attend a;
            attend_begin(&a, rows[i].shape);
            attend_fill(&a.data.q, 1.0f);
            trial_set(&a.data.k, 0, 0, 1, 0, logf(3.0f));
            trial_set(&a.data.v, 0, 0, 1, 0, 1.0f);
            if (attend_run(&a, engine)) {
                assert_near(o_at(&a, 0, 0, 0), rows[i].want, 1e-6);
            }
            attend_end(&a);
        }
    }
}

static void a_scale_of_zero_gives_the_mean(void **state)
{
    (void)state;
    static const double outputs[] = {1.0, 1.5, 2.0};
    FOR_EACH_ENGINE(engine)
    {
        struct attend a;
        attend_begin(&a, "q3 k3 d1 scale=0 causal lse");
        attend_fill(&a.data.q, 3.0f);
        for (int64_t j = 0; j < 3; j++) {
            trial_set(&a.data.k, 0, 0, j, 0, (float)(7 + j));
            trial_set(&a.data.v, 0, 0, j, 0, (float)(1 + j));
        }
        if (attend_run(&a, engine)) {
            for (int64_t i = 0; i < 3; i++) {
                assert_near(o_at(&a, 0, i, 0), outputs[i], 1e-6);
                assert_near(lse_at(&a, 0, i), log((double)(i + 1)), 1e-6);
            }
        }
        attend_end(&a);
    }
}

/* The maximum is taken over scores that already have the sign of the scale. */
static void a_negative_scale_reverses_the_order_of_keys(void **state)
{
    (void)state;
    FOR_EACH_ENGINE(engine)
    {
        struct attend a;
        attend_begin(&a, "q1 k2 d1 scale=-1");
        trial_set(&a.data.q, 0, 0, 0, 0, 1.0f);
        trial_set(&a.data.k, 0, 0, 0, 0, 1.0f);
        trial_set(&a.data.k, 0, 0, 1, 0, 2.0f);
        trial_set(&a.data.v, 0, 0, 1, 0, 1.0f);
        if (attend_run(&a, engine)) {
            assert_near(o_at(&a, 0, 0, 0), 0.26894142, 1e-6);
        }
        /* Scores of +-60. */
        trial_set(&a.data.k, 0, 0, 0, 0, 60.0f);
        trial_set(&a.data.k, 0, 0, 1, 0, -60.0f);
        if (attend_run(&a, engine)) {
            assert_near(o_at(&a, 0, 0, 0), 1.0, 1e-6);
        }
        attend_end(&a);
    }
}

static void a_nan_in_a_query_stays_in_its_row(void **state)
{
    (void)state;
    FOR_EACH_ENGINE(engine)
    {
        struct attend a;
        attend_begin(&a, "hq2 q40 k50 d8 lse");
        for (int64_t i = 0; i < 40; i++) {
            for (int64_t h = 0; h < 2; h++) {
                for (int64_t d = 0; d < 8; d++) {
                    trial_set(&a.data.q, 0, h, i, d, (float)((i + d * 3 + h) % 7) / 7.0f);
                }
            }
        }
        for (int64_t j = 0; j < 50; j++) {
            set_row(&a.data.k, j, (float)(j % 5) / 5.0f);
            set_row(&a.data.v, j, (float)(j % 3));
        }
        trial_set(&a.data.q, 0, 1, 21, 5, NAN);
        if (attend_run(&a, engine)) {
            for (int64_t i = 0; i < 40; i++) {
                assert_false(isnan(o_at(&a, 0, i, 0)));
                assert_int_equal(isnan(o_at(&a, 1, i, 0)) != 0, i == 21);
                assert_int_equal(isnan(o_at(&a, 1, i, 7)) != 0, i == 21);
                assert_int_equal(isnan(lse_at(&a, 1, i)) != 0, i == 21);
            }
        }
        attend_end(&a);
    }
}

/* NaN in a query that sees no key leaves zeros; +inf in one score leaves the other rows unchanged. */
static void a_row_without_keys_ignores_nan_in_its_query(void **state)
{
    (void)state;
    FOR_EACH_ENGINE(engine)
    {
        struct attend a;
        attend_begin(&a, "q4 k2 d8 lse causal=bottom-right");
        attend_fill(&a.data.v, 3.0f);
        set_row(&a.data.q, 0, NAN);
        if (attend_run(&a, engine)) {
            assert_true(o_at(&a, 0, 0, 0) == 0.0f && o_at(&a, 0, 1, 0) == 0.0f);
            assert_true(lse_at(&a, 0, 0) == -INFINITY && lse_at(&a, 0, 1) == -INFINITY);
            assert_near(o_at(&a, 0, 2, 0), 3.0, 1e-6);
        }
        attend_end(&a);
        attend_begin(&a, "q4 k2 d8");
        attend_fill(&a.data.v, 3.0f);
        attend_fill(&a.data.k, 1.0f);
        trial_set(&a.data.q, 0, 0, 1, 0, INFINITY);
        if (attend_launch(&a, engine)) {
            assert_near(o_at(&a, 0, 0, 0), 3.0, 1e-6);
            assert_near(o_at(&a, 0, 2, 0), 3.0, 1e-6);
            assert_near(o_at(&a, 0, 3, 7), 3.0, 1e-6);
        }
        attend_end(&a);
    }
}

/* NaN in keys that no row sees leaves no trace. On `reference`, NaN in a key that some rows see stays out of the others. */
static void nan_in_masked_keys_leaves_no_trace(void **state)
{
    (void)state;
    FOR_EACH_ENGINE(engine)
    {
        struct attend a;
        attend_begin(&a, "q40 k80 d8 causal lse");
        for (int64_t j = 0; j < 80; j++) {
            set_row(&a.data.v, j, j < 40 ? (float)(j + 1) : NAN);
            set_row(&a.data.k, j, j < 40 ? 0.0f : NAN);
        }
        if (attend_run(&a, engine)) {
            for (int64_t i = 0; i < 40; i++) {
                assert_near(o_at(&a, 0, i, 0), (double)(i + 2) / 2.0, 1e-4);
            }
        }
        attend_end(&a);
    }
}

/* Weights of 1e-40 are right whether the device flushes them or not. Subnormal fp16 values in V are not flushed. */
static void subnormal_values_are_kept(void **state)
{
    (void)state;
    FOR_EACH_ENGINE(engine)
    {
        attend_check(engine, "q9 k70 d8 inputs=steep lse");
        struct attend a;
        attend_begin(&a, "q1 k3 d8 q=fp32 kv=fp16 o=fp32");
        const float smallest = half_to_float(1); /* 2^-24 */
        attend_fill(&a.data.v, smallest);
        if (attend_launch(&a, engine)) {
            assert_near(o_at(&a, 0, 0, 3) / smallest, 1.0, 1e-5);
        }
        attend_end(&a);
    }
}

/* The LSE of a row without keys is -inf, never +inf or a large finite number. */
static void the_lse_of_an_empty_row_is_minus_infinity(void **state)
{
    (void)state;
    static const char *const shapes[] = {"hq2 q3 k0 d8 lse", "hq2 q3 k5 d8 lse causal=-9",
                                         "hq2 q5 k3 d8 lse causal=bottom-right"};
    static const int64_t empty_rows[] = {3, 3, 2};
    FOR_EACH_ENGINE(engine)
    {
        for (size_t i = 0; i < COUNT_OF(shapes); i++) {
            struct attend a;
            attend_begin(&a, shapes[i]);
            attend_fill(&a.data.v, 9.0f);
            if (attend_run(&a, engine)) {
                for (int64_t row = 0; row < empty_rows[i]; row++) {
                    for (int64_t h = 0; h < 2; h++) {
                        assert_true(lse_at(&a, h, row) == -INFINITY);
                        assert_true(o_at(&a, h, row, 0) == 0.0f && !signbit(o_at(&a, h, row, 0)));
                    }
                }
            }
            attend_end(&a);
        }
    }
}

/* The LSE is a natural logarithm without a reference: adding 100 to all scores adds 100. */
static void the_lse_is_a_natural_logarithm(void **state)
{
    (void)state;
    FOR_EACH_ENGINE(engine)
    {
        struct attend a;
        attend_begin(&a, "q1 k8 d1 lse scale=1");
        if (attend_run(&a, engine)) {
            assert_near(lse_at(&a, 0, 0), 2.0794415, 1e-6);
        }
        attend_fill(&a.data.q, 10.0f);
        attend_fill(&a.data.k, 10.0f);
        if (attend_run(&a, engine)) {
            assert_near(lse_at(&a, 0, 0), 102.0794415, 1e-4);
        }
        attend_end(&a);
    }
}

/* Finite numbers of the largest size stay numbers: a row whose every score is -1e6, and scores past the range of fp32. */
static void finite_scores_stay_numbers(void **state)
{
    (void)state;
    FOR_EACH_ENGINE(engine)
    {
        struct attend a;
        attend_begin(&a, "q1 k40 d1 lse scale=1");
        attend_fill(&a.data.q, -1e6f);
        attend_fill(&a.data.k, 1.0f);
        for (int64_t j = 0; j < 40; j++) {
            trial_set(&a.data.v, 0, 0, j, 0, (float)j);
        }
        if (attend_run(&a, engine)) {
            assert_near(o_at(&a, 0, 0, 0), 19.5, 1e-4);
        }
        /* -3.4e38 at every key: the fold into base two must not make it infinite. */
        attend_fill(&a.data.q, -3.4e38f);
        if (attend_launch(&a, engine)) {
            assert_near(o_at(&a, 0, 0, 0), 19.5, 1e-4);
        }
        attend_fill(&a.data.q, 3.4e38f);
        if (attend_launch(&a, engine)) {
            assert_near(o_at(&a, 0, 0, 0), 19.5, 1e-4);
        }
        attend_end(&a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_causal_corner_is_the_one_asked_for),
        cmocka_unit_test(products_past_the_largest_fp16_number_are_right),
        cmocka_unit_test(sums_over_a_long_context_do_not_drift),
        cmocka_unit_test(a_maximum_that_rises_with_each_block_is_followed),
        cmocka_unit_test(every_option_changes_the_output),
        cmocka_unit_test(a_scale_of_zero_gives_the_mean),
        cmocka_unit_test(a_negative_scale_reverses_the_order_of_keys),
        cmocka_unit_test(a_nan_in_a_query_stays_in_its_row),
        cmocka_unit_test(a_row_without_keys_ignores_nan_in_its_query),
        cmocka_unit_test(nan_in_masked_keys_leaves_no_trace),
        cmocka_unit_test(subnormal_values_are_kept),
        cmocka_unit_test(the_lse_of_an_empty_row_is_minus_infinity),
        cmocka_unit_test(the_lse_is_a_natural_logarithm),
        cmocka_unit_test(finite_scores_stay_numbers),
    };
    return cmocka_run_group_tests(tests, bench_open, bench_close);
}
