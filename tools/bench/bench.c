/* SPDX-License-Identifier: Apache-2.0
 * Plans, first launches, turns; bench_sample.c takes the samples. */
#define CLATTN_EXPERIMENTAL
#include "bench_sample.h"
#include "interrupt.h"
#include "system.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TURNS = 4, FEWEST_SAMPLES = 3, PATIENCE = 8 }; /* a slow engine gets so many times the requested time */

int bench_open(struct bench *bench, struct session *session, const struct bench_settings *settings)
{
    const cl_device_id device = clattn_context_device(session->context);
    size_t resolution = 0;
    cl_int code;
    memset(bench, 0, sizeof *bench);
    bench->session = session;
    bench->settings = *settings;
    cl_command_queue queue =
        clCreateCommandQueue(clattn_context_cl(session->context), device, CL_QUEUE_PROFILING_ENABLE, &code);
    if (queue == NULL)
        return cli_fail_cl(session->command, "clCreateCommandQueue", code);
    if (clGetDeviceInfo(device, CL_DEVICE_PROFILING_TIMER_RESOLUTION, sizeof resolution, &resolution, NULL) == CL_SUCCESS)
        bench->resolution = 1e-9 * (double)resolution;
    if (settings->flush > 0)
        bench->flush = clCreateBuffer(clattn_context_cl(session->context), CL_MEM_READ_WRITE, settings->flush, NULL, &code);
    if (settings->flush > 0 && bench->flush == NULL) {
        clReleaseCommandQueue(queue);
        return cli_fail(session->command, CLI_FAILED, "--flush",
                        "a device buffer of %zu bytes could not be made (OpenCL code %d); try fewer", settings->flush,
                        (int)code);
    }
    clReleaseCommandQueue(session->queue);
    session->queue = queue;
    return CLI_OK;
}

void bench_close(struct bench *bench)
{
    if (bench->flush != NULL)
        clReleaseMemObject(bench->flush);
    bench->flush = NULL;
}

/* One shape being measured. */
struct work {
    struct bench *bench;
    struct bench_case *out;
    struct trial_data data;
    struct trial_device device;
    struct lane lanes[BENCH_MAX_ENGINES]; /* lane i gives result i */
    struct samples fma;                   /* seconds of a launch of multiply-adds */
};

static void tell(const struct work *w, const struct lane *lane, const char *what)
{
    if (w->bench->progress != NULL)
        w->bench->progress(w->bench->progress_user, lane->result->engine, what);
}

/* ---------------------------------------------------------------------------------------------------------------- lanes */

/* In its own context and without the library's cache on disk, so that its build time does not depend on earlier
 * measurements. */
static bool make_plan(struct work *w, const char *engine, struct lane *lane)
{
    struct bench_result *r = lane->result;
    clattn_context_options context_options;
    clattn_plan_options options;
    clattn_error error;
    clattn_context *const shared = w->bench->session->context;
    clattn_error_init(&error);
    clattn_context_options_init(&context_options);
    context_options.cache_off = true;
    clattn_plan_options_init(&options);
    options.at_bounds = true;
    options.engine = engine;
    clattn_status status = clattn_context_create(clattn_context_cl(shared), clattn_context_device(shared), &context_options,
                                                 &lane->context, &error);
    const double start = clock_seconds();
    if (status == CLATTN_SUCCESS)
        status = clattn_plan_create(lane->context, &w->out->trial.problem, &options, &lane->plan, &error);
    r->build = clock_seconds() - start;
    if (status == CLATTN_SUCCESS)
        snprintf(r->engine, sizeof r->engine, "%s", clattn_plan_engine(lane->plan));
    else
        snprintf(r->why, sizeof r->why, "%s: %.400s", clattn_status_name(status), error.message);
    return status == CLATTN_SUCCESS;
}

static bool make_workspace(struct work *w, struct lane *lane)
{
    const clattn_context *const context = w->bench->session->context;
    struct bench_result *r = lane->result;
    cl_ulong largest = 0, all = 0;
    cl_int code = CL_SUCCESS;
    r->workspace_bytes = clattn_workspace_size(lane->plan);
    if (r->workspace_bytes == 0)
        return true;
    (void)clGetDeviceInfo(clattn_context_device(context), CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof largest, &largest, NULL);
    (void)clGetDeviceInfo(clattn_context_device(context), CL_DEVICE_GLOBAL_MEM_SIZE, sizeof all, &all, NULL);
    if (r->workspace_bytes <= largest && r->workspace_bytes <= all / 2)
        lane->workspace = clCreateBuffer(clattn_context_cl(context), CL_MEM_READ_WRITE, r->workspace_bytes, NULL, &code);
    if (lane->workspace == NULL) {
        snprintf(r->why, sizeof r->why, "no room for its workspace of %zu MiB", r->workspace_bytes >> 20);
        return false;
    }
    lane->call.workspace = clattn_mem(lane->workspace, 0);
    return true;
}

/* The rest of the build time, and the verdict on the answer. */
static int first_launch(struct work *w, struct lane *lane)
{
    struct session *session = w->bench->session;
    struct bench_result *r = lane->result;
    struct trial_result judged;
    const char *call = "";
    cl_int code = CL_SUCCESS;
    memset(&judged, 0, sizeof judged);
    trial_poison(&w->data);
    if (!trial_device_write_outputs(&w->device, session->queue, &w->data, &call, &code))
        return cli_fail_cl(session->command, call, code);
    const double start = clock_seconds();
    const int failed = bench_run_once(w->bench, lane);
    if (failed != CLI_OK)
        return failed;
    r->build += clock_seconds() - start;
    r->builds = clattn_context_build_count(lane->context);
    if (!trial_device_read(&w->device, session->queue, &w->data, &call, &code))
        return cli_fail_cl(session->command, call, code);
    trial_judge_engine(&w->out->trial, r->engine, &w->data, &judged);
    r->right = judged.ok;
    r->max_error = judged.max_error;
    r->bound = judged.bound;
    snprintf(r->why, sizeof r->why, "%.500s", judged.message);
    return CLI_OK;
}

static int open_lane(struct work *w, const char *engine)
{
    struct bench_case *out = w->out;
    struct lane *lane = &w->lanes[out->count];
    lane->result = &out->results[out->count];
    memset(lane->result, 0, sizeof *lane->result);
    snprintf(lane->result->engine, sizeof lane->result->engine, "%s", engine ? engine : "(any)");
    tell(w, lane, "building");
    const bool planned = make_plan(w, engine, lane);
    if (bench_result_of(out, lane->result->engine) != NULL) { /* the library chose an engine that was also named */
        bench_lane_free(lane);
        return CLI_OK;
    }
    out->count++;
    if (!planned)
        return CLI_OK;
    trial_device_call(&w->device, lane->plan, &out->trial, &w->data, &lane->call);
    if (!make_workspace(w, lane))
        return CLI_OK;
    lane->result->measured = true;
    const int code = first_launch(w, lane);
    if (code != CLI_OK)
        return code;
    tell(w, lane, "warming up");
    return bench_warm_up(w->bench, lane);
}

/* --------------------------------------------------------------------------------------------------------------- a shape */

static bool wants_more(const struct work *w, const struct lane *lane)
{
    const double minimum = w->bench->settings.minimum;
    if (!lane->result->measured)
        return false;
    return lane->device.sum < minimum || (lane->device.count < FEWEST_SAMPLES && lane->device.sum < PATIENCE * minimum);
}

/* The device's multiply-adds are measured in turn with the engines. */
static int sample_fma(struct work *w)
{
    const struct peak *const peak = w->bench->peak;
    double rate = 0;
    if (peak == NULL || peak->again.kernel == NULL)
        return CLI_OK;
    const int code = peak_fma_now(w->bench->session, peak, &rate);
    if (code == CLI_OK && rate > 0)
        (void)samples_add(&w->fma, peak->again.operations / rate);
    return code;
}

/* Engines are measured in turn, so that a change in the machine's speed affects all of them. */
static int take_turns(struct work *w)
{
    int code = CLI_OK;
    for (bool more = true; more && code == CLI_OK;) {
        more = false;
        for (size_t i = 0; i < w->out->count && code == CLI_OK; i++) {
            if (!wants_more(w, &w->lanes[i]))
                continue;
            if (interrupt_is_pending())
                return CLI_INTERRUPTED;
            tell(w, &w->lanes[i], "measuring");
            code = bench_sample(w->bench, &w->lanes[i], w->bench->settings.minimum / TURNS);
            code = code != CLI_OK ? code : sample_fma(w);
            more = true;
        }
    }
    return code;
}

static int measure(struct work *w, const char *const *engines, size_t engine_count)
{
    const char *call = "";
    cl_int cl_code = CL_SUCCESS;
    int code = CLI_OK;
    const char *const command = w->bench->session->command;
    if (!trial_data_create(&w->data, &w->out->trial))
        return cli_fail(command, CLI_FAILED, "--shape", "the host has no memory for this shape");
    if (!trial_device_create(&w->device, w->bench->session->context, &w->data, &call, &cl_code))
        return cli_fail_cl(command, call, cl_code);
    for (size_t i = 0; i < engine_count && w->out->count < BENCH_MAX_ENGINES && code == CLI_OK && !interrupt_is_pending(); i++)
        code = open_lane(w, engines[i]);
    if (code == CLI_OK && interrupt_is_pending()) /* Ctrl-C also ends compilers that a driver started: that is no failure */
        code = CLI_INTERRUPTED;
    return code != CLI_OK ? code : take_turns(w);
}

int bench_measure(struct bench *bench, const struct trial *trial, const char *const *engines, size_t engine_count,
                  struct bench_case *out)
{
    struct work *w = calloc(1, sizeof *w);
    memset(out, 0, sizeof *out);
    out->trial = *trial;
    if (w == NULL)
        return cli_fail(bench->session->command, CLI_FAILED, NULL, "out of memory");
    w->bench = bench;
    w->out = out;
    const int code = measure(w, engines, engine_count);
    for (size_t i = 0; i < out->count; i++) {
        bench_conclude(&w->lanes[i]);
        bench_lane_free(&w->lanes[i]);
    }
    if (w->fma.count > 0)
        out->fma = bench->peak->again.operations / samples_median(&w->fma);
    free(w->fma.seconds);
    trial_device_destroy(&w->device);
    trial_data_destroy(&w->data);
    free(w);
    return code;
}

const struct bench_result *bench_result_of(const struct bench_case *c, const char *engine)
{
    for (size_t i = 0; i < c->count; i++)
        if (strcmp(c->results[i].engine, engine) == 0)
            return &c->results[i];
    return NULL;
}
