/* SPDX-License-Identifier: Apache-2.0
 * Explicit masks with runs of fully visible blocks. Engines that process such runs in a separate loop read the classes of 32
 * blocks at once, and must leave the loop at a block that is partly masked, masked, on a diagonal or the last. */
#include "attend.h"

static void runs_of_visible_blocks_may_have_any_length(void **state)
{
    (void)state;
    static const char *const masks[] = {
        "mask=qk seed=1", /* all open */
        "mask=qk seed=5", /* patches: visible, masked, partly masked */
        "mask=qk seed=1 causal=bottom-right",
        "mask=qk seed=5 window=1500,-1",
        "mask=qk seed=1 kv-lengths",
    };
    FOR_EACH_ENGINE(engine)
    {
        for (size_t i = 0; i < COUNT_OF(masks); i++) {
            char text[128];
            snprintf(text, sizeof text, "hq4 q260 k4300 d64 fp16 lse %s", masks[i]);
            attend_check(engine, text);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(runs_of_visible_blocks_may_have_any_length)};
    return cmocka_run_group_tests(tests, bench_open, bench_close);
}
