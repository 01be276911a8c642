/* SPDX-License-Identifier: Apache-2.0
 * Sinks of every size, infinite and no numbers, in rows that see keys and rows that see none, split or not. */
#include "attend.h"

enum { KEYS = 600 };

static void same(const char *engine, const char *shape, float sink, const char *what, double got, double want)
{
    const bool right = isnan(want) ? isnan(got) : got == want || fabs(got - want) <= 1e-5 * fabs(want) + 1e-6;
    if (!right) {
        fail_msg("%s, \"%s\", sink %g: %s is %.9g, wanted %.9g", engine, shape, (double)sink, what, got, want);
    }
}

/* Sequence 0 sees no key, sequence 1 sees them all with a score of 2 each and V = 7. */
static void check_sinks(const char *engine, const char *shape)
{
    static const float sinks[] = {-INFINITY, -3e38f, 1.5f, 9.0f, 3e38f, INFINITY, NAN};
    struct attend a;
    attend_begin(&a, shape);
    attend_fill(&a.data.q, 1.0f);
    attend_fill(&a.data.k, 0.25f);
    attend_fill(&a.data.v, 7.0f);
    trial_set_integer(&a.data.kv_lengths, 0, 0);
    trial_set_integer(&a.data.kv_lengths, 1, KEYS);
    for (size_t i = 0; i < COUNT_OF(sinks); i++) {
        const double sink = sinks[i], sum = KEYS + exp(sink - 2.0);
        trial_set(&a.data.sinks, 0, 0, 0, 0, sinks[i]);
        if (!attend_launch(&a, engine)) {
            break;
        }
        same(engine, shape, sinks[i], "O of a row that sees nothing", trial_get(&a.data.o, 0, 0, 0, 5), 0.0);
        same(engine, shape, sinks[i], "its LSE", trial_get(&a.data.lse, 0, 0, 0, 0), sink);
        same(engine, shape, sinks[i], "O", trial_get(&a.data.o, 1, 0, 0, 5), 7.0 * KEYS / sum);
        same(engine, shape, sinks[i], "LSE", trial_get(&a.data.lse, 1, 0, 0, 0),
             sink > 100.0 ? sink : 2.0 + log(sum)); /* NaN is not above 100 */
    }
    attend_end(&a);
}

static void sinks_of_any_size_mean_the_same_split_or_not(void **state)
{
    (void)state;
    FOR_EACH_ENGINE(engine)
    {
        check_sinks(engine, "b2 q1 k600 d8 dv8 scale=1 sinks kv-lengths lse chunk=-1");
        check_sinks(engine, "b2 q1 k600 d8 dv8 scale=1 sinks kv-lengths lse chunk=256");
    }
}

/* As on NVIDIA, where the group that finishes the last chunk merges. */
static void sinks_of_any_size_mean_the_same_in_one_launch(void **state)
{
    (void)state;
    const struct bench before = bench;
    bench_context_open(&bench, "nv_compute=90");
    check_sinks("simt", "b2 q1 k600 d8 dv8 scale=1 sinks kv-lengths lse chunk=256");
    bench_context_close(&bench);
    bench = before;
}

/* The largest float times ln 2: where scores are in base two, larger ones count as that. */
static bool is_in_base_two(const char *engine) { return strcmp(engine, "simt") == 0 || strncmp(engine, "nv_", 3) == 0; }

static void scales_are_held_at_the_largest_in_base_two(void **state)
{
    (void)state;
    FOR_EACH_ENGINE(engine)
    {
        struct attend a;
        attend_begin(&a, "q1 k2 d8 dv8 scale=3e38 lse");
        trial_set(&a.data.q, 0, 0, 0, 2, 1e-19f);
        trial_set(&a.data.k, 0, 0, 1, 2, 2e-19f);
        for (int64_t e = 0; e < 8; e++) {
            trial_set(&a.data.v, 0, 0, 1, e, 1.0f);
        }
        if (attend_launch(&a, engine)) {
            const double scale = is_in_base_two(engine) ? 3.402823466e38 * log(2.0) : 3e38;
            const double score = 2e-38 * scale;
            assert_near(trial_get(&a.data.o, 0, 0, 0, 1), 1.0 / (1.0 + exp(-score)), 1e-5);
            assert_near(trial_get(&a.data.lse, 0, 0, 0, 0), log(1.0 + exp(score)), 1e-5);
        }
        attend_end(&a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sinks_of_any_size_mean_the_same_split_or_not),
        cmocka_unit_test(sinks_of_any_size_mean_the_same_in_one_launch),
        cmocka_unit_test(scales_are_held_at_the_largest_in_base_two),
    };
    return cmocka_run_group_tests(tests, bench_open, bench_close);
}
