/* SPDX-License-Identifier: Apache-2.0
 * What the bench counts: pairs, operations, bytes. */
#include "bench.h"
#include "support.h"

static struct trial trial_of(const char *shape)
{
    struct trial trial;
    clattn_error error;
    clattn_error_init(&error);
    assert_ok(trial_parse(shape, &trial, &error), &error);
    return trial;
}

/* By the definition, pair by pair. */
static double pairs_one_by_one(const struct trial *t)
{
    const clattn_problem *p = &t->problem;
    const int64_t offset = p->corner == CLATTN_TOP_LEFT       ? 0
                           : p->corner == CLATTN_BOTTOM_RIGHT ? t->seq_kv - t->seq_q
                                                              : t->offset;
    double pairs = 0;
    for (int64_t i = 0; i < t->seq_q; i++) {
        for (int64_t j = 0; j < t->seq_kv; j++) {
            const int64_t at = i + offset;
            pairs += !(p->causal && j > at) && !(p->window.left >= 0 && j < at - p->window.left) &&
                     !(p->window.right >= 0 && j > at + p->window.right);
        }
    }
    return pairs * (double)t->batch * (double)p->heads_q;
}

static void pairs_follow_the_definition(void **state)
{
    static const char *const shapes[] = {
        "b2 hq3 hkv1 q5 k7 d8",
        "q9 k4 d8 causal",
        "q4 k9 d8 causal=bottom-right",
        "q9 k4 d8 causal=bottom-right",
        "q6 k6 d8 causal=3",
        "q6 k6 d8 causal=-4",
        "q6 k6 d8 causal=-40",
        "q6 k6 d8 causal=40",
        "b3 h4 q1 k0 d8",
        "q0 k5 d8",
        "b3 h4 q6 k11 d8 call=2,5,8 causal=bottom-right",
    };
    static const int64_t windows[][2] = {{-1, -1}, {0, 0}, {2, -1}, {-1, 2}, {3, 1}, {100, 100}};
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        for (size_t w = 0; w < sizeof windows / sizeof *windows; w++) {
            struct trial trial = trial_of(shapes[i]);
            trial.problem.window.left = windows[w][0];
            trial.problem.window.right = windows[w][1];
            assert_true(bench_pairs(&trial) == pairs_one_by_one(&trial));
        }
    }
}

static void operations_and_bytes_are_counted(void **state)
{
    const struct trial plain = trial_of("b2 hq4 hkv2 q3 k5 d8 dv16 lse"),
                       mixed = trial_of("hq4 hkv2 q3 k5 d8 q=fp32 kv=fp16 o=bf16");
    (void)state;
    assert_true(bench_operations(&plain) == 2.0 * 2 * 4 * 3 * 5 * (8 + 16));
    assert_true(bench_bytes(&plain) == 4.0 * 2 * (4 * 3 * 8 + 2 * 5 * 8 + 2 * 5 * 16 + 4 * 3 * 16 + 4 * 3));
    assert_true(bench_bytes(&mixed) == 4.0 * 4 * 3 * 8 + 2.0 * 2 * 5 * 8 * 2 + 2.0 * 4 * 3 * 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pairs_follow_the_definition),
        cmocka_unit_test(operations_and_bytes_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
