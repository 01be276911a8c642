/* SPDX-License-Identifier: Apache-2.0 */
#include "selfcheck_witness.h"
#include "problem.h"

#include <math.h>
#include <stdlib.h>

/* Four independent sums, so that additions overlap. */
static double dot(const float *a, const float *b, int64_t count)
{
    double sum[4] = {0.0};
    int64_t i = 0;
    for (; i + 4 <= count; i += 4)
        for (int j = 0; j < 4; j++)
            sum[j] += (double)a[i + j] * (double)b[i + j];
    for (; i < count; i++)
        sum[0] += (double)a[i] * (double)b[i];
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

static bool is_seen(const struct check_data *data, int64_t batch, int64_t query, int64_t key)
{
    const clattn_problem *p = data->problem;
    const int64_t keys = cla_check_keys(p, batch);
    const size_t at = (size_t)(query * p->seq_kv + key);
    return key < keys && (!p->causal || key <= query + keys - p->seq_q) && (!data->mask || data->mask[at]) &&
           (!data->bias || data->bias[at] != -INFINITY);
}

/* One row: turns scores into `weights`, and adds their products with V to `sums`. */
static void attend(const struct check_data *data, int64_t batch, int64_t head, int64_t query, double *weights, double *sums,
                   float *o, float *lse)
{
    const clattn_problem *p = data->problem;
    const int64_t dim = p->head_dim_qk, dim_v = p->head_dim_v;
    const int64_t first = (batch * p->heads_kv + head / cla_group_size(p)) * p->seq_kv;
    const float *q = data->q + ((batch * p->heads_q + head) * p->seq_q + query) * dim;
    double top = -INFINITY, sum = 0.0;
    for (int64_t j = 0; j < p->seq_kv; j++) {
        weights[j] = -INFINITY;
        if (is_seen(data, batch, query, j)) {
            const double score = (double)p->scale * dot(q, data->k + (first + j) * dim, dim);
            weights[j] = p->softcap > 0.0f ? (double)p->softcap * tanh(score / (double)p->softcap) : score;
            weights[j] += data->bias ? (double)data->bias[query * p->seq_kv + j] : 0.0;
            /* The slope is 0 without ALiBi. */
            weights[j] -= (double)data->slopes[head] * fabs((double)(query + cla_check_keys(p, batch) - p->seq_q - j));
        }
        top = weights[j] > top ? weights[j] : top;
    }
    for (int64_t c = 0; c < dim_v; c++)
        sums[c] = 0.0;
    for (int64_t j = 0; j < p->seq_kv; j++) {
        if (weights[j] == -INFINITY)
            continue;
        const double weight = exp(weights[j] - top);
        const float *v = data->v + (first + j) * dim_v;
        sum += weight;
        for (int64_t c = 0; c < dim_v; c++)
            sums[c] += weight * (double)v[c];
    }
    for (int64_t c = 0; c < dim_v; c++)
        o[c] = sum > 0.0 ? (float)(sums[c] / sum) : 0.0f;
    *lse = sum > 0.0 ? (float)(top + log(sum)) : -INFINITY;
}

bool cla_check_witness(const struct check_data *data, float *o, float *lse)
{
    const clattn_problem *p = data->problem;
    double *scratch = malloc((size_t)(p->seq_kv + p->head_dim_v) * sizeof *scratch);
    if (!scratch)
        return false;
    for (int64_t batch = 0; batch < p->batch; batch++)
        for (int64_t head = 0; head < p->heads_q; head++)
            for (int64_t query = 0; query < p->seq_q; query++) {
                attend(data, batch, head, query, scratch, scratch + p->seq_kv, o, lse);
                o += p->head_dim_v;
                lse++;
            }
    free(scratch);
    return true;
}
