/* SPDX-License-Identifier: Apache-2.0
 * Drivers whose kernels run only with small groups, although the device allows larger ones. A layer makes PoCL report that and
 * report a GPU, so that the engines for CPUs, whose groups are single work-items, do not serve. */
#include "attend.h"
#include "layered.h"

static struct layer_state *layer;
static struct bench gpu;

static int open_all(void **state)
{
    layer_request();
    layer = layer_open();
    if (bench_open(state) != 0)
        return -1;
    bench_context_open(&gpu, "device_kind=gpu");
    return 0;
}

static int close_all(void **state)
{
    bench_context_close(&gpu);
    return bench_close(state);
}

/* A plan of the engine is made and gives the right answer. */
static void check(const char *engine, const char *text)
{
    clattn_error error;
    struct trial trial;
    struct trial_result result;
    clattn_error_init(&error);
    assert_ok(trial_parse(text, &trial, &error), &error);
    assert_ok(clattn_supported(gpu.context, &trial.problem, NULL, &error), &error);
    trial_run_engine(gpu.context, gpu.queue, engine, &trial, &result);
    if (!result.ok)
        fail_msg("%s, groups of %zu, %s: %s %s", engine, layer->work_group_limit, text, clattn_status_name(result.status),
                 result.message);
}

static void engines_that_serve_everything_run_with_any_group(void **state)
{
    (void)state;
    static const size_t limits[] = {1, 3, 17};
    for (size_t i = 0; i < COUNT_OF(limits); i++) {
        layer->work_group_limit = limits[i];
        check("reference", "hq2 hkv1 q5 k37 d8 lse causal=bottom-right");
        check("reference", "hq2 hkv1 q3 k700 d8 dv12 lse chunk=64");
        check("reference", "q5 k37 d8 scores=softmax");
        check("unfused", "hq2 hkv1 q5 k37 d8 lse scores=bias");
    }
    layer->work_group_limit = 0;
}

/* The group of an engine fits, and that of the launch before or after it does not. */
static void launches_next_to_attention_run_with_any_group(void **state)
{
    (void)state;
    layer->work_group_limit = 3;
    layer->limited_kernel = "merge";
    check("simt", "hq2 hkv1 q1 k700 d8 lse chunk=64");
    layer->limited_kernel = "classify";
    check("simt", "hq8 q130 k140 d8 mask=qk lse");
    layer->limited_kernel = NULL;
    layer->work_group_limit = 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(engines_that_serve_everything_run_with_any_group),
        cmocka_unit_test(launches_next_to_attention_run_with_any_group),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
