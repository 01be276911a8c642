/* SPDX-License-Identifier: Apache-2.0
 * Packed sequences whose starts decrease. Each sequence depends on two numbers only, so that no kernel has to read all of them:
 * [start, the greater of start and the next one]. Sequences may then share rows, which hold the result of either; rows of no
 * sequence are not written. */
#include "attend.h"

enum { ROWS = 20, FALLING = 4 };

/* Rows 0 ... 11, none, and rows 4 ... 15. With Q = 0 a row is the mean of its sequence's V. */
static const int64_t falling[FALLING] = {0, 12, 4, 16};

static bool is_near(float x, double want) { return fabs((double)x - want) <= 1e-5; }

static bool is_right(float x, int64_t row)
{
    const bool first = row < 12, last = row >= 4 && row < 16;
    return (first && is_near(x, 5.5)) || (last && is_near(x, 9.5)) || (!first && !last && isnan(x));
}

static void check(const char *engine, const char *shape)
{
    struct attend a;
    attend_begin(&a, shape);
    for (int64_t i = 0; i < FALLING; i++) {
        trial_set_integer(&a.data.q_starts, i, falling[i]);
        trial_set_integer(&a.data.kv_starts, i, falling[i]);
    }
    a.trial.problem.packed.total_q = a.trial.problem.packed.total_kv = ROWS;
    attend_fill(&a.data.v, NAN);
    for (int64_t row = 0; row < ROWS; row++) {
        for (int64_t d = 0; d < 8; d++) {
            trial_set(&a.data.v, 0, 0, row, d, row < 16 ? (float)row : NAN);
        }
    }
    if (attend_launch(&a, engine)) {
        for (int64_t row = 0; row < a.data.o.size[2]; row++) {
            for (int64_t d = 0; d < 8; d++) {
                const float x = trial_get(&a.data.o, 0, 0, row, d);
                if (!is_right(x, row)) {
                    fail_msg("%s, \"%s\": row %d holds %g", engine, shape, (int)row, (double)x);
                }
            }
        }
    }
    attend_end(&a);
}

static void starts_may_fall(void **state)
{
    (void)state;
    FOR_EACH_ENGINE(engine)
    {
        check(engine, "b3 q20 k20 d8 packed lse");
        check(engine, "b3 q20 k20 d8 packed=int64 lse chunk=8");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(starts_may_fall)};
    return cmocka_run_group_tests(tests, bench_open, bench_close);
}
