/* SPDX-License-Identifier: Apache-2.0
 * The buffers of a trial: where elements lie between their guards. */
#include "half.h"
#include "random.h"
#include "trial.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD = 256, BORDER_BYTES = 64 };

static const struct {
    const char *name;
    size_t place;
} buffers[TRIAL_BUFFERS] = {
#define BUFFER(member)                                                                                                         \
    {                                                                                                                          \
#member, offsetof(struct trial_data, member)                                                                           \
    }
    BUFFER(q),          BUFFER(k),       BUFFER(v),
    BUFFER(o),          BUFFER(lse),     BUFFER(scores),
    BUFFER(mask),       BUFFER(bias),    BUFFER(bias_factors),
    BUFFER(alibi),      BUFFER(sinks),   BUFFER(q_lengths),
    BUFFER(kv_lengths), BUFFER(offsets), BUFFER(q_starts),
    BUFFER(kv_starts)};

static struct trial_tensor *tensor_at(struct trial_data *data, int index)
{
    return (struct trial_tensor *)((char *)data + buffers[index].place);
}

const struct trial_tensor *trial_tensor_at(const struct trial_data *data, int index)
{
    return (const struct trial_tensor *)((const char *)data + buffers[index].place);
}

const char *trial_buffer_name(int index) { return buffers[index].name; }

/* More elements than any memory holds, and so few that a few times as many bytes still fit a size_t. */
#define MAX_REACH ((int64_t)1 << 55)

static bool is_empty(const struct trial_tensor *t)
{
    return t->size[0] == 0 || t->size[1] == 0 || t->size[2] == 0 || t->size[3] == 0;
}

/* Elements below and above (0, 0, 0, 0) of a tensor that has one. False: no memory holds them. */
static bool reach(const struct trial_tensor *t, int64_t *below, int64_t *above)
{
    *below = *above = 0;
    for (int i = 0; i < 4; i++) {
        if (fabs((double)(t->size[i] - 1) * (double)t->stride[i]) > (double)MAX_REACH)
            return false;
        const int64_t far = (t->size[i] - 1) * t->stride[i];
        *(far < 0 ? below : above) += far < 0 ? -far : far;
    }
    return true;
}

/* Half of the seeds start tensors at a border, the others anywhere. */
static int64_t shift_of(const struct trial *trial, uint64_t salt)
{
    const uint64_t hash = random_mix(trial->seed * 16 + salt);
    if (trial->shift >= 0)
        return trial->shift;
    return trial->seed % 2 ? 0 : (int64_t)(hash % 32);
}

/* A read outside of a tensor shows in the result: as NaN, as a mask that keeps the key, as a length past the end. */
static void fill_guards(const struct trial_tensor *t, bool output)
{
    if (t->integer)
        memset(t->data, 0x7f, (size_t)t->count * trial_item_size(t));
    else if (output)
        storage_fill_poison(t->type, t->data, t->count);
    else
        for (int64_t i = 0; i < t->count; i++)
            storage_set(t->type, t->data, i, NAN);
}

static bool allocate(struct trial_tensor *t, const struct trial *trial, int index)
{
    const int64_t border = BORDER_BYTES / (int64_t)trial_item_size(t);
    int64_t below, above;
    t->count = 0;
    t->data = NULL;
    if (is_empty(t))
        return true;
    if (!reach(t, &below, &above))
        return false;
    const int64_t guard = trial->tight ? 0 : GUARD;
    t->origin = (below + guard + border - 1) / border * border + shift_of(trial, (uint64_t)index + 1);
    t->count = t->origin + above + 1 + guard;
    t->data = malloc((size_t)t->count * trial_item_size(t));
    if (!t->data)
        return false;
    fill_guards(t, index >= TRIAL_FIRST_OUTPUT && index <= TRIAL_LAST_OUTPUT);
    return true;
}

static void shape(struct trial_tensor *out, const clattn_tensor *t, int64_t b, int64_t h, int64_t s, int64_t d)
{
    *out = (struct trial_tensor){.type = t->type,
                                 .size = {b, h, s, d},
                                 .stride = {t->strides.batch, t->strides.head, t->strides.row, t->strides.column}};
}

static const void *start_of(const struct trial_tensor *t)
{
    return t->count == 0 ? NULL : (const char *)t->data + (size_t)t->origin * trial_item_size(t);
}

void trial_oracle_call(const struct trial *trial, const struct trial_data *data, struct oracle_call *call)
{
    oracle_call_init(call, &trial->problem);
    call->batch = trial->batch;
    call->seq_q = trial->seq_q;
    call->seq_kv = trial->seq_kv;
    call->offset = trial->offset;
    call->scale = trial->scale;
    call->window_left = trial->window_left;
    call->window_right = trial->window_right;
    call->mask_columns = trial->mask_columns;
    call->bias_columns = trial->bias_columns;
    call->q = start_of(&data->q);
    call->k = start_of(&data->k);
    call->v = start_of(&data->v);
    call->mask = start_of(&data->mask);
    call->bias = start_of(&data->bias);
    call->bias_factors = start_of(&data->bias_factors);
    call->alibi = start_of(&data->alibi);
    call->sinks = start_of(&data->sinks);
    call->q_lengths = start_of(&data->q_lengths);
    call->kv_lengths = start_of(&data->kv_lengths);
    call->offsets = start_of(&data->offsets);
    call->q_starts = start_of(&data->q_starts);
    call->kv_starts = start_of(&data->kv_starts);
}

/* ------------------------------------------------------------------------------------------------------- the whole trial */

/* Packed tensors have one batch entry that holds the rows of all. */
static void shape_tensors(struct trial_data *data, const struct trial *trial)
{
    const clattn_problem *p = &trial->problem;
    const bool packed = p->packed.starts != CLATTN_NO_INTEGERS, empty = trial->batch == 0;
    const int64_t batch = packed && !empty ? 1 : trial->batch, q_rows = packed ? p->packed.total_q : trial->seq_q,
                  kv_rows = packed ? p->packed.total_kv : trial->seq_kv;
    const clattn_tensor lse = {CLATTN_FP32, {p->lse.strides.batch, p->lse.strides.head, p->lse.strides.row, 1}};
    const clattn_tensor scores = {CLATTN_FP32, p->scores.strides};
    shape(&data->q, &p->q, batch, p->heads_q, q_rows, p->head_dim_qk);
    shape(&data->k, &p->k, batch, p->heads_kv, kv_rows, p->head_dim_qk);
    shape(&data->v, &p->v, batch, p->heads_kv, kv_rows, p->head_dim_v);
    shape(&data->o, &p->o, batch, p->heads_q, q_rows, p->head_dim_v);
    shape(&data->lse, &lse, p->lse.present ? batch : 0, p->heads_q, q_rows, 1);
    const int64_t rest = p->heads_q - p->scores.first_head, score_heads = p->scores.heads ? p->scores.heads : rest;
    shape(&data->scores, &scores, p->scores.kind != CLATTN_SCORES_NONE ? trial->batch : 0, score_heads, trial->seq_q,
          trial->seq_kv);
}

/* One element where all of a batch, of the heads or of a sequence share it. */
static int64_t size_of(int64_t size, int64_t stride) { return stride == 0 && size > 1 ? 1 : size; }

static int64_t columns_of(int64_t given, int64_t keys) { return given < 0 || given > keys ? keys : given; }

static void shape_masks(struct trial_data *data, const struct trial *t)
{
    const clattn_problem *p = &t->problem;
    const int64_t mask_columns = columns_of(t->mask_columns, t->seq_kv), bias_columns = columns_of(t->bias_columns, t->seq_kv);
    if (p->mask.present)
        data->mask = (struct trial_tensor){
            .integer = 1,
            .size = {size_of(t->batch, p->mask.strides.batch), size_of(p->heads_q, p->mask.strides.head),
                     size_of(t->seq_q, p->mask.strides.row), size_of(mask_columns, p->mask.strides.column)},
            .stride = {p->mask.strides.batch, p->mask.strides.head, p->mask.strides.row, p->mask.strides.column}};
    if (p->bias.present)
        data->bias = (struct trial_tensor){
            .type = p->bias.type,
            .size = {size_of(t->batch, p->bias.strides.batch), size_of(p->heads_q, p->bias.strides.head),
                     size_of(t->seq_q, p->bias.strides.row), size_of(bias_columns, p->bias.strides.column)},
            .stride = {p->bias.strides.batch, p->bias.strides.head, p->bias.strides.row, p->bias.strides.column}};
    if (p->alibi.present)
        data->alibi = (struct trial_tensor){
            .type = CLATTN_FP32,
            .size = {size_of(t->batch, p->alibi.strides.batch), size_of(p->heads_q, p->alibi.strides.head), 1, 1},
            .stride = {p->alibi.strides.batch, p->alibi.strides.head, 0, 0}};
}

static struct trial_tensor list_of(int64_t count, clattn_integer type)
{
    return (struct trial_tensor){.type = CLATTN_FP32,
                                 .integer = type == CLATTN_INT32   ? 4
                                            : type == CLATTN_INT64 ? 8
                                                                   : 0,
                                 .size = {1, 1, 1, count},
                                 .stride = {0, 0, 0, 1}};
}

static void shape_lists(struct trial_data *data, const struct trial *t)
{
    const clattn_problem *p = &t->problem;
    if (p->bias.present && p->bias.factors)
        data->bias_factors = list_of(p->heads_q, CLATTN_NO_INTEGERS);
    if (p->sinks)
        data->sinks = list_of(p->heads_q, CLATTN_NO_INTEGERS);
    if (p->q_lengths)
        data->q_lengths = list_of(t->batch, p->q_lengths);
    if (p->kv_lengths)
        data->kv_lengths = list_of(t->batch, p->kv_lengths);
    if (p->offsets)
        data->offsets = list_of(t->batch, p->offsets);
    if (p->packed.starts)
        data->q_starts = data->kv_starts = list_of(t->batch + 1, p->packed.starts);
}

bool trial_data_create(struct trial_data *data, const struct trial *trial)
{
    struct oracle_call call;
    memset(data, 0, sizeof *data);
    shape_tensors(data, trial);
    shape_masks(data, trial);
    shape_lists(data, trial);
    for (int i = 0; i < TRIAL_BUFFERS; i++)
        if (!allocate(tensor_at(data, i), trial, i)) {
            trial_data_destroy(data);
            return false;
        }
    trial_fill_options(data, trial);
    trial_oracle_call(trial, data, &call);
    trial_fill_inputs(data, trial, &call);
    return true;
}

void trial_poison(struct trial_data *data)
{
    for (int i = TRIAL_FIRST_OUTPUT; i <= TRIAL_LAST_OUTPUT; i++) /* one that is absent has no element */
        storage_fill_poison(tensor_at(data, i)->type, tensor_at(data, i)->data, tensor_at(data, i)->count);
}

void trial_data_destroy(struct trial_data *data)
{
    for (int i = 0; i < TRIAL_BUFFERS; i++) {
        free(tensor_at(data, i)->data);
        tensor_at(data, i)->data = NULL;
        tensor_at(data, i)->count = 0;
    }
}
