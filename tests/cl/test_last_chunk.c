/* SPDX-License-Identifier: Apache-2.0
 * The group that finishes a tile's last chunk merges all its chunks (cl/split/last_chunk.cl), on a device that reports NVIDIA
 * as its vendor: chunks without visible keys, several sequences and sinks, and a workspace used twice. */
#include "attend.h"

/* One kernel source for all. */
static const char *const shapes[] = {
    "hq4 hkv2 q2 k1100 d32 lse chunk=256",
    "b2 hq4 hkv2 q2 k1100 d32 lse sinks kv-lengths chunk=256",
    "hq4 hkv2 q2 k1100 d32 lse window=10,0 causal=bottom-right repeats=3 chunk=256",
    "b3 hq4 hkv2 q2 k400 d32 lse packed chunk=256",
};

static void the_last_group_merges_all_chunks(void **state)
{
    (void)state;
    struct bench own;
    bench_context_open(&own, "nv_compute=90");
    for (size_t i = 0; i < COUNT_OF(shapes); i++) {
        struct trial trial;
        struct trial_result result;
        clattn_error error;
        clattn_error_init(&error);
        assert_ok(trial_parse(shapes[i], &trial, &error), &error);
        trial_run_engine(own.context, own.queue, "simt", &trial, &result);
        if (!result.ok) {
            fail_msg("%s: %s", shapes[i], result.message);
        }
    }
    bench_context_close(&own);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_group_merges_all_chunks),
    };
    return cmocka_run_group_tests(tests, bench_open, bench_close);
}
