/* SPDX-License-Identifier: Apache-2.0
 * A trial on the device: upload, plan, enqueue, read back. */
#include "trial.h"

#include "half.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INPUT_BUFFERS = 3 };

struct run {
    clattn_context *context;
    cl_command_queue queue;
    clattn_plan *plan;
    const struct trial *trial;
    struct trial_data *data;
    struct trial_result *result;
    struct trial_tensor *tensors[TRIAL_BUFFERS]; /* q, k, v, o, lse, scores */
    struct trial_device device;
};

static const char *const tensor_names[TRIAL_BUFFERS] = {"q", "k", "v", "o", "lse", "weights"};

static size_t bytes_of(const struct trial_tensor *t) { return (size_t)t->count * storage_size(t->type); }

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
    const cl_int code =
        clEnqueueReadBuffer(s->queue, s->device.mems[i], CL_TRUE, 0, bytes_of(s->tensors[i]), into, 0, NULL, NULL);
    return code == CL_SUCCESS || fail_cl(s, "clEnqueueReadBuffer", code);
}

/* Buffer i as it is now must equal what the host holds. */
static bool unchanged(struct run *s, int i, const char *complaint)
{
    const size_t bytes = bytes_of(s->tensors[i]);
    void *now = malloc(bytes);
    bool same = now && download(s, i, now);
    if (same && memcmp(now, s->tensors[i]->data, bytes) != 0) {
        snprintf(s->result->message, sizeof s->result->message, "%s %s", tensor_names[i], complaint);
        same = false;
    }
    free(now);
    return same;
}

/* Outputs are poisoned again before each further run, so that one that does nothing shows. */
static bool run_again(struct run *s)
{
    for (int i = INPUT_BUFFERS; i < TRIAL_BUFFERS; i++) {
        if (!s->device.mems[i])
            continue;
        const clattn_type type = s->tensors[i]->type;
        void *poison = malloc(bytes_of(s->tensors[i]));
        if (!poison)
            return false;
        storage_fill_poison(type, poison, s->tensors[i]->count);
        const cl_int code =
            clEnqueueWriteBuffer(s->queue, s->device.mems[i], CL_TRUE, 0, bytes_of(s->tensors[i]), poison, 0, NULL, NULL);
        free(poison);
        if (code != CL_SUCCESS)
            return fail_cl(s, "clEnqueueWriteBuffer", code);
    }
    if (!enqueue(s))
        return false;
    for (int i = INPUT_BUFFERS; i < TRIAL_BUFFERS; i++)
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
    for (int i = 0; i < INPUT_BUFFERS; i++)
        if (s->device.mems[i] && !unchanged(s, i, "is an input and was changed"))
            return false;
    return true;
}

bool trial_launch(clattn_context *context, cl_command_queue queue, clattn_plan *plan, const struct trial *trial,
                  struct trial_data *data, struct trial_result *result)
{
    struct run s = {
        context, queue, plan, trial, data, result, {&data->q, &data->k, &data->v, &data->o, &data->lse, &data->scores}, {{0}}};
    memset(result, 0, sizeof *result);
    snprintf(result->engine, sizeof result->engine, "%s", clattn_plan_engine(plan));
    const bool launched = launch(&s);
    trial_device_destroy(&s.device);
    if (!launched && result->message[0] == '\0')
        snprintf(result->message, sizeof result->message, "the host is out of memory");
    return launched;
}

void trial_run(clattn_context *context, cl_command_queue queue, clattn_plan *plan, const struct trial *trial,
               struct trial_result *result)
{
    struct trial_data data;
    if (!trial_data_create(&data, trial)) {
        memset(result, 0, sizeof *result);
        result->status = CLATTN_OUT_OF_HOST_MEMORY;
        snprintf(result->message, sizeof result->message, "the host is out of memory");
        return;
    }
    if (trial_launch(context, queue, plan, trial, &data, result))
        trial_judge(trial, &data, result);
    trial_data_destroy(&data);
}

void trial_run_engine(clattn_context *context, cl_command_queue queue, const char *engine, const struct trial *trial,
                      struct trial_result *result)
{
    clattn_plan_options options;
    clattn_error error;
    clattn_plan *plan = NULL;
    clattn_error_init(&error);
    clattn_plan_options_init(&options);
    options.engine = engine;
    memset(result, 0, sizeof *result);
    if (clattn_plan_create(context, &trial->problem, &options, &plan, &error) != CLATTN_SUCCESS) {
        fail_library(result, &error);
        return;
    }
    trial_run(context, queue, plan, trial, result);
    clattn_plan_destroy(plan);
}
