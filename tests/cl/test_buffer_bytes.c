/* SPDX-License-Identifier: Apache-2.0
 * Memory that the library takes for a call: only the baseline stores a number for each pair of query and key. Counted between
 * the loader and the driver, from the creation of the plan to the end of the call. */
#include "attend.h"
#include "layered.h"

static struct layer_state *layer;

static int open_all(void **state)
{
    layer_request();
    layer = layer_open();
    return bench_open(state);
}

/* Bytes of the buffers that the library made for the shape; negative where the engine declines. */
static long bytes_of(const char *engine, const char *text, double *matrix)
{
    struct attend a;
    struct trial_device device;
    clattn_plan_options options;
    clattn_plan *plan = NULL;
    clattn_call call;
    clattn_error error;
    const char *what = "";
    cl_int code = CL_SUCCESS;
    clattn_error_init(&error);
    attend_begin(&a, text);
    const clattn_problem *p = &a.trial.problem;
    *matrix = 4.0 * (double)p->batch * (double)p->heads_q * (double)p->seq_q * (double)p->seq_kv;
    assert_true(trial_device_create(&device, bench.context, &a.data, &what, &code));
    trial_plan_options(&a.trial, engine, &options);
    /* The first plan of a kernel tries it out, with buffers of its own for that while. */
    clattn_status status = clattn_plan_create(bench.context, p, &options, &plan, &error);
    clattn_plan_destroy(plan);
    plan = NULL;
    layer->buffer_bytes = 0;
    layer->counting = true;
    status = clattn_plan_create(bench.context, p, &options, &plan, &error);
    if (status == CLATTN_SUCCESS) {
        trial_device_call(&device, plan, &a.trial, &a.data, &call);
        status = clattn_enqueue(plan, bench.queue, &call, 0, NULL, NULL, &error);
    }
    layer->counting = false;
    const long bytes = status == CLATTN_UNSUPPORTED ? -1 : layer->buffer_bytes;
    if (status != CLATTN_UNSUPPORTED) {
        assert_ok(status, &error);
        assert_int_equal(clFinish(bench.queue), CL_SUCCESS);
        assert_true(bytes >= (long)clattn_workspace_size(plan));
    }
    clattn_plan_destroy(plan);
    trial_device_destroy(&device);
    attend_end(&a);
    return bytes;
}

static void only_the_unfused_baseline_allocates_a_score_matrix(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double share; /* of the matrix of scores in fp32 */
    } shapes[] = {
        {"hq4 q1024 k1024 d64 lse causal chunk=-1", 0.0},
        {"b2 hq2 q600 k600 d64 lse packed sinks chunk=-1", 0.0},
        /* Nothing, or four descriptors of 128 bytes for each compute unit. */
        {"hq4 q1024 k1024 d64 fp16 lse causal chunk=-1", 1.0 / 128.0},
        /* A byte for each tile of the mask, which all heads share. */
        {"hq4 q1024 k1024 d64 lse mask=qk bias=hqk alibi softcap=3 sinks window=200,100 kv-lengths chunk=-1", 1.0 / 256.0},
        /* A partial result, at most 68 numbers, for each chunk of 256 keys or more. */
        {"hq4 hkv1 q4 k16384 d64 lse", 68.0 / 256.0},
    };
    for (size_t i = 0; i < COUNT_OF(shapes); i++) {
        double matrix = 0.0;
        assert_true(bytes_of("unfused", shapes[i].text, &matrix) >= (long)matrix);
        FOR_EACH_ENGINE(engine)
        {
            if (strcmp(engine, "unfused") != 0) {
                const long bytes = bytes_of(engine, shapes[i].text, &matrix);
                if ((double)bytes > shapes[i].share * matrix) {
                    fail_msg("%s, \"%s\": %ld bytes, the matrix has %.0f", engine, shapes[i].text, bytes, matrix);
                }
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(only_the_unfused_baseline_allocates_a_score_matrix)};
    return cmocka_run_group_tests(tests, open_all, bench_close);
}
