/* SPDX-License-Identifier: Apache-2.0
 * A trial on the device: upload, plan, enqueue, read back. */
#define CLATTN_EXPERIMENTAL
#include "trial.h"

#include "half.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct run {
    clattn_context *context;
    cl_command_queue queue;
    clattn_plan *plan;
    const struct trial *trial;
    struct trial_data *data;
    struct trial_result *result;
    struct trial_device device;
};

static size_t bytes_of(const struct trial_tensor *t) { return (size_t)t->count * trial_item_size(t); }

static bool is_output(int i) { return i >= TRIAL_FIRST_OUTPUT && i <= TRIAL_LAST_OUTPUT; }

static bool fail_cl(struct run *s, const char *call, cl_int code)
{
    s->result->status = CLATTN_OPENCL;
    snprintf(s->result->message, sizeof s->result->message, "%s gave %d", call, (int)code);
    return false;
}

static bool fail_library(struct trial_result *result, const clattn_error *error)
{
    result->ok = false;
    result->status = error->status;
    snprintf(result->message, sizeof result->message, "%s: %.400s", clattn_status_name(error->status), error->message);
    return false;
}

static bool enqueue(struct run *s)
{
    clattn_error error;
    clattn_call call;
    clattn_error_init(&error);
    trial_device_call(&s->device, s->plan, s->trial, s->data, &call);
    if (clattn_enqueue(s->plan, s->queue, &call, 0, NULL, NULL, &error) != CLATTN_SUCCESS)
        return fail_library(s->result, &error);
    const cl_int code = clFinish(s->queue);
    return code == CL_SUCCESS || fail_cl(s, "clFinish", code);
}

/* Reads buffer i into host memory of its size. */
static bool download(struct run *s, int i, void *into)
{
    const cl_int code = clEnqueueReadBuffer(s->queue, s->device.mems[i], CL_TRUE, 0, bytes_of(trial_tensor_at(s->data, i)),
                                            into, 0, NULL, NULL);
    return code == CL_SUCCESS || fail_cl(s, "clEnqueueReadBuffer", code);
}

/* Buffer i as it is now must equal what the host holds. */
static bool unchanged(struct run *s, int i, const char *complaint)
{
    const struct trial_tensor *t = trial_tensor_at(s->data, i);
    const size_t bytes = bytes_of(t);
    void *now = malloc(bytes);
    bool same = now && download(s, i, now);
    if (same && memcmp(now, t->data, bytes) != 0) {
        snprintf(s->result->message, sizeof s->result->message, "%s %s", trial_buffer_name(i), complaint);
        same = false;
    }
    free(now);
    return same;
}

/* Outputs are poisoned again before each further run, so that one that does nothing shows. */
static bool run_again(struct run *s)
{
    for (int i = TRIAL_FIRST_OUTPUT; i <= TRIAL_LAST_OUTPUT; i++) {
        const struct trial_tensor *t = trial_tensor_at(s->data, i);
        if (!s->device.mems[i])
            continue;
        void *poison = malloc(bytes_of(t));
        if (!poison)
            return false;
        storage_fill_poison(t->type, poison, t->count);
        const cl_int code = clEnqueueWriteBuffer(s->queue, s->device.mems[i], CL_TRUE, 0, bytes_of(t), poison, 0, NULL, NULL);
        free(poison);
        if (code != CL_SUCCESS)
            return fail_cl(s, "clEnqueueWriteBuffer", code);
    }
    if (!enqueue(s))
        return false;
    for (int i = TRIAL_FIRST_OUTPUT; i <= TRIAL_LAST_OUTPUT; i++)
        if (s->device.mems[i] && !unchanged(s, i, "has other bits in a second run of the same call"))
            return false;
    return true;
}

static bool launch(struct run *s)
{
    const char *call;
    cl_int code;
    if (!trial_device_create(&s->device, s->context, s->data, &call, &code))
        return fail_cl(s, call, code);
    if (!enqueue(s))
        return false;
    if (!trial_device_read(&s->device, s->queue, s->data, &call, &code))
        return fail_cl(s, call, code);
    for (int run = 1; run < s->trial->repeats; run++)
        if (!run_again(s))
            return false;
    for (int i = 0; i < TRIAL_BUFFERS; i++)
        if (s->device.mems[i] && !is_output(i) && !unchanged(s, i, "is an input and was changed"))
            return false;
    return true;
}

bool trial_launch(clattn_context *context, cl_command_queue queue, clattn_plan *plan, const struct trial *trial,
                  struct trial_data *data, struct trial_result *result)
{
    struct run s = {context, queue, plan, trial, data, result, {{0}}};
    memset(result, 0, sizeof *result);
    snprintf(result->engine, sizeof result->engine, "%s", clattn_plan_engine(plan));
    const bool launched = launch(&s);
    trial_device_destroy(&s.device);
    if (!launched && result->message[0] == '\0')
        snprintf(result->message, sizeof result->message, "the host is out of memory");
    return launched;
}

static void out_of_memory(struct trial_result *result)
{
    memset(result, 0, sizeof *result);
    result->status = CLATTN_OUT_OF_HOST_MEMORY;
    snprintf(result->message, sizeof result->message, "the host is out of memory");
}

void trial_plan_options(const struct trial *trial, const char *engine, clattn_plan_options *options)
{
    clattn_plan_options_init(options);
    options->at_bounds = true; /* a trial is one call */
    options->engine = engine;
    options->chunk = trial->chunk;
    options->max_launch_ms = trial->slice;
}

/* A second run in single launches, into data that holds the outputs of the first. */
static bool launch_whole(clattn_context *context, cl_command_queue queue, const char *engine, const struct trial *trial,
                         struct trial_data *data, struct trial_result *result)
{
    clattn_plan_options options;
    clattn_error error;
    clattn_plan *plan = NULL;
    clattn_error_init(&error);
    trial_plan_options(trial, engine, &options);
    options.max_launch_ms = -1.0;
    if (clattn_plan_create(context, &trial->problem, &options, &plan, &error) != CLATTN_SUCCESS)
        return fail_library(result, &error);
    const bool launched = trial_launch(context, queue, plan, trial, data, result);
    clattn_plan_destroy(plan);
    return launched;
}

/* What slices gave must be what single launches give, bit for bit. */
static void compare_slices(clattn_context *context, cl_command_queue queue, const char *engine, const struct trial *trial,
                           const struct trial_data *sliced, struct trial_result *result)
{
    struct trial_data data;
    struct trial_result whole;
    if (!trial_data_create(&data, trial)) {
        out_of_memory(result);
        return;
    }
    if (launch_whole(context, queue, engine, trial, &data, &whole)) {
        for (int i = TRIAL_FIRST_OUTPUT; i <= TRIAL_LAST_OUTPUT && result->ok; i++) {
            const struct trial_tensor *t = trial_tensor_at(sliced, i), *other = trial_tensor_at(&data, i);
            result->ok = t->count == 0 || memcmp(t->data, other->data, bytes_of(t)) == 0;
            if (!result->ok)
                snprintf(result->message, sizeof result->message, "%s has other bits in slices than from a single launch",
                         trial_buffer_name(i));
        }
    } else {
        *result = whole;
    }
    trial_data_destroy(&data);
}

void trial_judge_engine(const struct trial *trial, const char *engine, const struct trial_data *data,
                        struct trial_result *result)
{
    struct trial as_engine = *trial;
    as_engine.round_weights = clattn_engine_rounds_weights(engine) != 0;
    trial_judge(&as_engine, data, result);
}

void trial_run(clattn_context *context, cl_command_queue queue, clattn_plan *plan, const struct trial *trial,
               struct trial_result *result)
{
    struct trial_data data;
    if (!trial_data_create(&data, trial)) {
        out_of_memory(result);
        return;
    }
    if (trial_launch(context, queue, plan, trial, &data, result)) {
        trial_judge_engine(trial, clattn_plan_engine(plan), &data, result);
        if (result->ok && trial->slice > 0.0)
            compare_slices(context, queue, clattn_plan_engine(plan), trial, &data, result);
    }
    trial_data_destroy(&data);
}

void trial_run_engine(clattn_context *context, cl_command_queue queue, const char *engine, const struct trial *trial,
                      struct trial_result *result)
{
    clattn_plan_options options;
    clattn_error error;
    clattn_plan *plan = NULL;
    clattn_error_init(&error);
    trial_plan_options(trial, engine, &options);
    memset(result, 0, sizeof *result);
    if (clattn_plan_create(context, &trial->problem, &options, &plan, &error) != CLATTN_SUCCESS) {
        fail_library(result, &error);
        return;
    }
    trial_run(context, queue, plan, trial, result);
    clattn_plan_destroy(plan);
}
