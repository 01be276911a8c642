/* SPDX-License-Identifier: Apache-2.0 */
#include "selfcheck_data.h"

#include "problem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { QUERIES = 150, KEYS = 291, FEW_QUERIES = 37, FEW_KEYS = 200, HIDDEN = 59, OPEN_KEYS = 128 };

void cla_check_problem(const clattn_problem *like, const struct config *config, int number, clattn_problem *p)
{
    clattn_problem_init(p);
    p->batch = 2;
    p->heads_q = CLA_CHECK_HEADS;
    p->heads_kv = 2;
    p->seq_q = number == 0 ? QUERIES : FEW_QUERIES;
    p->seq_kv = (number == 0 ? KEYS : FEW_KEYS) + config->chunk; /* split keys: more than one chunk */
    p->head_dim_qk = like->head_dim_qk;
    p->head_dim_v = like->head_dim_v;
    p->q.type = like->q.type;
    p->k.type = like->k.type;
    p->v.type = like->v.type;
    p->o.type = like->o.type;
    /* Scores of a few units, so that weights differ much and the maximum rises. */
    p->scale = 8.0f / sqrtf((float)like->head_dim_qk);
    p->causal = number == 0;
    p->corner = CLATTN_BOTTOM_RIGHT;
    p->lse.present = true;
    p->kv_lengths = number == 0 ? CLATTN_NO_INTEGERS : CLATTN_INT32;
    /* If the kernel source has only the options of its plan, it would ignore other options. */
    const bool all = cla_problem_alters_scores(like) && !config->engine->options_apart;
    p->mask.present = all || like->mask.present;
    p->mask.strides.row = p->bias.strides.row = p->seq_kv;
    p->mask.strides.column = p->bias.strides.column = 1;
    p->bias.present = like->bias.present;
    p->bias.type = like->bias.type;
    p->alibi.present = all || like->alibi.present;
    p->alibi.strides.head = 1;
    p->softcap = number != 0 && (all || like->softcap != 0.0f) ? 6.0f : 0.0f;
    clattn_problem_set_layout(p, CLATTN_BHSD);
}

double cla_check_tolerance(const clattn_problem *p)
{
    /* |V| is at most 1. */
    const bool coarse = p->o.type == CLATTN_BF16 || p->v.type == CLATTN_BF16 || p->k.type == CLATTN_BF16;
    const bool fine = p->o.type == CLATTN_FP32 && p->v.type == CLATTN_FP32 && p->k.type == CLATTN_FP32;
    return coarse ? 1.6e-2 : fine ? 1e-4 : 2e-3;
}

static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 16;
}

/* A number that all types hold exactly: a multiple of 1/16, or a multiple of 1/4 up to 1024, NaN or infinity. */
static void store(void *data, clattn_type type, size_t at, float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    const uint16_t sign = (uint16_t)(bits >> 16 & 0x8000u), exponent = (uint16_t)(bits >> 23 & 0xffu);
    const uint16_t half = (uint16_t)(isnan(x)    ? 0x7e00u
                                     : isinf(x)  ? sign | 0x7c00
                                     : x == 0.0f ? 0
                                                 : sign | (exponent - 112) << 10 | (bits >> 13 & 0x3ffu));
    if (type == CLATTN_FP32)
        ((float *)data)[at] = x;
    else
        ((uint16_t *)data)[at] = type == CLATTN_FP16 ? half : (uint16_t)(bits >> 16);
}

static float load(const void *data, clattn_type type, size_t at)
{
    if (type == CLATTN_FP32)
        return ((const float *)data)[at];
    const uint16_t bits = ((const uint16_t *)data)[at];
    if (type == CLATTN_BF16) {
        const uint32_t wide = (uint32_t)bits << 16;
        float x;
        memcpy(&x, &wide, sizeof x);
        return x;
    }
    const int exponent = bits >> 10 & 0x1f, mantissa = bits & 0x3ff;
    const float x = exponent == 31  ? (mantissa ? NAN : INFINITY)
                    : exponent == 0 ? ldexpf((float)mantissa, -24)
                                    : ldexpf((float)(mantissa | 0x400), exponent - 25);
    return bits & 0x8000 ? -x : x;
}

static cl_mem make_buffer(cl_context cl, const void *data, size_t size)
{
    cl_int code = CL_SUCCESS;
    return clCreateBuffer(cl, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, size, (void *)data, &code);
}

int64_t cla_check_keys(const clattn_problem *p, int64_t batch)
{
    return p->kv_lengths && batch == 1 ? p->seq_kv - HIDDEN : p->seq_kv;
}

/* Keys and values past the end of the second sequence are NaN, which must not reach the results. */
static float *make_values(const clattn_problem *p, int64_t heads, int64_t rows, int64_t dim, bool is_key, uint32_t seed)
{
    const size_t count = (size_t)(p->batch * heads * rows * dim);
    float *values = malloc(count * sizeof *values);
    if (!values)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        const int64_t row = (int64_t)(i / (size_t)dim) % rows, batch = (int64_t)(i / (size_t)(dim * rows * heads));
        const float x = (float)((int)(next_random(&seed) % 33u) - 16) / 16.0f;
        values[i] = is_key && row >= cla_check_keys(p, batch) ? NAN : x;
    }
    return values;
}

static cl_mem make_tensor(cl_context cl, clattn_type type, const float *values, size_t count)
{
    void *data = values ? calloc(count, cla_type_size(type)) : NULL;
    if (!data)
        return NULL;
    for (size_t i = 0; i < count; i++)
        store(data, type, i, values[i]);
    cl_mem buffer = make_buffer(cl, data, count * cla_type_size(type));
    free(data);
    return buffer;
}

/* One key in four is masked. The first blocks are fully visible, since engines may process those in another way. */
static unsigned char *make_mask(const clattn_problem *p)
{
    const size_t count = (size_t)(p->seq_q * p->seq_kv);
    uint32_t seed = 5;
    unsigned char *mask = malloc(count);
    if (!mask)
        return NULL;
    for (size_t i = 0; i < count; i++)
        mask[i] = next_random(&seed) % 4u != 0 || i % (size_t)p->seq_kv < OPEN_KEYS;
    return mask;
}

/* From -1 to 1, and one key in eight is masked. */
static float *make_bias(const clattn_problem *p)
{
    const size_t count = (size_t)(p->seq_q * p->seq_kv);
    uint32_t seed = 6;
    float *bias = malloc(count * sizeof *bias);
    if (!bias)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        const int x = (int)(next_random(&seed) % 9u) - 4;
        bias[i] = next_random(&seed) % 8u ? (float)x / 4.0f : -INFINITY;
    }
    return bias;
}

static cl_mem make_output(cl_context cl, size_t size)
{
    cl_int code = CL_SUCCESS;
    return clCreateBuffer(cl, CL_MEM_READ_WRITE, size, NULL, &code);
}

bool cla_check_data_make(cl_context cl, const clattn_problem *p, struct check_data *data)
{
    const int32_t lengths[] = {(int32_t)cla_check_keys(p, 0), (int32_t)cla_check_keys(p, 1)};
    const size_t keys = (size_t)(p->batch * p->heads_kv * p->seq_kv);
    memset(data, 0, sizeof *data);
    data->problem = p;
    data->lse_count = (size_t)(p->batch * p->heads_q * p->seq_q);
    data->o_count = data->lse_count * (size_t)p->head_dim_v;
    data->q = make_values(p, p->heads_q, p->seq_q, p->head_dim_qk, false, 1);
    data->k = make_values(p, p->heads_kv, p->seq_kv, p->head_dim_qk, true, 2);
    data->v = make_values(p, p->heads_kv, p->seq_kv, p->head_dim_v, true, 3);
    data->mask = p->mask.present ? make_mask(p) : NULL;
    data->bias = p->bias.present ? make_bias(p) : NULL;
    data->buffers[0] = make_tensor(cl, p->q.type, data->q, data->lse_count * (size_t)p->head_dim_qk);
    data->buffers[1] = make_tensor(cl, p->k.type, data->k, keys * (size_t)p->head_dim_qk);
    data->buffers[2] = make_tensor(cl, p->v.type, data->v, keys * (size_t)p->head_dim_v);
    data->buffers[3] = make_output(cl, data->o_count * cla_type_size(p->o.type));
    data->buffers[4] = make_output(cl, data->lse_count * sizeof(float));
    data->buffers[5] = data->mask ? make_buffer(cl, data->mask, (size_t)(p->seq_q * p->seq_kv)) : NULL;
    data->buffers[6] = p->kv_lengths ? make_buffer(cl, lengths, sizeof lengths) : NULL;
    data->buffers[7] = data->bias ? make_tensor(cl, p->bias.type, data->bias, (size_t)(p->seq_q * p->seq_kv)) : NULL;
    if (p->alibi.present)
        clattn_alibi_slopes(p->heads_q, data->slopes);
    data->buffers[8] = p->alibi.present ? make_buffer(cl, data->slopes, sizeof data->slopes) : NULL;
    return data->buffers[0] && data->buffers[1] && data->buffers[2] && data->buffers[3] && data->buffers[4] &&
           (data->buffers[5] || !p->mask.present) && (data->buffers[6] || !p->kv_lengths) &&
           (data->buffers[7] || !p->bias.present) && (data->buffers[8] || !p->alibi.present);
}

void cla_check_data_free(struct check_data *data)
{
    for (int i = 0; i < CLA_CHECK_BUFFERS; i++)
        if (data->buffers[i])
            clReleaseMemObject(data->buffers[i]);
    free(data->q);
    free(data->k);
    free(data->v);
    free(data->mask);
    free(data->bias);
}

static bool poison(cl_command_queue queue, cl_mem buffer, size_t size)
{
    void *bytes = malloc(size);
    if (!bytes)
        return false;
    memset(bytes, 0xff, size); /* a NaN in every type */
    const bool ok = clEnqueueWriteBuffer(queue, buffer, CL_TRUE, 0, size, bytes, 0, NULL, NULL) == CL_SUCCESS;
    free(bytes);
    return ok;
}

bool cla_check_data_bind(struct check_data *data, cl_command_queue queue, clattn_call *call)
{
    clattn_buffer *const places[CLA_CHECK_BUFFERS] = {&call->q,    &call->k,          &call->v,    &call->o,    &call->lse,
                                                      &call->mask, &call->kv_lengths, &call->bias, &call->alibi};
    for (int i = 0; i < CLA_CHECK_BUFFERS; i++)
        if (data->buffers[i])
            *places[i] = clattn_mem(data->buffers[i], 0);
    return poison(queue, data->buffers[3], data->o_count * cla_type_size(data->problem->o.type)) &&
           poison(queue, data->buffers[4], data->lse_count * sizeof(float));
}

bool cla_check_data_read(const struct check_data *data, cl_command_queue queue, float *o, float *lse)
{
    const clattn_type type = data->problem->o.type;
    const size_t size = data->o_count * cla_type_size(type);
    void *bytes = malloc(size);
    const bool ok =
        bytes && clEnqueueReadBuffer(queue, data->buffers[3], CL_TRUE, 0, size, bytes, 0, NULL, NULL) == CL_SUCCESS &&
        clEnqueueReadBuffer(queue, data->buffers[4], CL_TRUE, 0, data->lse_count * sizeof(float), lse, 0, NULL, NULL) ==
            CL_SUCCESS;
    for (size_t i = 0; ok && i < data->o_count; i++)
        o[i] = load(bytes, type, i);
    free(bytes);
    return ok;
}
