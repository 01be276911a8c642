/* SPDX-License-Identifier: Apache-2.0
 * Masks, windows, biases and other options that change scores, on every engine: cases from public bug reports of attention
 * kernels, each with an exact answer. The worked examples of docs/semantics.md are among them. */
#include "attend.h"

#include <float.h>

static float o_at(const struct attend *a, int64_t s, int64_t d) { return trial_get(&a->data.o, 0, 0, s, d); }
static float lse_at(const struct attend *a, int64_t s) { return trial_get(&a->data.lse, 0, 0, s, 0); }

/* Sets dimension 0 of K or V, one number a key; sets a mask, one number a key. */
static void set_rows(const struct trial_tensor *t, const float *x, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        trial_set(t, 0, 0, i, 0, x[i]);
    }
}

static void set_columns(const struct trial_tensor *t, const float *x, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        trial_set(t, 0, 0, 0, i, x[i]);
    }
}

static void set_noise(const struct trial_tensor *t, float scale)
{
    for (int64_t h = 0; h < t->size[1]; h++) {
        for (int64_t s = 0; s < t->size[2]; s++) {
            for (int64_t d = 0; d < t->size[3]; d++) {
                trial_set(t, 0, h, s, d, scale * ((float)((h * 7 + s * 37 + d * 11) % 29) / 14.0f - 1.0f));
            }
        }
    }
}

static void set_identity(const struct trial_tensor *v)
{
    for (int64_t j = 0; j < v->size[2]; j++) {
        trial_set(v, 0, 0, j, j, 1.0f);
    }
}

/* In a row whose keys are all masked the maximum is -inf, and -inf minus -inf would be NaN. */
static void a_fully_masked_row_gives_zeros(void **state)
{
    (void)state;
    static const char *const shapes[] = {"q4 k4 d8 mask=qk lse", "q4 k4 d8 fp16 mask=qk lse", "q4 k4 d8 bias=qk lse",
                                         "q4 k4 d8 fp16 bias=qk bias-type=fp16 lse"};
    FOR_EACH_ENGINE(engine)
    {
        for (size_t i = 0; i < COUNT_OF(shapes); i++) {
            struct attend a;
            attend_begin(&a, shapes[i]);
            const bool is_mask = a.data.mask.count > 0;
            attend_fill(is_mask ? &a.data.mask : &a.data.bias, is_mask ? 1.0f : 0.0f);
            for (int64_t j = 0; j < 4; j++) {
                trial_set(is_mask ? &a.data.mask : &a.data.bias, 0, 0, 1, j, is_mask ? 0.0f : -INFINITY);
            }
            set_noise(&a.data.q, 1.0f);
            set_noise(&a.data.k, 1.0f);
            set_noise(&a.data.v, 1.0f);
            if (attend_run(&a, engine)) {
                assert_true(o_at(&a, 1, 0) == 0.0f && o_at(&a, 1, 1) == 0.0f);
                assert_true(lse_at(&a, 1) == -INFINITY);
            }
            attend_end(&a);
        }
    }
}

/* A window of W keys to the left holds W + 1 keys, as both ends are included. */
static void both_ends_of_a_window_are_included(void **state)
{
    (void)state;
    FOR_EACH_ENGINE(engine)
    {
        struct attend a;
        attend_begin(&a, "q8 k8 d8 causal window=2,-1");
        set_identity(&a.data.v);
        if (attend_run(&a, engine)) {
            for (int64_t j = 0; j < 8; j++) {
                assert_near(o_at(&a, 5, j), j >= 3 && j <= 5 ? 1.0 / 3.0 : 0.0, 1e-6);
            }
        }
        attend_end(&a);
        attend_begin(&a, "q8 k8 d8 causal window=0,-1");
        set_identity(&a.data.v);
        if (attend_run(&a, engine)) {
            for (int64_t i = 0; i < 64; i++) {
                assert_true(o_at(&a, i / 8, i % 8) == (i / 8 == i % 8 ? 1.0f : 0.0f));
            }
        }
        attend_end(&a);
    }
}

static void need_within_a_step(const struct trial_tensor *got, const struct trial_tensor *want)
{
    for (int64_t i = 0; i < got->size[2]; i++) {
        for (int64_t d = 0; d < got->size[3]; d++) {
            const double x = trial_get(got, 0, 0, i, d), y = trial_get(want, 0, 0, i, d);
            assert_near(x, y, 0x1p-10 * fabs(y) + 0x1p-20);
        }
    }
}

/* A window that reaches the first key is no window: the same bits where both have the same kernel source, otherwise within
 * an fp16 step. */
static void a_window_over_all_keys_changes_nothing(void **state)
{
    (void)state;
    static const char *const windows[] = {"causal", "causal window=%d,-1", "window=-1,0", "window=%d,0",
                                          "causal window=1000000,5"};
    FOR_EACH_ENGINE(engine)
    {
        for (int seq = 257; seq <= 1024; seq += 767) {
            struct attend first = {0};
            for (size_t i = 0; i < COUNT_OF(windows); i++) {
                char word[64], shape[128];
                struct attend a;
                snprintf(word, sizeof word, windows[i], seq - 1);
                snprintf(shape, sizeof shape, "q%d d64 fp16 %s", seq, word);
                attend_begin(&a, shape);
                set_noise(&a.data.q, 2.0f);
                set_noise(&a.data.k, 2.0f);
                set_noise(&a.data.v, 1.0f);
                const bool served = attend_run(&a, engine);
                if (served && i > 0 && cla_engines[engine_row]->options_apart) {
                    need_within_a_step(&a.data.o, &first.data.o);
                } else if (served && i > 0) {
                    assert_memory_equal(a.data.o.data, first.data.o.data, (size_t)a.data.o.count * 2);
                }
                if (i == 0) {
                    first = a;
                } else {
                    attend_end(&a);
                }
            }
            attend_end(&first);
        }
    }
}

/* Bottom-right with more queries than keys: the first rows see no key. */
static void rows_whose_window_holds_no_key_give_zeros(void **state)
{
    (void)state;
    FOR_EACH_ENGINE(engine)
    {
        struct attend a;
        attend_begin(&a, "q129 k16 d8 window=32,64 corner=bottom-right lse");
        set_noise(&a.data.q, 1.0f);
        set_noise(&a.data.k, 1.0f);
        attend_fill(&a.data.v, 1.0f);
        if (attend_run(&a, engine)) {
            for (int64_t i = 0; i < 129; i++) {
                assert_near(o_at(&a, i, 3), i <= 48 ? 0.0 : 1.0, 1e-6);
                assert_true((lse_at(&a, i) == -INFINITY) == (i <= 48));
            }
        }
        attend_end(&a);
    }
}

/* A boolean mask must not be read as numbers to add, nor the other way round. */
static void boolean_and_additive_masks_are_not_confused(void **state)
{
    (void)state;
    static const float v[] = {0.0f, 1.0f}, mask[] = {1.0f, 0.0f}, bias[] = {0.0f, -INFINITY};
    FOR_EACH_ENGINE(engine)
    {
        for (int additive = 0; additive < 2; additive++) {
            struct attend a;
            attend_begin(&a, additive ? "q1 k2 d8 bias=k" : "q1 k2 d8 mask=k");
            set_rows(&a.data.v, v, 2);
            set_columns(additive ? &a.data.bias : &a.data.mask, additive ? bias : mask, 2);
            if (attend_run(&a, engine)) {
                assert_true(o_at(&a, 0, 0) == 0.0f);
            }
            attend_end(&a);
        }
    }
    clattn_problem p;
    clattn_error error;
    clattn_error_init(&error);
    assert_ok(clattn_problem_parse("q1 k2 d8 bias", &p, &error), &error);
    p.bias.type = (clattn_type)9;
    assert_refused(clattn_supported(bench.context, &p, NULL, &error), CLATTN_INVALID_ARGUMENT, &error, "problem.bias.type");
}

/* `scale` is folded into the exponent; the bias must not be scaled with it. */
static void the_bias_is_not_scaled(void **state)
{
    (void)state;
    static const float keys[] = {1.0f, 2.0f}, v[] = {0.0f, 1.0f};
    static const struct {
        const char *shape;
        float bias, factor;
    } rows[] = {{"q1 k2 d8 scale=0.1 bias=k", -1.0f, 1.0f}, {"q1 k2 d8 scale=0.1 bias=k bias-factors", -2.0f, 0.5f}};
    FOR_EACH_ENGINE(engine)
    {
        for (size_t i = 0; i < COUNT_OF(rows); i++) {
            struct attend a;
            attend_begin(&a, rows[i].shape);
            set_rows(&a.data.k, keys, 2);
            set_rows(&a.data.v, v, 2);
            trial_set(&a.data.bias, 0, 0, 0, 0, 0.0f);
            trial_set(&a.data.bias, 0, 0, 0, 1, rows[i].bias);
            if (a.data.bias_factors.count > 0) {
                trial_set(&a.data.bias_factors, 0, 0, 0, 0, rows[i].factor);
            }
            if (attend_run(&a, engine)) {
                assert_near(o_at(&a, 0, 0), 0.26894, 1e-5);
            }
            attend_end(&a);
        }
    }
}

static void alibi_follows_its_formula(void **state)
{
    (void)state;
    static const float six[] = {0.25f, 0.0625f, 0.015625f, 0.00390625f, 0.5f, 0.125f}, ramp[] = {0.0f, 1.0f, 2.0f, 3.0f};
    static const char *const shapes[] = {"q4 k4 d8 causal alibi", "q1 k4 d8 causal=bottom-right alibi",
                                         "q1 k4 d8 corner=bottom-right alibi", "q1 k4 d8 causal=3 alibi"};
    float slopes[12];
    clattn_alibi_slopes(6, slopes);
    assert_memory_equal(slopes, six, sizeof six);
    clattn_alibi_slopes(8, slopes);
    for (int h = 0; h < 8; h++) {
        assert_true(slopes[h] == exp2f((float)-(h + 1)));
    }
    clattn_alibi_slopes(12, slopes); /* of 8, then every other one of 16 */
    for (int h = 8; h < 12; h++) {
        assert_near((double)slopes[h], exp2(-0.5 * (2 * (h - 8) + 1)), 1e-7);
    }
    FOR_EACH_ENGINE(engine)
    {
        for (size_t i = 0; i < COUNT_OF(shapes); i++) {
            struct attend a;
            attend_begin(&a, shapes[i]);
            set_rows(&a.data.v, ramp, 4);
            attend_fill(&a.data.alibi, 0.5f);
            if (attend_run(&a, engine)) {
                assert_near(o_at(&a, a.trial.seq_q - 1, 0), 2.08458, 1e-5);
            }
            attend_end(&a);
        }
    }
}

/* Where the numbers of queries and keys differ, every path takes the same distances. */
static void alibi_is_the_same_on_every_path(void **state)
{
    (void)state;
    FOR_EACH_ENGINE(engine)
    {
        for (int queries = 1; queries <= 3; queries++) {
            static const char *const paths[] = {"", "packed", "kv-lengths", "chunk=1", "offsets"};
            float want[3][4];
            bool known = false;
            for (size_t path = 0; path < COUNT_OF(paths); path++) {
                char shape[128];
                struct attend a;
                snprintf(shape, sizeof shape, "q%d k5 d8 alibi %s", queries, paths[path]);
                attend_begin(&a, shape);
                set_noise(&a.data.q, 1.0f);
                set_noise(&a.data.k, 1.0f);
                set_noise(&a.data.v, 1.0f);
                attend_fill(&a.data.alibi, 0.5f);
                if (a.data.q_starts.count > 0) {
                    trial_set_integer(&a.data.q_starts, 0, 0);
                    trial_set_integer(&a.data.q_starts, 1, queries);
                    trial_set_integer(&a.data.kv_starts, 0, 0);
                    trial_set_integer(&a.data.kv_starts, 1, 5);
                }
                if (a.data.kv_lengths.count > 0) {
                    trial_set_integer(&a.data.kv_lengths, 0, 5);
                }
                if (a.data.offsets.count > 0) {
                    trial_set_integer(&a.data.offsets, 0, 0);
                }
                if (attend_run(&a, engine)) {
                    for (int64_t i = 0; i < queries * 4; i++) {
                        if (!known) {
                            want[i / 4][i % 4] = o_at(&a, i / 4, i % 4);
                        }
                        assert_near(o_at(&a, i / 4, i % 4), want[i / 4][i % 4], 1e-6);
                    }
                    known = true;
                }
                attend_end(&a);
            }
        }
    }
}

/* A row whose biases are all large and negative still gives its softmax; next to ordinary ones such keys get no weight. */
static void a_row_of_large_negative_biases_has_its_softmax(void **state)
{
    (void)state;
    static const float scores[] = {-32.0f, -31.0f, -30.0f, -29.0f};
    static const float hiding[] = {-FLT_MAX, -1e9f, -65504.0f};
    FOR_EACH_ENGINE(engine)
    {
        struct attend a;
        attend_begin(&a, "q1 k4 d8 fp16 scale=1 bias=k bias-type=fp16 lse");
        attend_fill(&a.data.q, 1.0f);
        set_rows(&a.data.k, scores, 4);
        for (int64_t j = 0; j < 4; j++) {
            trial_set(&a.data.v, 0, 0, j, 0, (float)j);
        }
        attend_fill(&a.data.bias, -65504.0f);
        if (attend_run(&a, engine)) {
            const double e = exp(1.0), sum = 1.0 + e + e * e + e * e * e;
            assert_near(o_at(&a, 0, 0), (e + 2.0 * e * e + 3.0 * e * e * e) / sum, 0.02);
            assert_near(lse_at(&a, 0), -65504.0 - 32.0 + log(sum), 0.05);
        }
        attend_end(&a);
        for (size_t i = 0; i < COUNT_OF(hiding); i++) {
            attend_begin(&a, "q1 k4 d8 bias=k");
            attend_fill(&a.data.bias, hiding[i]);
            trial_set(&a.data.bias, 0, 0, 0, 2, 0.0f);
            set_rows(&a.data.v, scores, 4);
            if (attend_run(&a, engine)) {
                assert_true(o_at(&a, 0, 0) == -30.0f);
            }
            attend_end(&a);
        }
    }
}

/* Whole leading tiles have a bias of the smallest finite number. */
static void leading_blocks_of_the_smallest_number_get_no_weight(void **state)
{
    (void)state;
    FOR_EACH_ENGINE(engine)
    {
        struct attend a, b;
        attend_begin(&a, "q5 k441 d64 bias=k lse");
        attend_begin(&b, "q5 k313 d64 bias=k lse");
        set_noise(&a.data.q, 1.0f);
        set_noise(&b.data.q, 1.0f);
        set_noise(&a.data.k, 1.0f);
        set_noise(&a.data.v, 1.0f);
        attend_fill(&a.data.bias, 0.0f);
        attend_fill(&b.data.bias, 0.0f);
        for (int64_t j = 0; j < 441; j++) {
            if (j < 128) {
                trial_set(&a.data.bias, 0, 0, 0, j, -FLT_MAX);
            }
            for (int64_t d = 0; j >= 128 && d < 64; d++) {
                trial_set(&b.data.k, 0, 0, j - 128, d, trial_get(&a.data.k, 0, 0, j, d));
                trial_set(&b.data.v, 0, 0, j - 128, d, trial_get(&a.data.v, 0, 0, j, d));
            }
        }
        if (attend_run(&a, engine) && attend_run(&b, engine)) {
            for (int64_t i = 0; i < 5 * 64; i++) {
                assert_near(o_at(&a, i / 64, i % 64), o_at(&b, i / 64, i % 64), 2e-6);
            }
        }
        attend_end(&a);
        attend_end(&b);
    }
}

/* With one visible key, anywhere, its value comes out bit for bit. */
static void one_visible_key_gives_its_value_exactly(void **state)
{
    (void)state;
    static const int64_t places[] = {0, 15, 16, 31, 32, 63, 64, 76};
    FOR_EACH_ENGINE(engine)
    {
        for (size_t i = 0; i < COUNT_OF(places); i++) {
            struct attend a;
            attend_begin(&a, "q1 k77 d64 fp16 bias=k bias-type=fp16");
            set_noise(&a.data.q, 1.0f);
            set_noise(&a.data.k, 1.0f);
            set_noise(&a.data.v, 1.0f);
            attend_fill(&a.data.bias, -INFINITY);
            trial_set(&a.data.bias, 0, 0, 0, places[i], 0.0f);
            if (attend_run(&a, engine)) {
                for (int64_t d = 0; d < 64; d++) {
                    assert_true(o_at(&a, 0, d) == trial_get(&a.data.v, 0, 0, places[i], d));
                }
            }
            attend_end(&a);
        }
    }
}

/* softcap after the mask would make -softcap of -inf, and masked keys would get weight. */
static void softcap_comes_before_masks(void **state)
{
    (void)state;
    static const float v[] = {1.0f, 100.0f};
    FOR_EACH_ENGINE(engine)
    {
        struct attend a;
        attend_begin(&a, "q2 k2 d8 softcap=1 causal");
        set_rows(&a.data.v, v, 2);
        if (attend_run(&a, engine)) {
            assert_true(o_at(&a, 0, 0) == 1.0f);
            assert_near(o_at(&a, 1, 0), 50.5, 1e-5);
        }
        attend_end(&a);
    }
}

/* Every option changes a fixed output by a known amount. */
static void every_score_option_changes_the_output(void **state)
{
    (void)state;
    static const struct {
        const char *shape;
        double want;
    } rows[] = {
        /* scores 0 and ln 3 for keys 0 and 1, V = 0, 1; the query is at key 0, slope 1, sink ln 4, bias (0, -ln 3) */
        {"q1 k2 d8 scale=1", 0.75},
        {"q1 k2 d8 scale=1 bias=k", 0.5},
        {"q1 k2 d8 scale=1 bias=k bias-factors", 0.9}, /* factor -1 */
        {"q1 k2 d8 scale=1 alibi", 0.52463},           /* 3/e / (1 + 3/e) */
        {"q1 k2 d8 scale=1 sinks", 0.375},
        {"q1 k2 d8 scale=1 softcap=0.5", 0.61959}, /* 0.5 tanh(2 ln 3) = 0.48780 */
        {"q1 k2 d8 scale=1 mask=k", 0.0},
        {"q1 k2 d8 scale=1 window=0,0", 0.0},
        {"q1 k2 d8 scale=1 kv-lengths", 0.0},
        {"q1 k2 d8 scale=1 window=0,0 offsets", 1.0},
    };
    FOR_EACH_ENGINE(engine)
    {
        for (size_t i = 0; i < COUNT_OF(rows); i++) {
            struct attend a;
            attend_begin(&a, rows[i].shape);
            attend_fill(&a.data.q, 1.0f);
            trial_set(&a.data.k, 0, 0, 1, 0, logf(3.0f));
            trial_set(&a.data.v, 0, 0, 1, 0, 1.0f);
            attend_fill(&a.data.alibi, 1.0f);
            attend_fill(&a.data.sinks, logf(4.0f));
            attend_fill(&a.data.bias_factors, -1.0f);
            attend_fill(&a.data.kv_lengths, 1.0f);
            attend_fill(&a.data.offsets, 1.0f);
            attend_fill(&a.data.mask, 1.0f);
            attend_fill(&a.data.bias, 0.0f);
            if (a.data.mask.count > 0) {
                trial_set(&a.data.mask, 0, 0, 0, 1, 0.0f);
            }
            if (a.data.bias.count > 0) {
                trial_set(&a.data.bias, 0, 0, 0, 1, -logf(3.0f));
            }
            if (attend_run(&a, engine)) {
                assert_near(o_at(&a, 0, 0), rows[i].want, 2e-5);
            }
            attend_end(&a);
        }
    }
}

/* A sink takes part of the weight and no value. */
static void a_sink_takes_weight_and_adds_no_value(void **state)
{
    (void)state;
    static const struct {
        const char *shape;
        float sink;
        double o, lse;
    } rows[] = {{"q1 k1 d8 sinks lse", 0.0f, 1.5, 0.69314718},
                {"q1 k1 d8 sinks lse", -INFINITY, 3.0, 0.0},
                {"q1 k0 d8 sinks lse", 2.0f, 0.0, 2.0},
                {"q1 k0 d8 sinks lse", -INFINITY, 0.0, -INFINITY},
                {"q1 k1 d8 sinks lse chunk=1", 0.0f, 1.5, 0.69314718}};
    FOR_EACH_ENGINE(engine)
    {
        for (size_t i = 0; i < COUNT_OF(rows); i++) {
            struct attend a;
            attend_begin(&a, rows[i].shape);
            attend_fill(&a.data.v, 3.0f);
            attend_fill(&a.data.sinks, rows[i].sink);
            if (attend_run(&a, engine)) {
                assert_near(o_at(&a, 0, 0), rows[i].o, 1e-6);
                assert_near(lse_at(&a, 0), rows[i].lse, 1e-6);
            }
            attend_end(&a);
        }
    }
}

/* Rows past q_length give 0 and -inf, sink or not; real rows of the same tile keep theirs. */
static void padded_rows_have_no_sink(void **state)
{
    (void)state;
    static const char *const shapes[] = {"b2 q5 k3 d8 sinks lse q-lengths", "b2 q5 k3 d8 sinks lse q-lengths chunk=1",
                                         "b2 q5 k0 d8 sinks lse q-lengths", "b2 q40 k70 d64 bf16 sinks lse q-lengths"};
    FOR_EACH_ENGINE(engine)
    {
        for (size_t i = 0; i < COUNT_OF(shapes); i++) {
            struct attend a;
            attend_begin(&a, shapes[i]);
            attend_fill(&a.data.v, 3.0f);
            attend_fill(&a.data.sinks, 2.0f);
            trial_set_integer(&a.data.q_lengths, 0, 3);
            trial_set_integer(&a.data.q_lengths, 1, 0);
            if (attend_run(&a, engine)) {
                const double keys = (double)a.trial.seq_kv;
                for (int64_t row = 0; row < a.trial.seq_q; row++) {
                    assert_near(lse_at(&a, row), row < 3 ? log(exp(2.0) + keys) : -INFINITY, 1e-5);
                    assert_near(o_at(&a, row, 0), row < 3 ? 3.0 * keys / (exp(2.0) + keys) : 0.0, 2e-2);
                }
            }
            attend_end(&a);
        }
    }
}

/* The pitch of a mask, and where it begins, may be any. */
static void a_mask_may_have_any_pitch_and_start(void **state)
{
    (void)state;
    static const char *const shapes[] = {
        "q33 k43 d64 mask=qk seed=2",         "q33 k43 d64 mask=qk shift=1 seed=2",
        "q33 k1 d64 mask=qk shift=1 seed=2",  "q33 k77 d64 mask=qk shift=3 seed=2",
        "q33 k43 d64 bias=qk shift=1 seed=2", "q33 k77 d64 bias=qk bias-type=fp16 shift=1 seed=2",
    };
    FOR_EACH_ENGINE(engine)
    {
        for (size_t i = 0; i < COUNT_OF(shapes); i++) {
            attend_check(engine, shapes[i]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fully_masked_row_gives_zeros),
        cmocka_unit_test(both_ends_of_a_window_are_included),
        cmocka_unit_test(a_window_over_all_keys_changes_nothing),
        cmocka_unit_test(rows_whose_window_holds_no_key_give_zeros),
        cmocka_unit_test(boolean_and_additive_masks_are_not_confused),
        cmocka_unit_test(the_bias_is_not_scaled),
        cmocka_unit_test(alibi_follows_its_formula),
        cmocka_unit_test(alibi_is_the_same_on_every_path),
        cmocka_unit_test(a_row_of_large_negative_biases_has_its_softmax),
        cmocka_unit_test(leading_blocks_of_the_smallest_number_get_no_weight),
        cmocka_unit_test(one_visible_key_gives_its_value_exactly),
        cmocka_unit_test(softcap_comes_before_masks),
        cmocka_unit_test(every_score_option_changes_the_output),
        cmocka_unit_test(a_sink_takes_weight_and_adds_no_value),
        cmocka_unit_test(padded_rows_have_no_sink),
        cmocka_unit_test(a_mask_may_have_any_pitch_and_start),
    };
    return cmocka_run_group_tests(tests, bench_open, bench_close);
}
