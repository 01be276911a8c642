/* SPDX-License-Identifier: Apache-2.0
 * Queues and events: wait lists, out-of-order queues, the event that covers the last stage, profiling. */
/* ctest: quick pocl-race */
/* The race of PoCL 3.1: threads that release a command after the queue is finished. */
#include "buffers.h"

#include <time.h>

static clattn_error error;

#define SHAPE "b2 hq4 hkv2 q40 k70 d8 dv12"

struct fixture {
    clattn_problem problem;
    clattn_plan *plan;
    struct buffers buffers;
    clattn_call call;
};

static void begin(struct fixture *f, const char *engine)
{
    clattn_error_init(&error);
    assert_ok(clattn_problem_parse(SHAPE, &f->problem, &error), &error);
    f->plan = plan_of(bench.context, SHAPE, engine);
    buffers_create(&f->buffers, clattn_context_cl(bench.context), &f->problem, 0);
    f->call = buffers_call(&f->buffers, f->plan);
}

static void end(struct fixture *f)
{
    buffers_destroy(&f->buffers);
    clattn_plan_destroy(f->plan);
}

static void a_call_waits_for_its_whole_wait_list(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, "reference");
    cl_int code;
    cl_event user = clCreateUserEvent(clattn_context_cl(bench.context), &code);
    assert_int_equal(code, CL_SUCCESS);
    /* (n, NULL) is an error, and nothing was launched. */
    assert_refused(clattn_enqueue(f.plan, bench.queue, &f.call, 1, NULL, NULL, &error), CLATTN_INVALID_ARGUMENT, &error,
                   "wait_list");
    assert_true(buffers_untouched(&f.buffers, bench.queue));
    /* (0, NULL) and (0, list) wait for nothing: the list's event is never completed before the queue drains. */
    assert_ok(clattn_enqueue(f.plan, bench.queue, &f.call, 0, NULL, NULL, &error), &error);
    assert_ok(clattn_enqueue(f.plan, bench.queue, &f.call, 0, &user, NULL, &error), &error);
    assert_true(buffers_all_one(&f.buffers, bench.queue));
    clSetUserEventStatus(user, CL_COMPLETE);
    clReleaseEvent(user);
    end(&f);
}

/* On every engine the first stage waits for the wait list, and the event is that of the last stage. */
static void stages_wait_and_the_event_is_the_last(void **state)
{
    (void)state;
    static const cl_command_queue_properties kinds[] = {0, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE};
    FOR_EACH_ENGINE(engine)
    {
        if (!engine_serves(engine, SHAPE)) {
            continue;
        }
        for (size_t i = 0; i < COUNT_OF(kinds); i++) {
            struct fixture f;
            cl_int code, status = CL_COMPLETE;
            cl_event event = NULL;
            cl_command_queue queue = bench_queue_with(kinds[i]);
            if (queue == NULL) {
                continue;
            }
            begin(&f, engine);
            cl_event user = clCreateUserEvent(clattn_context_cl(bench.context), &code);
            assert_ok(clattn_enqueue(f.plan, queue, &f.call, 1, &user, &event, &error), &error);
            assert_non_null(event);
            assert_int_equal(clFlush(queue), CL_SUCCESS);
            clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL);
            assert_int_not_equal(status, CL_COMPLETE);
            clSetUserEventStatus(user, CL_COMPLETE);
            assert_int_equal(clWaitForEvents(1, &event), CL_SUCCESS);
            /* Another queue reads the results after the event, without clFinish on the first. */
            float *o = malloc(f.buffers.o_count * sizeof *o);
            assert_non_null(o);
            clEnqueueReadBuffer(bench.queue, f.buffers.o, CL_TRUE, 0, f.buffers.o_count * sizeof *o, o, 1, &event, NULL);
            for (size_t j = 0; j < f.buffers.o_count; j++) {
                assert_near(o[j], 1.0, 1e-5);
            }
            free(o);
            clReleaseEvent(event);
            clReleaseEvent(user);
            clReleaseCommandQueue(queue);
            end(&f);
        }
    }
}

/* On an out-of-order queue many calls that depend on one another through events only: each reads what the one before wrote. */
static void chains_on_an_out_of_order_queue(void **state)
{
    (void)state;
    enum { LINKS = 12 };
    cl_command_queue queue = bench_queue_with(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    if (queue == NULL) {
        return;
    }
    static const char *const engines[] = {"reference", "unfused"};
    for (size_t e = 0; e < COUNT_OF(engines); e++) {
        struct attend a;
        cl_int code;
        cl_mem mems[LINKS + 1];
        cl_event before = NULL;
        enum { COUNT = 33 * 8 };
        static float values[COUNT];
        attend_begin(&a, "q33 k33 d8 causal");
        cl_context cl = clattn_context_cl(bench.context);
        for (int i = 0; i < COUNT; i++) {
            values[i] = (float)(i % 8);
        }
        cl_mem zero = clCreateBuffer(cl, CL_MEM_COPY_HOST_PTR, sizeof values, values, &code);
        for (int i = 0; i <= LINKS; i++) {
            mems[i] = clCreateBuffer(cl, CL_MEM_COPY_HOST_PTR, sizeof values, values, &code);
        }
        clattn_plan *plan = plan_of(bench.context, "q33 k33 d8 causal", engines[e]);
        for (int i = 0; i < LINKS; i++) {
            cl_event after = NULL;
            clattn_call call;
            clattn_call_init(&call, plan);
            call.q = call.k = clattn_mem(zero, 0);
            call.v = clattn_mem(mems[i], 0);
            call.o = clattn_mem(mems[i + 1], 0);
            assert_ok(clattn_enqueue(plan, queue, &call, before != NULL, before != NULL ? &before : NULL, &after, &error),
                      &error);
            if (before != NULL) {
                clReleaseEvent(before);
            }
            before = after;
        }
        clEnqueueReadBuffer(queue, mems[LINKS], CL_TRUE, 0, sizeof values, values, 1, &before, NULL);
        /* Every row of V is the same, so each link hands on what it got. */
        for (int i = 0; i < COUNT; i++) {
            assert_near(values[i], i % 8, 1e-4);
        }
        clReleaseEvent(before);
        for (int i = 0; i <= LINKS; i++) {
            clReleaseMemObject(mems[i]);
        }
        clReleaseMemObject(zero);
        clattn_plan_destroy(plan);
        attend_end(&a);
    }
    clReleaseCommandQueue(queue);
}

static void profiling_changes_nothing(void **state)
{
    (void)state;
    cl_command_queue queue = bench_queue_with(CL_QUEUE_PROFILING_ENABLE);
    assert_non_null(queue);
    struct fixture f;
    begin(&f, "unfused");
    cl_event event = NULL;
    cl_ulong start = 0, finish = 0;
    assert_ok(clattn_enqueue(f.plan, queue, &f.call, 0, NULL, &event, &error), &error);
    assert_int_equal(clWaitForEvents(1, &event), CL_SUCCESS);
    assert_int_equal(clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_START, sizeof start, &start, NULL), CL_SUCCESS);
    assert_int_equal(clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof finish, &finish, NULL), CL_SUCCESS);
    assert_true(finish >= start);
    assert_true(buffers_all_one(&f.buffers, queue));
    clReleaseEvent(event);
    clReleaseCommandQueue(queue);
    end(&f);
}

static cl_uint references(cl_mem mem)
{
    cl_uint count = 0;
    clGetMemObjectInfo(mem, CL_MEM_REFERENCE_COUNT, sizeof count, &count, NULL);
    return count;
}

static cl_uint queue_references(void)
{
    cl_uint count = 0;
    clGetCommandQueueInfo(bench.queue, CL_QUEUE_REFERENCE_COUNT, sizeof count, &count, NULL);
    return count;
}

static cl_uint context_references(void)
{
    cl_uint count = 0;
    clGetContextInfo(clattn_context_cl(bench.context), CL_CONTEXT_REFERENCE_COUNT, sizeof count, &count, NULL);
    return count;
}

/* Many calls, with and without events. What the caller owns is retained no more often afterwards than after the
 * first one (an implementation may hold on to the last command). */
static cl_ulong time_of(cl_event event, cl_profiling_info what)
{
    cl_ulong time = 0;
    assert_int_equal(clGetEventProfilingInfo(event, what, sizeof time, &time, NULL), CL_SUCCESS);
    return time;
}

/* `unfused` has three launches: the first begins before the last, and all three lie between the two events. A call of one
 * launch, or of none, has one event for both. */
static void first_and_last_event_cover_the_whole_call(void **state)
{
    (void)state;
    static const cl_command_queue_properties kinds[] = {0, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE};
    static const char *const engines[] = {"unfused", "reference"};
    for (size_t i = 0; i < 2 * COUNT_OF(kinds); i++) {
        struct fixture f;
        cl_event first = NULL, last = NULL;
        cl_command_queue queue = bench_queue_with(kinds[i / 2] | CL_QUEUE_PROFILING_ENABLE);
        if (queue == NULL) {
            continue;
        }
        begin(&f, engines[i % 2]);
        f.call.first_event = &first;
        assert_ok(clattn_enqueue(f.plan, queue, &f.call, 0, NULL, &last, &error), &error);
        assert_non_null(first);
        assert_int_equal(clWaitForEvents(1, &last), CL_SUCCESS);
        if (i % 2 == 0) {
            assert_ptr_not_equal(first, last);
            assert_true(time_of(first, CL_PROFILING_COMMAND_END) <= time_of(last, CL_PROFILING_COMMAND_START));
        } else {
            assert_ptr_equal(first, last);
        }
        assert_true(time_of(first, CL_PROFILING_COMMAND_START) < time_of(last, CL_PROFILING_COMMAND_END));
        clReleaseEvent(first);
        clReleaseEvent(last);
        /* The first one alone. */
        first = NULL;
        assert_ok(clattn_enqueue(f.plan, queue, &f.call, 0, NULL, NULL, &error), &error);
        assert_non_null(first);
        clReleaseEvent(first);
        f.call.seq_q = 0;
        assert_ok(clattn_enqueue(f.plan, queue, &f.call, 0, NULL, &last, &error), &error);
        assert_ptr_equal(first, last);
        clReleaseEvent(first);
        clReleaseEvent(last);
        assert_int_equal(clFinish(queue), CL_SUCCESS);
        clReleaseCommandQueue(queue);
        assert_true(buffers_all_one(&f.buffers, bench.queue));
        end(&f);
    }
}

/* The one-call form waits for events and returns one. */
static void the_one_call_form_waits_and_has_an_event(void **state)
{
    (void)state;
    struct fixture f;
    cl_int code, status = CL_COMPLETE;
    cl_event event = NULL;
    begin(&f, "reference");
    cl_event user = clCreateUserEvent(clattn_context_cl(bench.context), &code);
    assert_int_equal(code, CL_SUCCESS);
    assert_ok(clattn_attention(bench.context, bench.queue, &f.problem, f.buffers.q, f.buffers.k, f.buffers.v, f.buffers.o, NULL,
                               1, &user, &event, &error),
              &error);
    assert_non_null(event);
    clFlush(bench.queue);
    assert_int_equal(clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL), CL_SUCCESS);
    assert_int_not_equal(status, CL_COMPLETE);
    clSetUserEventStatus(user, CL_COMPLETE);
    assert_int_equal(clWaitForEvents(1, &event), CL_SUCCESS);
    assert_true(buffers_all_one(&f.buffers, bench.queue));
    clReleaseEvent(user);
    clReleaseEvent(event);
    end(&f);
}

static void many_calls_retain_nothing(void **state)
{
    (void)state;
    static const char *const engines[] = {"reference", "unfused"};
    for (size_t e = 0; e < COUNT_OF(engines); e++) {
        struct fixture f;
        begin(&f, engines[e]);
        f.call.batch = 1;
        f.call.seq_q = 1;
        f.call.seq_kv = 2;
        assert_ok(clattn_enqueue(f.plan, bench.queue, &f.call, 0, NULL, NULL, &error), &error);
        clFinish(bench.queue);
        const cl_uint q_before = references(f.buffers.q), o_before = references(f.buffers.o);
        const cl_uint context_before = context_references(), queue_before = queue_references();
        for (int i = 0; i < 1000; i++) {
            cl_event event = NULL;
            assert_ok(clattn_enqueue(f.plan, bench.queue, &f.call, 0, NULL, i % 2 ? &event : NULL, &error), &error);
            if (event != NULL) {
                clReleaseEvent(event);
            }
            if (i % 100 == 99) {
                clFinish(bench.queue);
            }
        }
        clFinish(bench.queue);
        /* An implementation's own threads may let go of the last command a little after the queue is finished. */
        for (int i = 0; i < 5000 && (queue_references() > queue_before || context_references() > context_before ||
                                     references(f.buffers.q) > q_before || references(f.buffers.o) > o_before);
             i++) {
            const struct timespec millisecond = {0, 1000000};
            nanosleep(&millisecond, NULL);
        }
        assert_true(queue_references() <= queue_before);
        assert_true(context_references() <= context_before);
        assert_true(references(f.buffers.q) <= q_before);
        assert_true(references(f.buffers.o) <= o_before);
        end(&f);
    }
}

/* A plan and a context may be destroyed while work that they enqueued is still running. */
static void work_outlives_its_plan(void **state)
{
    (void)state;
    FOR_EACH_ENGINE(engine)
    {
        if (!engine_serves(engine, SHAPE)) {
            continue;
        }
        struct bench other;
        struct buffers buffers;
        clattn_problem problem;
        cl_int code;
        clattn_error_init(&error);
        bench_context_open(&other, NULL);
        assert_ok(clattn_problem_parse(SHAPE, &problem, &error), &error);
        cl_context cl = clattn_context_cl(other.context);
        buffers_create(&buffers, cl, &problem, 0);
        cl_event user = clCreateUserEvent(cl, &code);
        clattn_plan *plan = plan_of(other.context, SHAPE, engine);
        const clattn_call call = buffers_call(&buffers, plan);
        assert_ok(clattn_enqueue(plan, other.queue, &call, 1, &user, NULL, &error), &error);
        clattn_plan_destroy(plan);
        clattn_context_destroy(other.context);
        clSetUserEventStatus(user, CL_COMPLETE);
        assert_true(buffers_all_one(&buffers, other.queue));
        clReleaseEvent(user);
        buffers_destroy(&buffers);
        clReleaseCommandQueue(other.queue);
    }
}

struct again {
    struct fixture *f;
    cl_event done;
    _Atomic(int) status; /* of the call from within, -1 before it */
};

static void CL_CALLBACK enqueue_again(cl_event event, cl_int code, void *user)
{
    (void)event;
    struct again *again = user;
    again->status = code != CL_COMPLETE
                        ? CLATTN_OPENCL
                        : (int)clattn_enqueue(again->f->plan, bench.queue, &again->f->call, 0, NULL, &again->done, NULL);
}

/* A function that the driver calls when a call is done enqueues the next one. */
static void an_event_function_may_call_back(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, NULL);
    struct again again = {&f, NULL, -1};
    cl_event event = NULL;
    assert_ok(clattn_enqueue(f.plan, bench.queue, &f.call, 0, NULL, &event, &error), &error);
    assert_int_equal(clSetEventCallback(event, CL_COMPLETE, enqueue_again, &again), CL_SUCCESS);
    assert_int_equal(clFlush(bench.queue), CL_SUCCESS);
    assert_int_equal(clWaitForEvents(1, &event), CL_SUCCESS);
    for (int i = 0; i < 5000 && again.status == -1; i++) {
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    assert_int_equal(again.status, CLATTN_SUCCESS);
    assert_int_equal(clWaitForEvents(1, &again.done), CL_SUCCESS);
    assert_true(buffers_all_one(&f.buffers, bench.queue));
    clReleaseEvent(again.done);
    clReleaseEvent(event);
    end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_waits_for_its_whole_wait_list),
        cmocka_unit_test(stages_wait_and_the_event_is_the_last),
        cmocka_unit_test(chains_on_an_out_of_order_queue),
        cmocka_unit_test(profiling_changes_nothing),
        cmocka_unit_test(first_and_last_event_cover_the_whole_call),
        cmocka_unit_test(the_one_call_form_waits_and_has_an_event),
        cmocka_unit_test(many_calls_retain_nothing),
        cmocka_unit_test(work_outlives_its_plan),
        cmocka_unit_test(an_event_function_may_call_back),
    };
    return cmocka_run_group_tests(tests, bench_open, bench_close);
}
