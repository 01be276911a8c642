/* SPDX-License-Identifier: Apache-2.0
 * One plan and one context used by many threads at once, each with a queue of its own. */
/* ctest: quick threads pocl-race */
/* The race of PoCL 3.1: a build that fails next to others, without a word in its log. */
#include "buffers.h"

#include <pthread.h>

enum { THREADS = 16, CALLS = 60 };

struct worker {
    pthread_t thread;
    int number;
    clattn_plan *plan;
    clattn_context *context;
    cl_command_queue queue;
    const char *engine;
    char complaint[256];
};

static void start_all(struct worker *workers, int count, void *(*work)(void *))
{
    for (int i = 0; i < count; i++) {
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < count; i++) {
        pthread_join(workers[i].thread, NULL);
    }
    for (int i = 0; i < count; i++) {
        if (workers[i].complaint[0] != '\0') {
            fail_msg("thread %d: %s", i, workers[i].complaint);
        }
    }
}

static void complain(struct worker *w, const char *text)
{
    if (w->complaint[0] == '\0') {
        snprintf(w->complaint, sizeof w->complaint, "%.250s", text);
    }
}

enum { KEYS = 24, DIM = 8 };

/* A call whose answer depends on the thread's own length: V row j is j + 1, so the output of length n is (n + 1) / 2. */
static void *call_with_own_numbers(void *argument)
{
    struct worker *w = argument;
    cl_int code = CL_SUCCESS;
    cl_context cl = clattn_context_cl(w->context);
    float zeros[KEYS * DIM] = {0}, values[KEYS * DIM], out[DIM];
    for (int i = 0; i < KEYS * DIM; i++) {
        values[i] = (float)(i / DIM + 1);
    }
    cl_mem k = clCreateBuffer(cl, CL_MEM_COPY_HOST_PTR, sizeof zeros, zeros, &code);
    cl_mem v = clCreateBuffer(cl, CL_MEM_COPY_HOST_PTR, sizeof values, values, &code);
    cl_mem o = clCreateBuffer(cl, 0, sizeof out, NULL, &code);
    for (int i = 0; i < CALLS && code == CL_SUCCESS; i++) {
        clattn_error error;
        clattn_call call;
        const int length = 1 + (w->number * 7 + i) % KEYS;
        clattn_error_init(&error);
        clattn_call_init(&call, w->plan);
        call.q = call.k = clattn_mem(k, 0);
        call.v = clattn_mem(v, 0);
        call.o = clattn_mem(o, 0);
        call.seq_kv = length;
        call.scale = (float)w->number;
        if (clattn_enqueue(w->plan, w->queue, &call, 0, NULL, NULL, &error) != CLATTN_SUCCESS) {
            complain(w, error.message);
            break;
        }
        code = clEnqueueReadBuffer(w->queue, o, CL_TRUE, 0, sizeof out, out, 0, NULL, NULL);
        if (fabsf(out[DIM - 1] - (float)(length + 1) / 2.0f) > 1e-4f) {
            complain(w, "a result of another thread's numbers");
        }
    }
    if (code != CL_SUCCESS) {
        complain(w, "an OpenCL call failed");
    }
    clReleaseMemObject(k);
    clReleaseMemObject(v);
    clReleaseMemObject(o);
    return NULL;
}

static void many_threads_may_share_a_plan(void **state)
{
    (void)state;
    FOR_EACH_ENGINE(engine)
    {
        if (!engine_serves(engine, "q1 k24 d8")) {
            continue;
        }
        struct worker workers[THREADS];
        clattn_plan *plan = plan_of(bench.context, "q1 k24 d8", engine);
        memset(workers, 0, sizeof workers);
        for (int i = 0; i < THREADS; i++) {
            workers[i].number = i;
            workers[i].plan = plan;
            workers[i].context = bench.context;
            workers[i].queue = bench_queue_with(0);
            assert_non_null(workers[i].queue);
        }
        start_all(workers, THREADS, call_with_own_numbers);
        for (int i = 0; i < THREADS; i++) {
            clReleaseCommandQueue(workers[i].queue);
        }
        clattn_plan_destroy(plan);
    }
}

/* All on one queue: the calls interleave, their numbers do not mix. */
static void many_threads_may_share_a_queue(void **state)
{
    (void)state;
    struct worker workers[THREADS];
    clattn_plan *plan = plan_of(bench.context, "q1 k24 d8", "unfused");
    memset(workers, 0, sizeof workers);
    for (int i = 0; i < THREADS; i++) {
        workers[i].number = i;
        workers[i].plan = plan;
        workers[i].context = bench.context;
        workers[i].queue = bench.queue;
    }
    start_all(workers, THREADS, call_with_own_numbers);
    clattn_plan_destroy(plan);
}

static void *make_a_plan(void *argument)
{
    struct worker *w = argument;
    clattn_error error;
    clattn_problem problem;
    clattn_plan_options options;
    clattn_error_init(&error);
    clattn_plan_options_init(&options);
    options.at_bounds = true;
    options.engine = w->engine;
    if (clattn_problem_parse(w->number % 2 ? "q9 k7 d8" : "q3 k70 d8 causal", &problem, &error) != CLATTN_SUCCESS ||
        clattn_plan_create(w->context, &problem, &options, &w->plan, &error) != CLATTN_SUCCESS) {
        complain(w, error.message);
    }
    return NULL;
}

/* All threads race for the first use: the program is built once. */
static void a_raced_first_use_builds_once(void **state)
{
    (void)state;
    struct bench own;
    struct worker workers[THREADS];
    bench_context_open(&own, NULL);
    memset(workers, 0, sizeof workers);
    for (int i = 0; i < THREADS; i++) {
        workers[i].number = i;
        workers[i].context = own.context;
        workers[i].engine = "reference";
    }
    start_all(workers, THREADS, make_a_plan);
    assert_int_equal(clattn_context_build_count(own.context), 1);
    for (int i = 0; i < THREADS; i++) {
        clattn_plan_destroy(workers[i].plan);
    }
    bench_context_close(&own);
}

static void *open_a_context(void *argument)
{
    struct worker *w = argument;
    clattn_error error;
    clattn_error_init(&error);
    if (clattn_context_create(NULL, NULL, NULL, &w->context, &error) != CLATTN_SUCCESS) {
        complain(w, error.message);
    }
    clattn_context_destroy(w->context);
    return NULL;
}

/* Threads with separate objects need no synchronisation. */
static void each_thread_may_have_its_own_context(void **state)
{
    (void)state;
    struct worker workers[4];
    memset(workers, 0, sizeof workers);
    start_all(workers, 4, open_a_context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_threads_may_share_a_plan),
        cmocka_unit_test(many_threads_may_share_a_queue),
        cmocka_unit_test(a_raced_first_use_builds_once),
        cmocka_unit_test(each_thread_may_have_its_own_context),
    };
    return cmocka_run_group_tests(tests, bench_open, bench_close);
}
