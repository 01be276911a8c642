/* SPDX-License-Identifier: Apache-2.0 */
#include "steps.h"

#include "files.h"

struct stage stage;

void stage_open(void)
{
    cl_int code = CL_SUCCESS;
    unsetenv("CLATTN_CACHE");
    unsetenv("CLATTN_CACHE_DIR");
    clattn_error_init(&stage.error);
    assert_ok(clattn_device_find(NULL, &stage.device, &stage.error), &stage.error);
    assert_ok(clattn_problem_parse("hq2 q2 k70 d8 lse", &stage.problem, &stage.error), &stage.error);
    stage.cl = clCreateContext(NULL, 1, &stage.device, NULL, NULL, &code);
    assert_int_equal(code, CL_SUCCESS);
    stage.queue = clCreateCommandQueue(stage.cl, stage.device, 0, &code);
    assert_int_equal(code, CL_SUCCESS);
    buffers_create(&stage.buffers, stage.cl, &stage.problem, 0);
    stage.folder = folder_create();
    assert_non_null(stage.folder);
}

void stage_close(void)
{
    buffers_destroy(&stage.buffers);
    clReleaseCommandQueue(stage.queue);
    clReleaseContext(stage.cl);
    folder_remove(stage.folder);
}

void stage_forget(void)
{
    struct names names;
    assert_true(folder_list(stage.folder, ".clb", &names));
    for (size_t i = 0; i < names.count; i++) {
        char *path = path_join(stage.folder, names.list[i]);
        assert_int_equal(remove(path), 0);
        free(path);
    }
    names_free(&names);
}

static clattn_status create_context(struct session *s)
{
    clattn_context_options options;
    clattn_context_options_init(&options);
    options.cache_folder = stage.folder;
    return clattn_context_create(s->own_cl ? NULL : stage.cl, NULL, &options, &s->context, &stage.error);
}

static clattn_status create_plan(struct session *s)
{
    clattn_plan_options options;
    clattn_plan_options_init(&options);
    options.at_bounds = true;
    options.engine = "reference";
    options.chunk = 32; /* keys are split: two kernels, and a workspace */
    return clattn_plan_create(s->context, &stage.problem, &options, &s->plan, &stage.error);
}

static clattn_status enqueue(struct session *s)
{
    cl_event event = NULL;
    const clattn_call call = buffers_call(&stage.buffers, s->plan);
    const clattn_status status = clattn_enqueue(s->plan, stage.queue, &call, 0, NULL, &event, &stage.error);
    assert_true((status == CLATTN_SUCCESS) == (event != NULL));
    if (event != NULL) {
        clReleaseEvent(event);
    }
    return status;
}

/* Of the result with itself: every output stays 1. */
static clattn_status merge(struct session *s)
{
    cl_event event = NULL;
    clattn_merge m;
    clattn_merge_init(&m);
    m.batch = stage.problem.batch;
    m.heads = stage.problem.heads_q;
    m.seq_q = stage.problem.seq_q;
    m.head_dim = stage.problem.head_dim_v;
    m.a.o_layout = stage.problem.o;
    m.a.o = clattn_mem(stage.buffers.o, 0);
    m.a.lse = clattn_mem(stage.buffers.lse, 0);
    m.a.lse_strides.batch = stage.problem.lse.strides.batch;
    m.a.lse_strides.head = stage.problem.lse.strides.head;
    m.a.lse_strides.row = stage.problem.lse.strides.row;
    m.b = m.out = m.a;
    const clattn_status status = clattn_enqueue_merge(s->context, stage.queue, &m, 0, NULL, &event, &stage.error);
    assert_true((status == CLATTN_SUCCESS) == (event != NULL));
    if (event != NULL) {
        clReleaseEvent(event);
    }
    return status;
}

clattn_status step_run(struct session *s, size_t step)
{
    static clattn_status (*const steps[STEPS])(struct session *) = {create_context, create_plan, enqueue, merge};
    return steps[step](s);
}

void steps_run(struct session *s, size_t first, size_t last)
{
    for (size_t i = first; i < last; i++) {
        assert_ok(step_run(s, i), &stage.error);
    }
}

void session_close(struct session *s)
{
    clattn_plan_destroy(s->plan);
    clattn_context_save(s->context);
    clattn_context_destroy(s->context);
    s->plan = NULL;
    s->context = NULL;
    clFinish(stage.queue);
}
