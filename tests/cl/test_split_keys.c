/* SPDX-License-Identifier: Apache-2.0
 * Keys split into chunks give the same result as unsplit ones, with large scores too. Double loops in this file compute the
 * expected result. */
#include "attend.h"

enum { KEYS = 1100 };

/* One kernel source for all of them, and one without split keys. */
#define SHAPE "q1 k1100 d8 dv8 scale=1 sinks kv-lengths lse "

/* No option is set. */
static void begin(struct attend *a, const char *shape)
{
    attend_begin(a, shape);
    trial_set(&a->data.sinks, 0, 0, 0, 0, -INFINITY);
    trial_set_integer(&a->data.kv_lengths, 0, KEYS);
}

static float value_of_key(int64_t j, int64_t e) { return (float)(j + e) / (float)KEYS; }

static void fill_values(struct attend *a)
{
    for (int64_t j = 0; j < KEYS; j++) {
        for (int64_t e = 0; e < a->data.v.size[3]; e++) {
            trial_set(&a->data.v, 0, 0, j, e, value_of_key(j, e));
        }
    }
}

/* The exact mean of V as stored. */
static double mean_of_values(const struct attend *a, int64_t e)
{
    double sum = 0.0;
    for (int64_t j = 0; j < KEYS; j++) {
        sum += trial_get(&a->data.v, 0, 0, j, e);
    }
    return sum / KEYS;
}

/* A fully padded row as many models have it: every score is one large finite number. */
static void check_equal_scores(const char *engine, const char *shape, double tolerance)
{
    static const float scores[] = {131072.0f, -1e4f, -65504.0f, -1e9f, 1e9f, -1e30f};
    struct attend a;
    begin(&a, shape);
    fill_values(&a);
    for (int64_t j = 0; j < KEYS; j++) {
        trial_set(&a.data.k, 0, 0, j, 3, 1.0f);
    }
    for (size_t i = 0; i < COUNT_OF(scores); i++) {
        trial_set(&a.data.q, 0, 0, 0, 3, scores[i]);
        const double score = trial_get(&a.data.q, 0, 0, 0, 3);
        if (!attend_launch(&a, engine)) {
            break;
        }
        for (int64_t e = 0; e < a.data.v.size[3]; e++) {
            const double got = trial_get(&a.data.o, 0, 0, 0, e), want = mean_of_values(&a, e);
            if (!(fabs(got - want) <= tolerance)) {
                fail_msg("%s, \"%s\", every score %g: got %.9g, wanted %.9g", engine, shape, score, got, want);
            }
        }
        assert_near(trial_get(&a.data.lse, 0, 0, 0, 0), score + log(KEYS), fabs(score) * 0x1p-22 + 1e-5);
    }
    attend_end(&a);
}

static void equal_scores_of_any_size_give_the_mean(void **state)
{
    (void)state;
    FOR_EACH_ENGINE(engine)
    {
        check_equal_scores(engine, SHAPE "chunk=256", 1e-6);
        if (clattn_engine_rounds_weights(engine)) {
            check_equal_scores(engine, SHAPE "bf16 o=fp32 chunk=256", 2e-6);
        }
    }
}

/* The group that finishes the last chunk merges, as on NVIDIA. */
static void equal_scores_of_any_size_give_the_mean_in_one_launch(void **state)
{
    (void)state;
    const struct bench before = bench;
    bench_context_open(&bench, "nv_compute=90");
    check_equal_scores("simt", SHAPE "chunk=256", 1e-6);
    bench_context_close(&bench);
    bench = before;
}

/* All keys in one chunk, the others empty: the bits of the plan that does not split. */
static void one_chunk_alone_comes_out_bit_for_bit(void **state)
{
    (void)state;
    FOR_EACH_ENGINE(engine)
    {
        struct attend one, split;
        begin(&one, SHAPE "chunk=-1");
        begin(&split, SHAPE "chunk=512");
        struct attend *const both[] = {&one, &split};
        bool ran = true;
        for (int i = 0; i < 2; i++) {
            fill_values(both[i]);
            attend_fill(&both[i]->data.q, 1.25f);
            for (int64_t j = 0; j < KEYS; j++) {
                trial_set(&both[i]->data.k, 0, 0, j, j % 8, (float)(j * 37 % 101) / 7.0f);
            }
            trial_set_integer(&both[i]->data.kv_lengths, 0, 300);
            ran = attend_launch(both[i], engine) && ran;
        }
        for (int64_t e = 0; ran && e < 8; e++) {
            assert_true(trial_get(&one.data.o, 0, 0, 0, e) == trial_get(&split.data.o, 0, 0, 0, e));
            assert_true(trial_get(&one.data.lse, 0, 0, 0, 0) == trial_get(&split.data.lse, 0, 0, 0, 0));
        }
        attend_end(&one);
        attend_end(&split);
    }
}

static bool is_in_base_two(const char *engine) { return strcmp(engine, "simt") == 0 || strncmp(engine, "nv_", 3) == 0; }

/* Scores that floats hold exactly, 2.45e5 and 2.45e5 plus or minus a few 1/64: engines that subtract the maximum first lose
 * nothing, the others what docs/semantics.md says. */
static void scores_with_a_large_offset_keep_their_differences(void **state)
{
    (void)state;
    FOR_EACH_ENGINE(engine)
    {
        struct attend a;
        begin(&a, SHAPE "chunk=256");
        fill_values(&a);
        trial_set(&a.data.q, 0, 0, 0, 3, 1.0f);
        double sum = 0.0, want = 0.0;
        for (int64_t j = 0; j < KEYS; j++) {
            const float score = 2.45e5f + (float)(j * 29 % 97 - 48) / 64.0f;
            trial_set(&a.data.k, 0, 0, j, 3, score);
            sum += exp((double)score - 2.45e5);
            want += exp((double)score - 2.45e5) * trial_get(&a.data.v, 0, 0, j, 0);
        }
        if (attend_launch(&a, engine)) {
            assert_near(trial_get(&a.data.o, 0, 0, 0, 0), want / sum, is_in_base_two(engine) ? 2.45e5 * 0x1p-23 : 1e-6);
        }
        attend_end(&a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_scores_of_any_size_give_the_mean),
        cmocka_unit_test(equal_scores_of_any_size_give_the_mean_in_one_launch),
        cmocka_unit_test(one_chunk_alone_comes_out_bit_for_bit),
        cmocka_unit_test(scores_with_a_large_offset_keep_their_differences),
    };
    return cmocka_run_group_tests(tests, bench_open, bench_close);
}
