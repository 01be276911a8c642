/* SPDX-License-Identifier: Apache-2.0
 * Numbers at the limits of their formats, on every engine; docs/semantics.md has the expected results. */
/* ctest: quick */
#include "attend.h"

static double o_at(const struct attend *a, int64_t s, int64_t d) { return (double)trial_get(&a->data.o, 0, 0, s, d); }

static void alibi_counts_distances_past_two_to_the_thirty(void **state)
{
    static const int64_t offsets[] = {1 << 24, (1 << 30) - 1, 1 << 30, (int64_t)1 << 31, -((int64_t)1 << 31), 1000000000000};
    (void)state;
    FOR_EACH_ENGINE(engine)
    {
        for (size_t i = 0; i < 2 * COUNT_OF(offsets); i++) {
            const int64_t offset = offsets[i / 2];
            char text[100];
            struct attend a;
            if (i % 2 == 0) {
                snprintf(text, sizeof text, "q1 k4 d8 lse alibi corner=%lld", (long long)offset);
            } else {
                snprintf(text, sizeof text, "q1 k4 d8 lse alibi offsets=int64");
            }
            attend_begin(&a, text);
            attend_fill(&a.data.alibi, 0x1p-30f);
            if (i % 2) {
                trial_set_integer(&a.data.offsets, 0, offset);
            }
            if (attend_run(&a, engine)) {
                const double want = log(4.0) - 0x1p-30 * fabs((double)offset);
                assert_near((double)trial_get(&a.data.lse, 0, 0, 0, 0), want, 1e-6 * (1.0 + fabs(want)));
            }
            attend_end(&a);
        }
    }
}

/* Sums of weights and values stay below the largest float where V times the visible keys (times 256 on nv_mma) does. */
static void values_of_any_size_are_right_up_to_the_largest_sum(void **state)
{
    static const char *const texts[] = {
        "q1 k1100 d8 value=1e33",
        "q1 k1100 d8 value=-2e35",
        "q40 k70 d8 bf16 value=1e33",
        "q1 k70 d8 value=1e-30",
    };
    (void)state;
    FOR_EACH_ENGINE(engine)
    {
        for (size_t i = 0; i < COUNT_OF(texts); i++) {
            attend_check(engine, texts[i]);
        }
    }
}

/* Past that they are infinite, and never a number that is wrong; unfused divides before it sums. */
static void values_past_the_largest_sum_are_right_or_infinite(void **state)
{
    static const char *const texts[] = {"q1 k2 d8", "q40 k70 d8 bf16"};
    (void)state;
    FOR_EACH_ENGINE(engine)
    {
        for (size_t i = 0; i < COUNT_OF(texts); i++) {
            struct attend a;
            attend_begin(&a, texts[i]);
            attend_fill(&a.data.v, 3e38f);
            if (attend_launch(&a, engine)) {
                const double got = o_at(&a, a.trial.seq_q - 1, 0);
                if (strcmp(engine, "unfused") == 0 || isfinite(got)) {
                    assert_near(got, 3e38, 3e36);
                } else {
                    assert_true(got > 0.0);
                }
            }
            attend_end(&a);
        }
    }
}

/* 0 times infinity: NaN, unless the engine leaves such keys out. */
static void an_infinite_value_of_weight_0_is_nan_or_leaves_no_trace(void **state)
{
    static const char *const texts[] = {"q1 k70 d8 scale=1", "q40 k70 d8 bf16 scale=1", "q1 k70 d8 scale=1 alibi"};
    (void)state;
    FOR_EACH_ENGINE(engine)
    {
        for (size_t i = 0; i < COUNT_OF(texts); i++) {
            struct attend a;
            attend_begin(&a, texts[i]);
            attend_fill(&a.data.q, 1.0f);
            attend_fill(&a.data.v, 2.0f);
            for (int64_t d = 0; d < 8; d++) {
                trial_set(&a.data.k, 0, 0, 5, d, -100.0f); /* a score of -800 */
                trial_set(&a.data.v, 0, 0, 5, d, d % 2 ? INFINITY : -INFINITY);
            }
            if (attend_launch(&a, engine)) {
                const double got = o_at(&a, 0, 1);
                assert_true(isnan(got) || fabs(got - 2.0) < 1e-2);
            }
            attend_end(&a);
        }
    }
}

static void a_row_that_sees_one_key_is_its_value(void **state)
{
    static const char *const texts[] = {"q1 k1 d8", "q1 k70 d8 causal=0", "q40 k1 d8 bf16"};
    (void)state;
    FOR_EACH_ENGINE(engine)
    {
        /* Its sums of three products leave out the last bits of V. */
        const double part = strcmp(engine, "nv_tf32x3") == 0 ? 0x1p-22 : 0.0;
        for (size_t i = 0; i < COUNT_OF(texts); i++) {
            struct attend a;
            attend_begin(&a, texts[i]);
            for (int64_t d = 0; d < 8; d++) {
                trial_set(&a.data.v, 0, 0, 0, d, 0.791822493f / (float)(d + 1));
            }
            if (attend_run(&a, engine)) {
                for (int64_t d = 0; d < 8; d++) {
                    const double value = (double)trial_get(&a.data.v, 0, 0, 0, d);
                    assert_near(o_at(&a, 0, d), value, part * value);
                }
            }
            attend_end(&a);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alibi_counts_distances_past_two_to_the_thirty),
        cmocka_unit_test(values_of_any_size_are_right_up_to_the_largest_sum),
        cmocka_unit_test(values_past_the_largest_sum_are_right_or_infinite),
        cmocka_unit_test(an_infinite_value_of_weight_0_is_nan_or_leaves_no_trace),
        cmocka_unit_test(a_row_that_sees_one_key_is_its_value),
    };
    return cmocka_run_group_tests(tests, bench_open, bench_close);
}
