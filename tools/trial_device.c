/* SPDX-License-Identifier: Apache-2.0
 * The buffers of a trial on the device. */
#include "half.h"
#include "trial.h"

#include <math.h>
#include <string.h>

enum { INPUTS = 3 }; /* of the buffers */

static void tensors_of(const struct trial_data *data, const struct trial_tensor *tensors[TRIAL_BUFFERS])
{
    const struct trial_tensor *const all[TRIAL_BUFFERS] = {&data->q, &data->k, &data->v, &data->o, &data->lse, &data->scores};
    memcpy(tensors, all, sizeof all);
}

static size_t bytes_of(const struct trial_tensor *t) { return (size_t)t->count * storage_size(t->type); }

bool trial_device_create(struct trial_device *device, clattn_context *context, const struct trial_data *data, const char **call,
                         cl_int *code)
{
    const struct trial_tensor *tensors[TRIAL_BUFFERS];
    tensors_of(data, tensors);
    memset(device, 0, sizeof *device);
    for (int i = 0; i < TRIAL_BUFFERS; i++) {
        if (tensors[i]->count == 0)
            continue;
        const cl_mem_flags access = i < INPUTS ? CL_MEM_READ_ONLY : CL_MEM_READ_WRITE;
        device->mems[i] = clCreateBuffer(clattn_context_cl(context), access | CL_MEM_COPY_HOST_PTR, bytes_of(tensors[i]),
                                         tensors[i]->data, code);
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

static clattn_buffer buffer_of(cl_mem mem, const struct trial_tensor *t)
{
    if (!mem)
        return (clattn_buffer){CLATTN_BUFFER_NONE, NULL, 0};
    return clattn_mem(mem, (size_t)t->origin * storage_size(t->type));
}

void trial_device_call(const struct trial_device *device, const clattn_plan *plan, const struct trial *trial,
                       const struct trial_data *data, clattn_call *call)
{
    clattn_call_init(call, plan);
    call->q = buffer_of(device->mems[0], &data->q);
    call->k = buffer_of(device->mems[1], &data->k);
    call->v = buffer_of(device->mems[2], &data->v);
    call->o = buffer_of(device->mems[3], &data->o);
    call->lse = buffer_of(device->mems[4], &data->lse);
    call->scores = buffer_of(device->mems[5], &data->scores);
    call->batch = trial->batch;
    call->seq_q = trial->seq_q;
    call->seq_kv = trial->seq_kv;
    call->offset = trial->offset;
    if (!isnan(trial->scale)) /* otherwise the default that the plan has put there */
        call->scale = trial->scale;
}

bool trial_device_write_outputs(const struct trial_device *device, cl_command_queue queue, const struct trial_data *data,
                                const char **call, cl_int *code)
{
    const struct trial_tensor *tensors[TRIAL_BUFFERS];
    tensors_of(data, tensors);
    for (int i = INPUTS; i < TRIAL_BUFFERS; i++) {
        if (!device->mems[i])
            continue;
        *call = "clEnqueueWriteBuffer";
        *code = clEnqueueWriteBuffer(queue, device->mems[i], CL_TRUE, 0, bytes_of(tensors[i]), tensors[i]->data, 0, NULL, NULL);
        if (*code != CL_SUCCESS)
            return false;
    }
    return true;
}

bool trial_device_read(const struct trial_device *device, cl_command_queue queue, struct trial_data *data, const char **call,
                       cl_int *code)
{
    const struct trial_tensor *tensors[TRIAL_BUFFERS];
    tensors_of(data, tensors);
    for (int i = INPUTS; i < TRIAL_BUFFERS; i++) {
        if (!device->mems[i])
            continue;
        *call = "clEnqueueReadBuffer";
        *code = clEnqueueReadBuffer(queue, device->mems[i], CL_TRUE, 0, bytes_of(tensors[i]), tensors[i]->data, 0, NULL, NULL);
        if (*code != CL_SUCCESS)
            return false;
    }
    return true;
}
