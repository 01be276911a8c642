/* SPDX-License-Identifier: Apache-2.0
 * Each element of a tile is at its place, on every engine and in each of its loops: a query that matches one key, or sees only
 * one, copies the V of that key. If a row, a column or a bit of a mask were misplaced, another V would be copied. */
#include "attend.h"

/* The key of a row, spread over all blocks. */
static int64_t key_of(int64_t row, int64_t keys) { return (row * 37 + 11) % keys; }

/* Whole numbers that every storage type holds. */
static float value_of(int64_t key, int64_t column) { return (float)((key * 7 + column * 13) % 251); }

/* Signs of key number `key`: two keys agree in about half of them. */
static float sign_of(int64_t key, int64_t d)
{
    uint64_t x = ((uint64_t)key * 1024 + (uint64_t)d + 1) * UINT64_C(0x9E3779B97F4A7C15);
    x ^= x >> 29;
    x *= UINT64_C(0xBF58476D1CE4E5B9);
    return x >> 63 ? 1.0f : -1.0f;
}

static void fill_values(const struct attend *a)
{
    const clattn_problem *p = &a->trial.problem;
    for (int64_t h = 0; h < p->heads_kv; h++) {
        for (int64_t j = 0; j < p->seq_kv; j++) {
            for (int64_t e = 0; e < p->head_dim_v; e++) {
                trial_set(&a->data.v, 0, h, j, e, value_of(j + h, e));
            }
        }
    }
}

static void check_copies(const struct attend *a, const char *engine, const char *text)
{
    const clattn_problem *p = &a->trial.problem;
    for (int64_t h = 0; h < p->heads_q; h++) {
        for (int64_t i = 0; i < p->seq_q; i++) {
            for (int64_t e = 0; e < p->head_dim_v; e++) {
                const float got = trial_get(&a->data.o, 0, h, i, e);
                const float want = value_of(key_of(i + h, p->seq_kv) + h / (p->heads_q / p->heads_kv), e);
                if (got != want) {
                    fail_msg("%s, \"%s\": head %d, row %d, column %d is %g, not %g", engine, text, (int)h, (int)i, (int)e,
                             (double)got, (double)want);
                }
            }
        }
    }
}

static void a_query_that_matches_one_key_copies_its_value(void **state)
{
    (void)state;
    static const char *const shapes[] = {"q200 k330 d64", "q200 k330 d64 fp16", "q200 k330 d128 dv64 bf16",
                                         "q70 k330 d256 fp16", "hq4 hkv2 q3 k700 d64 dv40 bf16"};
    for (size_t s = 0; s < COUNT_OF(shapes); s++) {
        char text[96];
        size_t served = 0;
        snprintf(text, sizeof text, "%s scale=8", shapes[s]);
        FOR_EACH_ENGINE(engine)
        {
            struct attend a;
            attend_begin(&a, text);
            const clattn_problem *p = &a.trial.problem;
            fill_values(&a);
            for (int64_t d = 0; d < p->head_dim_qk; d++) {
                for (int64_t h = 0; h < p->heads_kv; h++) {
                    for (int64_t j = 0; j < p->seq_kv; j++) {
                        trial_set(&a.data.k, 0, h, j, d, sign_of(j, d));
                    }
                }
                for (int64_t h = 0; h < p->heads_q; h++) {
                    for (int64_t i = 0; i < p->seq_q; i++) {
                        trial_set(&a.data.q, 0, h, i, d, sign_of(key_of(i + h, p->seq_kv), d));
                    }
                }
            }
            if (attend_launch(&a, engine)) {
                served++;
                check_copies(&a, engine, text);
            }
            attend_end(&a);
        }
        assert_true(served >= 2);
    }
}

/* All scores are equal: only the mask, or a bias of -inf, says which key a row takes. */
static void a_query_that_sees_one_key_copies_its_value(void **state)
{
    (void)state;
    static const char *const shapes[] = {"q200 k330 d64 mask=qk", "q200 k330 d64 bias=qk fp16",
                                         "hq2 hkv1 q3 k700 d64 mask=hqk bf16"};
    for (size_t s = 0; s < COUNT_OF(shapes); s++) {
        const char *text = shapes[s];
        size_t served = 0;
        FOR_EACH_ENGINE(engine)
        {
            struct attend a;
            attend_begin(&a, text);
            const clattn_problem *p = &a.trial.problem;
            const struct trial_tensor *hides = p->mask.present ? &a.data.mask : &a.data.bias;
            fill_values(&a);
            attend_fill(hides, p->mask.present ? 0.0f : -INFINITY);
            for (int64_t h = 0; h < hides->size[1]; h++) {
                for (int64_t i = 0; i < p->seq_q; i++) {
                    trial_set(hides, 0, h, i, key_of(i + h, p->seq_kv), p->mask.present ? 1.0f : 0.0f);
                }
            }
            if (attend_launch(&a, engine)) {
                served++;
                check_copies(&a, engine, text);
            }
            attend_end(&a);
        }
        assert_true(served >= 2);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_query_that_matches_one_key_copies_its_value),
        cmocka_unit_test(a_query_that_sees_one_key_copies_its_value),
    };
    return cmocka_run_group_tests(tests, bench_open, bench_close);
}
