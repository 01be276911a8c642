/* SPDX-License-Identifier: Apache-2.0
 * The buffers of a trial on the device. */
#include "trial.h"

#include <math.h>
#include <string.h>

static size_t bytes_of(const struct trial_tensor *t) { return (size_t)t->count * trial_item_size(t); }

static bool is_output(int i) { return i >= TRIAL_FIRST_OUTPUT && i <= TRIAL_LAST_OUTPUT; }

bool trial_device_create(struct trial_device *device, clattn_context *context, const struct trial_data *data, const char **call,
                         cl_int *code)
{
    memset(device, 0, sizeof *device);
    for (int i = 0; i < TRIAL_BUFFERS; i++) {
        const struct trial_tensor *t = trial_tensor_at(data, i);
        const cl_mem_flags access = is_output(i) ? CL_MEM_READ_WRITE : CL_MEM_READ_ONLY;
        if (t->count == 0)
            continue;
        device->mems[i] = clCreateBuffer(clattn_context_cl(context), access | CL_MEM_COPY_HOST_PTR, bytes_of(t), t->data, code);
        if (device->mems[i] == NULL) {
            trial_device_destroy(device);
            *call = "clCreateBuffer";
            return false;
        }
    }
    return true;
}

void trial_device_destroy(struct trial_device *device)
{
    for (int i = 0; i < TRIAL_BUFFERS; i++)
        if (device->mems[i])
            clReleaseMemObject(device->mems[i]);
    memset(device, 0, sizeof *device);
}

void trial_device_call(const struct trial_device *device, const clattn_plan *plan, const struct trial *trial,
                       const struct trial_data *data, clattn_call *call)
{
    clattn_call_init(call, plan);
    clattn_buffer *const buffers[TRIAL_BUFFERS] = {&call->q,          &call->k,       &call->v,
                                                   &call->o,          &call->lse,     &call->scores,
                                                   &call->mask,       &call->bias,    &call->bias_factors,
                                                   &call->alibi,      &call->sinks,   &call->q_lengths,
                                                   &call->kv_lengths, &call->offsets, &call->q_starts,
                                                   &call->kv_starts};
    for (int i = 0; i < TRIAL_BUFFERS; i++) {
        const struct trial_tensor *t = trial_tensor_at(data, i);
        if (device->mems[i])
            *buffers[i] = clattn_mem(device->mems[i], (size_t)t->origin * trial_item_size(t));
    }
    call->batch = trial->batch;
    call->seq_q = trial->seq_q;
    call->seq_kv = trial->seq_kv;
    call->offset = trial->offset;
    call->window_left = trial->window_left;
    call->window_right = trial->window_right;
    call->mask_columns = trial->mask_columns;
    call->bias_columns = trial->bias_columns;
    if (!isnan(trial->scale)) /* otherwise the default that the plan has put there */
        call->scale = trial->scale;
}

bool trial_device_write_outputs(const struct trial_device *device, cl_command_queue queue, const struct trial_data *data,
                                const char **call, cl_int *code)
{
    for (int i = TRIAL_FIRST_OUTPUT; i <= TRIAL_LAST_OUTPUT; i++) {
        const struct trial_tensor *t = trial_tensor_at(data, i);
        if (!device->mems[i])
            continue;
        *call = "clEnqueueWriteBuffer";
        *code = clEnqueueWriteBuffer(queue, device->mems[i], CL_TRUE, 0, bytes_of(t), t->data, 0, NULL, NULL);
        if (*code != CL_SUCCESS)
            return false;
    }
    return true;
}

bool trial_device_read(const struct trial_device *device, cl_command_queue queue, struct trial_data *data, const char **call,
                       cl_int *code)
{
    for (int i = TRIAL_FIRST_OUTPUT; i <= TRIAL_LAST_OUTPUT; i++) {
        const struct trial_tensor *t = trial_tensor_at(data, i);
        if (!device->mems[i])
            continue;
        *call = "clEnqueueReadBuffer";
        *code = clEnqueueReadBuffer(queue, device->mems[i], CL_TRUE, 0, bytes_of(t), t->data, 0, NULL, NULL);
        if (*code != CL_SUCCESS)
            return false;
    }
    return true;
}
