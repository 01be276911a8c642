/* SPDX-License-Identifier: Apache-2.0
 * The workspace of calls without one of their own: allocated once for an in-order queue, for each call on other queues or where
 * it is large, and freed with the plan. Counted between the loader and the driver. */
/* ctest: quick */
#define _POSIX_C_SOURCE 200809L
#include "buffers.h"
#include "layered.h"

#include <stdlib.h>

static struct layer_state *layer;
static clattn_error error;

static int open_all(void **state)
{
    layer_request();
    layer = layer_open();
    clattn_error_init(&error);
    return bench_open(state);
}

/* Bytes of the buffers made for a call on `queue`, whose result must be right. */
static long bytes_on(cl_command_queue queue, clattn_plan *plan, const struct buffers *buffers)
{
    const clattn_call call = buffers_call(buffers, plan);
    buffers_poison(buffers, queue);
    layer->buffer_bytes = 0;
    layer->counting = true;
    const clattn_status status = clattn_enqueue(plan, queue, &call, 0, NULL, NULL, &error);
    layer->counting = false;
    assert_ok(status, &error);
    assert_true(buffers_all_one(buffers, queue));
    return layer->buffer_bytes;
}

/* A plan and its buffers. The baseline needs a workspace on every device. */
static clattn_plan *begin(const char *shape, struct buffers *buffers)
{
    clattn_problem problem;
    assert_ok(clattn_problem_parse(shape, &problem, &error), &error);
    buffers_create(buffers, clattn_context_cl(bench.context), &problem, 0);
    return plan_of(bench.context, shape, "unfused");
}

static void an_in_order_queue_keeps_its_workspace(void **state)
{
    (void)state;
    struct buffers buffers;
    clattn_plan *plan = begin("hq2 q5 k7 d8", &buffers);
    const long size = (long)clattn_workspace_size(plan);
    const long memory = layer->live[LAYER_MEMORY], queues = layer->live[LAYER_QUEUE];
    cl_command_queue first = bench_queue_with(0), second = bench_queue_with(0);
    assert_true(size > 0 && first && second);
    assert_int_equal(bytes_on(first, plan, &buffers), size);
    assert_int_equal(bytes_on(first, plan, &buffers), 0);
    assert_int_equal(bytes_on(first, plan, &buffers), 0);
    assert_int_equal(bytes_on(second, plan, &buffers), size);
    assert_int_equal(bytes_on(second, plan, &buffers), 0);
    assert_int_equal(bytes_on(first, plan, &buffers), size);
    clReleaseCommandQueue(first);
    clReleaseCommandQueue(second);
    /* The plan's: of the last queue alone. */
    assert_int_equal(layer->live[LAYER_MEMORY], memory + 1);
    assert_int_equal(layer->live[LAYER_QUEUE], queues + 1);
    clattn_plan_destroy(plan);
    assert_int_equal(layer->live[LAYER_MEMORY], memory);
    assert_int_equal(layer->live[LAYER_QUEUE], queues);
    buffers_destroy(&buffers);
}

/* Two calls on such a queue may run at once. */
static void an_out_of_order_queue_keeps_no_workspace(void **state)
{
    (void)state;
    struct buffers buffers;
    cl_command_queue queue = bench_queue_with(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE), other = bench_queue_with(0);
    if (queue == NULL) {
        clReleaseCommandQueue(other);
        skip();
    }
    clattn_plan *plan = begin("hq2 q5 k7 d8", &buffers);
    const long size = (long)clattn_workspace_size(plan), memory = layer->live[LAYER_MEMORY];
    assert_int_equal(bytes_on(queue, plan, &buffers), size);
    assert_int_equal(bytes_on(queue, plan, &buffers), size);
    assert_int_equal(layer->live[LAYER_MEMORY], memory);
    /* Nor does it take that of another queue. */
    assert_int_equal(bytes_on(other, plan, &buffers), size);
    assert_int_equal(bytes_on(queue, plan, &buffers), size);
    assert_int_equal(bytes_on(other, plan, &buffers), 0);
    clReleaseCommandQueue(queue);
    clReleaseCommandQueue(other);
    clattn_plan_destroy(plan);
    buffers_destroy(&buffers);
}

static void a_large_workspace_is_freed_with_its_call(void **state)
{
    (void)state;
    struct buffers buffers;
    clattn_plan *plan = begin("hq5 q1024 k1024 d1", &buffers);
    const long size = (long)clattn_workspace_size(plan), memory = layer->live[LAYER_MEMORY];
    assert_true(size > 16 << 20);
    assert_int_equal(bytes_on(bench.queue, plan, &buffers), size);
    assert_int_equal(layer->live[LAYER_MEMORY], memory);
    clattn_plan_destroy(plan);
    buffers_destroy(&buffers);
}

/* The self-check runs on its own queue, whose workspace is freed with it. */
static void a_self_check_leaves_no_workspace(void **state)
{
    (void)state;
    struct bench own;
    setenv("CLATTN_SELFCHECK", "all", 1);
    bench_context_open(&own, NULL);
    const long memory = layer->live[LAYER_MEMORY], queues = layer->live[LAYER_QUEUE];
    layer->buffer_bytes = 0;
    layer->counting = true;
    clattn_plan *plan = plan_of(own.context, "hq2 hkv1 q9 k20 d16", "unfused");
    layer->counting = false;
    assert_true(layer->buffer_bytes > (long)clattn_workspace_size(plan)); /* it has been called */
    assert_true(clattn_workspace_size(plan) > 0);
    assert_int_equal(layer->live[LAYER_MEMORY], memory);
    assert_int_equal(layer->live[LAYER_QUEUE], queues);
    clattn_plan_destroy(plan);
    bench_context_close(&own);
    unsetenv("CLATTN_SELFCHECK");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_in_order_queue_keeps_its_workspace),
        cmocka_unit_test(an_out_of_order_queue_keeps_no_workspace),
        cmocka_unit_test(a_large_workspace_is_freed_with_its_call),
        cmocka_unit_test(a_self_check_leaves_no_workspace),
    };
    return cmocka_run_group_tests(tests, open_all, bench_close);
}
