/* SPDX-License-Identifier: Apache-2.0
 * The buffers of a trial: where elements stand between their guards, and what the inputs hold. */
#include "half.h"
#include "random.h"
#include "trial.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD = 256, BORDER_BYTES = 64 };

static int64_t index_of(const struct trial_tensor *t, int64_t b, int64_t h, int64_t s, int64_t d)
{
    return t->origin + b * t->stride[0] + h * t->stride[1] + s * t->stride[2] + d * t->stride[3];
}

float trial_get(const struct trial_tensor *t, int64_t b, int64_t h, int64_t s, int64_t d)
{
    return storage_get(t->type, t->data, index_of(t, b, h, s, d));
}

void trial_set(const struct trial_tensor *t, int64_t b, int64_t h, int64_t s, int64_t d, float x)
{
    storage_set(t->type, t->data, index_of(t, b, h, s, d), x);
}

/* Elements below and above (0, 0, 0, 0). False: the tensor has no element. */
static bool reach(const struct trial_tensor *t, int64_t *below, int64_t *above)
{
    *below = *above = 0;
    for (int i = 0; i < 4; i++) {
        const int64_t far = (t->size[i] - 1) * t->stride[i];
        if (t->size[i] == 0)
            return false;
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

static bool allocate(struct trial_tensor *t, const struct trial *trial, uint64_t salt, bool output)
{
    const int64_t border = BORDER_BYTES / (int64_t)storage_size(t->type);
    int64_t below, above;
    t->count = 0;
    t->data = NULL;
    if (!reach(t, &below, &above))
        return true;
    t->origin = (below + GUARD + border - 1) / border * border + shift_of(trial, salt);
    t->count = t->origin + above + 1 + GUARD;
    t->data = malloc((size_t)t->count * storage_size(t->type));
    if (!t->data)
        return false;
    if (output)
        storage_fill_poison(t->type, t->data, t->count);
    else
        for (int64_t i = 0; i < t->count; i++)
            storage_set(t->type, t->data, i, NAN);
    return true;
}

static void shape(struct trial_tensor *out, const clattn_tensor *t, int64_t b, int64_t h, int64_t s, int64_t d)
{
    *out = (struct trial_tensor){
        .type = t->type, .size = {b, h, s, d}, .stride = {t->stride_batch, t->stride_head, t->stride_seq, t->stride_dim}};
}

/* ------------------------------------------------------------------------------------------------------------- inputs */

/* The number for one element of one tensor, the same whatever the layout is. */
static float noise(const struct trial *trial, unsigned tensor, int64_t b, int64_t h, int64_t s, int64_t d)
{
    uint64_t hash = random_mix(trial->seed * 4 + tensor);
    hash = random_mix(hash ^ (uint64_t)b << 40 ^ (uint64_t)h);
    hash = random_mix(hash ^ (uint64_t)s << 20 ^ (uint64_t)d);
    const float x = random_signed(hash);
    return trial->inputs == TRIAL_OUTLIERS && hash % 100 == 0 ? 20.0f * x : x;
}

/* +1 or -1: the direction along which the scores of a key/value head climb. */
static float direction(const struct trial *trial, int64_t b, int64_t kv_head, int64_t d)
{
    return random_mix(random_mix(trial->seed ^ 0x5eed) ^ (uint64_t)b << 40 ^ (uint64_t)kv_head << 20 ^ (uint64_t)d) & 1 ? 1.0f
                                                                                                                        : -1.0f;
}

/* How far key j goes along that direction: its score then climbs linearly from -span to 0. */
static float climb(const struct trial *trial, int64_t j)
{
    const float dim = (float)trial->problem.head_dim_qk;
    const float scale = isnan(trial->scale) ? 1.0f / sqrtf(dim) : trial->scale;
    const float span = trial->inputs == TRIAL_STEEP ? 90.0f : 12.0f;
    const float score = span * ((float)(j + 1) / (float)trial->seq_kv - 1.0f);
    const float step = scale == 0.0f ? 0.0f : score / (scale * dim);
    return step > 60.0f ? 60.0f : step < -60.0f ? -60.0f : step;
}

static float q_value(const struct trial *trial, int64_t b, int64_t h, int64_t i, int64_t d)
{
    const clattn_problem *p = &trial->problem;
    const float x = noise(trial, 0, b, h, i, d);
    const uint64_t kind = random_mix(trial->seed ^ 0xa11 ^ (uint64_t)b << 50 ^ (uint64_t)h << 30 ^ (uint64_t)i);
    if (trial->inputs == TRIAL_EQUAL)
        return 0.0f;
    if (trial->inputs == TRIAL_LARGE)
        return 32.0f + x;
    if (trial->inputs == TRIAL_NAN_ROWS && kind % 5 == 0 && d == (int64_t)(kind >> 8) % p->head_dim_qk)
        return NAN;
    return (kind % 4 == 3 ? -1.0f : 1.0f) * direction(trial, b, h / (p->heads_q / p->heads_kv), d) + 0.5f * x;
}

static int64_t offset_of(const struct trial *trial)
{
    const clattn_corner corner = trial->problem.corner;
    return corner == CLATTN_TOP_LEFT ? 0 : corner == CLATTN_BOTTOM_RIGHT ? trial->seq_kv - trial->seq_q : trial->offset;
}

/* Keys that no row sees hold NaN and infinities, which must leave no trace. */
static bool is_unseen(const struct trial *trial, int64_t j)
{
    return trial->problem.causal && j - (trial->seq_q - 1) > offset_of(trial);
}

static float unseen_value(float x) { return x > 0.5f ? INFINITY : x < -0.5f ? -INFINITY : NAN; }

static float k_value(const struct trial *trial, int64_t b, int64_t g, int64_t j, int64_t d)
{
    const float x = noise(trial, 1, b, g, j, d);
    if (is_unseen(trial, j))
        return unseen_value(x);
    if (trial->inputs == TRIAL_EQUAL)
        return 0.0f;
    if (trial->inputs == TRIAL_LARGE)
        return 32.0f + x;
    return climb(trial, j) * direction(trial, b, g, d) + x;
}

static float v_value(const struct trial *trial, int64_t b, int64_t g, int64_t j, int64_t d)
{
    const float x = noise(trial, 2, b, g, j, d);
    if (is_unseen(trial, j))
        return unseen_value(x);
    return trial->inputs == TRIAL_ONES ? 1.0f : x;
}

static void fill(const struct trial_tensor *t, const struct trial *trial,
                 float (*value)(const struct trial *, int64_t, int64_t, int64_t, int64_t))
{
    if (t->count == 0)
        return;
    for (int64_t b = 0; b < t->size[0]; b++)
        for (int64_t h = 0; h < t->size[1]; h++)
            for (int64_t s = 0; s < t->size[2]; s++)
                for (int64_t d = 0; d < t->size[3]; d++)
                    trial_set(t, b, h, s, d, value(trial, b, h, s, d));
}

bool trial_data_create(struct trial_data *data, const struct trial *trial)
{
    const clattn_problem *p = &trial->problem;
    const clattn_tensor lse = {CLATTN_FP32, p->lse.stride_batch, p->lse.stride_head, p->lse.stride_seq, 1};
    const clattn_tensor scores = {CLATTN_FP32, p->scores.stride_batch, p->scores.stride_head, p->scores.stride_seq_q,
                                  p->scores.stride_seq_kv};
    memset(data, 0, sizeof *data);
    shape(&data->q, &p->q, trial->batch, p->heads_q, trial->seq_q, p->head_dim_qk);
    shape(&data->k, &p->k, trial->batch, p->heads_kv, trial->seq_kv, p->head_dim_qk);
    shape(&data->v, &p->v, trial->batch, p->heads_kv, trial->seq_kv, p->head_dim_v);
    shape(&data->o, &p->o, trial->batch, p->heads_q, trial->seq_q, p->head_dim_v);
    shape(&data->lse, &lse, p->lse.present ? trial->batch : 0, p->heads_q, trial->seq_q, 1);
    shape(&data->scores, &scores, p->scores.kind != CLATTN_SCORES_NONE ? trial->batch : 0, p->heads_q, trial->seq_q,
          trial->seq_kv);
    if (!allocate(&data->q, trial, 1, false) || !allocate(&data->k, trial, 2, false) || !allocate(&data->v, trial, 3, false) ||
        !allocate(&data->o, trial, 4, true) || !allocate(&data->lse, trial, 5, true) ||
        !allocate(&data->scores, trial, 6, true)) {
        trial_data_destroy(data);
        return false;
    }
    fill(&data->q, trial, q_value);
    fill(&data->k, trial, k_value);
    fill(&data->v, trial, v_value);
    return true;
}

void trial_poison(struct trial_data *data)
{
    struct trial_tensor *const outputs[] = {&data->o, &data->lse, &data->scores};
    for (size_t i = 0; i < sizeof outputs / sizeof *outputs; i++)
        if (outputs[i]->count > 0)
            storage_fill_poison(outputs[i]->type, outputs[i]->data, outputs[i]->count);
}

void trial_data_destroy(struct trial_data *data)
{
    struct trial_tensor *const all[] = {&data->q, &data->k, &data->v, &data->o, &data->lse, &data->scores};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        free(all[i]->data);
        all[i]->data = NULL;
        all[i]->count = 0;
    }
}
