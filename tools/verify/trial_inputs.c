/* SPDX-License-Identifier: Apache-2.0
 * What Q, K and V of a trial hold: numbers whose scores climb along the keys, and NaN where no kernel may read. */
#include "random.h"
#include "trial.h"

#include <math.h>

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

/* ---------------------------------------------------------------------------------------------------------- large scores */

static double largest_of(clattn_type type) { return type == CLATTN_FP16 ? 32768.0 : 0x1p126; }

/* What a query holds where keys alone do not reach the level: a power of two. */
static float large_query(const struct trial *trial)
{
    const clattn_problem *p = &trial->problem;
    double q = 1.0;
    while (q < largest_of(p->q.type) && fabs(trial->level) > q * largest_of(p->k.type) * (double)p->head_dim_qk)
        q *= 2.0;
    return (float)q;
}

/* Eight bits at most, so that sums of up to 2^16 such products are exact in any order: equal keys have equal scores. */
static float short_number(double x)
{
    int exponent;
    const double part = frexp(x, &exponent);
    return (float)ldexp(trunc(part * 256.0), exponent - 8);
}

/* Along the direction of the queries. */
static float large_key(const struct trial *trial, int64_t j)
{
    const clattn_problem *p = &trial->problem;
    const double most = largest_of(p->k.type), x = trial->level / ((double)large_query(trial) * (double)p->head_dim_qk);
    const float key = short_number(x > most ? most : x < -most ? -most : x);
    const int64_t winners[] = {0, trial->seq_kv / 2, trial->seq_kv - 1};
    const bool wins = trial->winner <= TRIAL_LAST ? j == winners[trial->winner] : j % 3 == 1;
    if (trial->winner == TRIAL_ALL || trial->winner == TRIAL_RISE)
        return key;
    return wins == (key > 0.0f) ? key : key * 0.5f; /* no product is larger than the level */
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
    const float along = (kind % 4 == 3 ? -1.0f : 1.0f) * direction(trial, b, h / (p->heads_q / p->heads_kv), d);
    return trial->level != 0.0 ? along * large_query(trial) : along + 0.5f * x;
}

static float unseen_value(float x) { return x > 0.5f ? INFINITY : x < -0.5f ? -INFINITY : NAN; }

static float k_value(const struct trial *trial, int64_t b, int64_t g, int64_t row, int64_t j, int64_t d)
{
    const float x = noise(trial, 1, b, g, row, d);
    if (j < 0)
        return unseen_value(x);
    if (trial->inputs == TRIAL_EQUAL)
        return 0.0f;
    if (trial->inputs == TRIAL_LARGE)
        return 32.0f + x;
    if (trial->level != 0.0 && trial->winner != TRIAL_RISE)
        return large_key(trial, j) * direction(trial, b, g, d);
    if (trial->level != 0.0)
        return (large_key(trial, j) + climb(trial, j) / large_query(trial)) * direction(trial, b, g, d);
    return climb(trial, j) * direction(trial, b, g, d) + x;
}

static float v_value(const struct trial *trial, int64_t b, int64_t g, int64_t row, int64_t j, int64_t d)
{
    const float x = noise(trial, 2, b, g, row, d);
    if (j < 0)
        return unseen_value(x);
    if (trial->value != 0.0f)
        return trial->value * (x < 0.0f ? 0.75f : 1.0f);
    return trial->inputs == TRIAL_ONES ? 1.0f : x;
}

/* ----------------------------------------------------------------------------------------------------- masked inputs */

/* The batch entry that row `row` of a packed tensor belongs to, and its number there; -1: none. */
static int64_t owner_of(const struct oracle_call *call, bool keys, int64_t row, int64_t *number)
{
    for (int64_t b = 0; b < call->batch; b++) {
        struct oracle_sequence s;
        oracle_sequence_find(call, b, &s);
        *number = row - (keys ? s.kv_start : s.q_start);
        if (*number >= 0 && *number < (keys ? s.kv_length : s.q_length))
            return b;
    }
    return -1;
}

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

/* Does any query of any head that shares this key/value head see key j? Only queries that diagonal and window allow are asked.
 */
static bool is_seen(const struct oracle_call *call, int64_t b, int64_t g, int64_t j)
{
    const clattn_problem *p = call->problem;
    const int64_t group = p->heads_q / p->heads_kv, heads = p->mask.present || p->bias.present ? group : 1;
    struct oracle_sequence s;
    oracle_sequence_find(call, b, &s);
    int64_t first = p->causal ? larger(0, j - s.offset) : 0, last = s.q_length - 1;
    if (call->window_right >= 0 && call->window_right < call->seq_kv)
        first = larger(first, j - s.offset - call->window_right);
    if (call->window_left >= 0 && call->window_left < call->seq_kv)
        last = smaller(last, j - s.offset + call->window_left);
    for (int64_t i = last; i >= first; i--)
        for (int64_t h = 0; h < heads; h++)
            if (oracle_sees(call, &s, b, g * group + h, i, j))
                return true;
    return false;
}

/* The number of a key, or -1 when no query that reads its memory sees it: then it holds NaN and infinities, which must leave no
 * trace. */
static int64_t key_of_row(const struct oracle_call *call, const struct trial_tensor *t, int64_t b, int64_t g, int64_t row)
{
    const clattn_problem *p = call->problem;
    const bool packed = p->packed.starts != CLATTN_NO_INTEGERS, one_batch = !packed && t->stride[0] == 0;
    int64_t j = row;
    if (packed && (b = owner_of(call, true, row, &j)) < 0)
        return -1;
    for (int64_t other = one_batch ? 0 : b; other < (one_batch ? call->batch : b + 1); other++)
        for (int64_t head = t->stride[1] == 0 ? 0 : g; head < (t->stride[1] == 0 ? p->heads_kv : g + 1); head++)
            if (is_seen(call, other, head, j))
                return j;
    return -1;
}

static void fill_keys(struct trial_data *data, const struct trial *trial, const struct oracle_call *call)
{
    const struct trial_tensor *k = &data->k, *v = &data->v;
    for (int64_t b = 0; b < k->size[0]; b++)
        for (int64_t g = 0; g < k->size[1]; g++)
            for (int64_t row = 0; row < k->size[2]; row++) {
                const int64_t j = key_of_row(call, k, b, g, row);
                for (int64_t d = 0; d < k->size[3]; d++)
                    trial_set(k, b, g, row, d, k_value(trial, b, g, row, j, d));
                for (int64_t d = 0; d < v->size[3]; d++)
                    trial_set(v, b, g, row, d, v_value(trial, b, g, row, j, d));
            }
}

/* Queries past the length of their sequence hold NaN. */
static void fill_queries(struct trial_data *data, const struct trial *trial, const struct oracle_call *call)
{
    const struct trial_tensor *q = &data->q;
    const bool packed = trial->problem.packed.starts != CLATTN_NO_INTEGERS;
    for (int64_t b = 0; b < q->size[0]; b++) {
        struct oracle_sequence s = {.q_length = q->size[2]};
        if (!packed && q->stride[0] != 0)
            oracle_sequence_find(call, b, &s);
        for (int64_t row = 0; row < q->size[2]; row++) {
            int64_t number;
            const bool real = packed ? owner_of(call, false, row, &number) >= 0 : row < s.q_length;
            for (int64_t h = 0; h < q->size[1]; h++)
                for (int64_t d = 0; d < q->size[3]; d++)
                    trial_set(q, b, h, row, d, real ? q_value(trial, b, h, row, d) : NAN);
        }
    }
}

void trial_fill_inputs(struct trial_data *data, const struct trial *trial, const struct oracle_call *call)
{
    fill_queries(data, trial, call);
    if (trial->problem.heads_kv > 0 && data->k.count > 0)
        fill_keys(data, trial, call);
}
