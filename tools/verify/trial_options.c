/* SPDX-License-Identifier: Apache-2.0
 * What the buffers of a trial's options hold: masks with fully masked rows and columns, every kind of large negative number,
 * lengths from 0 to past the end. */
#include "random.h"
#include "trial.h"

#include <float.h>
#include <math.h>

static uint64_t hash_of(const struct trial *trial, uint64_t salt, int64_t a, int64_t b, int64_t c)
{
    uint64_t hash = random_mix(trial->seed ^ salt << 56);
    hash = random_mix(hash ^ (uint64_t)a << 40 ^ (uint64_t)b);
    return random_mix(hash ^ (uint64_t)c);
}

/* --------------------------------------------------------------------------------------------------------------- masks */

enum pattern {
    SCATTERED, /* here and there, with rows without keys and keys that no row sees */
    PATCHES,   /* blocks that are visible, masked, or scattered, no multiples of any tile */
    DIAGONAL,  /* blocks along the diagonal: documents in a row */
    OPEN,      /* everything is visible */
    LONELY,    /* one key: the first or the last */
    PATTERNS
};

static enum pattern pattern_of(const struct trial *trial, uint64_t salt)
{
    return (enum pattern)(random_mix(trial->seed ^ salt) % PATTERNS);
}

/* Whether the element of a mask keeps its key. */
static bool keeps(const struct trial *trial, uint64_t salt, int64_t b, int64_t h, int64_t i, int64_t j)
{
    const uint64_t hash = hash_of(trial, salt, b * 1000 + h, i, j), patch = hash_of(trial, salt, b * 1000 + h, i / 75, j / 90);
    switch (pattern_of(trial, salt)) {
    case PATCHES:
        return patch % 3 == 0 || (patch % 3 == 1 && hash % 2);
    case DIAGONAL:
        return i / 100 == j / 100;
    case OPEN:
        return true;
    case LONELY:
        return j == ((trial->seed + (uint64_t)b) % 2 ? 0 : trial->seq_kv - 1);
    default:
        return hash % 4 && hash_of(trial, salt + 1, b, h, i) % 7 && hash_of(trial, salt + 2, b, h, j) % 6;
    }
}

/* A mask's byte keeps its key when it is not 0, whatever else it is. */
static void fill_mask(const struct trial_tensor *t, const struct trial *trial)
{
    for (int64_t b = 0; b < t->size[0]; b++)
        for (int64_t h = 0; h < t->size[1]; h++)
            for (int64_t i = 0; i < t->size[2]; i++)
                for (int64_t j = 0; j < t->size[3]; j++) {
                    const bool kept = trial->mask_blocks > 0 ? i / trial->mask_blocks == j / trial->mask_blocks
                                                             : keeps(trial, 10, b, h, i, j);
                    trial_set(t, b, h, i, j, kept ? (float)(1 + hash_of(trial, 14, b + h, i, j) % 255) : 0.0f);
                }
}

/* Numbers; numbers that mask a key; rows where every key has the same large negative one, so that none is masked; zeros in
 * patches. */
static float bias_value(const struct trial *trial, int64_t b, int64_t h, int64_t i, int64_t j)
{
    static const float hiding[] = {-INFINITY, -INFINITY, -FLT_MAX, -1e9f, -65504.0f};
    const uint64_t kind = random_mix(trial->seed ^ 0xb1a5), row = hash_of(trial, 20, b, h, i);
    const float x = 2.0f * random_signed(hash_of(trial, 21, b * 1000 + h, i, j));
    const float hidden = hiding[(kind >> 8) % (sizeof hiding / sizeof *hiding)];
    if (kind % 4 == 3) /* no row is special */
        return hash_of(trial, 22, b * 1000 + h, i / 75, j / 90) % 2 ? 0.0f : x;
    if (row % 9 == 0)
        return -INFINITY;
    if (row % 9 == 1)
        return -65504.0f;
    if (!keeps(trial, 24, b, h, i, j))
        return hidden;
    return kind % 2 ? 0.0f : x;
}

static void fill_bias(const struct trial_tensor *t, const struct trial *trial)
{
    for (int64_t b = 0; b < t->size[0]; b++)
        for (int64_t h = 0; h < t->size[1]; h++)
            for (int64_t i = 0; i < t->size[2]; i++)
                for (int64_t j = 0; j < t->size[3]; j++)
                    trial_set(t, b, h, i, j, bias_value(trial, b, h, i, j));
}

/* A number a head, now and then one of the special ones. */
static void fill_floats(const struct trial_tensor *t, const struct trial *trial, uint64_t salt, const float special[2])
{
    for (int64_t b = 0; b < t->size[0]; b++)
        for (int64_t h = 0; h < t->size[1]; h++)
            for (int64_t i = 0; i < t->size[3]; i++) {
                const uint64_t hash = hash_of(trial, salt, b, h, i);
                trial_set(t, b, h, 0, i, hash % 4 == 0 ? special[hash >> 8 & 1] : random_signed(hash));
            }
}

/* ----------------------------------------------------------------------------------------------------------- sequences */

static int64_t extreme(const struct trial_tensor *t, bool high)
{
    if (t->integer == 4)
        return high ? INT32_MAX : INT32_MIN;
    return high ? INT64_MAX : INT64_MIN;
}

/* 0, the full length, one between, and invalid lengths. */
static void fill_lengths(const struct trial_tensor *t, const struct trial *trial, uint64_t salt, int64_t capacity)
{
    for (int64_t b = 0; b < t->size[3]; b++) {
        const uint64_t hash = hash_of(trial, salt, b, 0, 0);
        const int64_t some = capacity > 0 ? 1 + (int64_t)(hash >> 8) % capacity : 0;
        const int64_t values[] = {0, capacity, -7, capacity + 1000, extreme(t, false), extreme(t, true)};
        trial_set_integer(t, b, hash % 12 < 6 ? values[hash % 12] : some > 0 ? some : -some);
    }
}

/* Near the diagonal, and sometimes far off it. */
static void fill_offsets(const struct trial_tensor *t, const struct trial *trial)
{
    const int64_t span = trial->seq_q + trial->seq_kv + 1;
    for (int64_t b = 0; b < t->size[3]; b++) {
        const uint64_t hash = hash_of(trial, 33, b, 0, 0);
        const int64_t near = (int64_t)((hash >> 8) % (uint64_t)span) - trial->seq_q;
        /* A slope times a distance that no length has would leave nothing of the scores. */
        const bool far = hash % 6 == 0 && !trial->problem.alibi.present;
        trial_set_integer(t, b, far ? extreme(t, hash >> 4 & 1) : near);
    }
}

/* Sequences of 0 to the longest length, one after the other, the first at or near the start. Rows past the last belong to none.
 * Now and then invalid starts: the first below 0, or the last past the end or decreasing. */
static void fill_starts(const struct trial_tensor *t, const struct trial *trial, uint64_t salt, int64_t longest, int64_t total)
{
    const int64_t batch = t->size[3] - 1;
    const uint64_t kind = hash_of(trial, salt, -1, 0, 0);
    int64_t at = kind % 3 == 0 && total > batch * longest / 2 ? (int64_t)(kind >> 8) % (longest / 2 + 1) : 0;
    trial_set_integer(t, 0, kind % 5 == 1 ? -3 : at);
    at = kind % 5 == 1 ? 0 : at;
    for (int64_t b = 0; b < batch; b++) {
        const uint64_t hash = hash_of(trial, salt, b, 0, 0);
        const int64_t length = hash % 4 == 0 ? 0 : hash % 4 == 1 ? longest : (int64_t)(hash >> 8) % (longest + 1);
        at = at + length > total ? total : at + length;
        trial_set_integer(t, b + 1, at);
    }
    if (batch > 0 && kind % 7 == 0)
        trial_set_integer(t, batch, kind >> 6 & 1 ? total + 100 : -1);
}

void trial_fill_options(struct trial_data *data, const struct trial *trial)
{
    static const float no_factor[] = {0.0f, 1.0f}, slopes[] = {0.0f, 0.5f}, sinks[] = {-INFINITY, 20.0f};
    const clattn_problem *p = &trial->problem;
    fill_mask(&data->mask, trial);
    fill_bias(&data->bias, trial);
    fill_floats(&data->bias_factors, trial, 30, no_factor);
    fill_floats(&data->alibi, trial, 31, slopes);
    fill_floats(&data->sinks, trial, 32, sinks);
    for (int64_t h = 0; trial->has_sink && h < data->sinks.size[3]; h += 2)
        trial_set(&data->sinks, 0, 0, 0, h, trial->sink);
    fill_lengths(&data->q_lengths, trial, 34, trial->seq_q);
    fill_lengths(&data->kv_lengths, trial, 35, trial->seq_kv);
    fill_offsets(&data->offsets, trial);
    if (p->packed.starts) {
        fill_starts(&data->q_starts, trial, 36, trial->seq_q, p->packed.total_q);
        fill_starts(&data->kv_starts, trial, 37, trial->seq_kv, p->packed.total_kv);
    }
}
