/* SPDX-License-Identifier: Apache-2.0
 * Engines for CPU devices that most of the matrix does not choose: few rows, and pairs of bf16 with options, odd sizes and
 * partly empty blocks. Engines that this processor cannot run are skipped. */
#include "attend.h"

/* Two kernel sources, by head sizes and options; other differences need no build. */
static const char *const pair_shapes[] = {
    "hq2 hkv2 q200 k333 d64 bf16 causal=bottom-right lse", "hq4 hkv2 q130 k300 d64 bf16 window=70,3 lse",
    "b3 hq2 hkv2 q100 k100 d64 bf16 packed lse",           "hq2 hkv2 q64 k31 d64 bf16 sinks",
    "hq2 hkv1 q70 k150 d34 dv50 bf16 mask=qk lse",         "hq2 hkv1 q70 k150 d34 dv50 bf16 bias=qk softcap=20",
    "hq2 hkv1 q3 k50 d34 dv50 bf16 alibi causal=top-left",
};

static const char *const few_row_shapes[] = {
    "hq4 hkv1 q1 k700 d64 dv80 fp16 lse chunk=192",
    "hq4 hkv1 q1 k65 d64 dv80 fp16 window=20,0 causal=bottom-right lse chunk=192",
    "hq2 hkv2 q8 k70 d24 dv40 causal=bottom-right lse",
    "b3 hq2 hkv2 q8 k70 d24 dv40 packed lse",
    "hq5 hkv1 q1 k90 d17 dv30 mask=qk lse",
    "hq3 hkv3 q1 k130 d33 bf16 bias=qk sinks lse",
};

static void check(struct bench *own, const char *engine, const char *const *shapes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct trial trial;
        struct trial_result result;
        clattn_error error;
        clattn_error_init(&error);
        assert_ok(trial_parse(shapes[i], &trial, &error), &error);
        trial_run_engine(own->context, own->queue, engine, &trial, &result);
        if (!result.ok && result.status != CLATTN_UNSUPPORTED) {
            fail_msg("%s: %s: %s", engine, shapes[i], result.message);
        }
    }
}

static void bf16_pairs_are_right(void **state)
{
    (void)state;
    struct bench own;
    /* Not Intel's by name, where vdpbf16ps is right but slow. */
    bench_context_open(&own, "device_name=x");
    check(&own, "cpu_amx", pair_shapes, COUNT_OF(pair_shapes));
    check(&own, "cpu_bf16", pair_shapes, COUNT_OF(pair_shapes));
    bench_context_close(&own);
}

static void problems_of_few_rows_are_right(void **state)
{
    (void)state;
    check(&bench, "cpu_decode", few_row_shapes, COUNT_OF(few_row_shapes));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bf16_pairs_are_right),
        cmocka_unit_test(problems_of_few_rows_are_right),
    };
    return cmocka_run_group_tests(tests, bench_open, bench_close);
}
