/* SPDX-License-Identifier: Apache-2.0 */
#include "oracle.h"

#include "half.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

/* A finite score stays finite in base two; in base e the limit is that much smaller. */
#define LARGEST_SCORE ((double)FLT_MAX * 0.69314718055994530942)

int64_t oracle_offset(const struct oracle_call *call)
{
    switch (call->problem->corner) {
    case CLATTN_BOTTOM_RIGHT:
        return call->seq_kv - call->seq_q;
    case CLATTN_EXPLICIT:
        return call->offset;
    default:
        return 0;
    }
}

static double scale_of(const struct oracle_call *call)
{
    return isnan(call->scale) ? 1.0 / sqrt((double)call->problem->head_dim_qk) : (double)call->scale;
}

/* Does query row i of this head see key j? Every rule that hides a key belongs here. */
static bool visible(const struct oracle_call *call, int64_t batch, int64_t head, int64_t i, int64_t j)
{
    (void)batch, (void)head;
    /* The difference cannot overflow, a sum with an offset near the limits of int64 could. */
    if (call->problem->causal && j - i > oracle_offset(call))
        return false;
    return true;
}

static double held(double score)
{
    if (score > LARGEST_SCORE)
        return LARGEST_SCORE;
    return score < -LARGEST_SCORE ? -LARGEST_SCORE : score; /* a NaN stays one */
}

/* The score of a visible key. Every rule that changes a score belongs here. */
static double score(const struct oracle *oracle, int64_t j)
{
    const int64_t dim = oracle->call.problem->head_dim_qk;
    const float *key = oracle->k + j * dim;
    double sum = 0.0;
    for (int64_t d = 0; d < dim; d++)
        sum += (double)oracle->q[d] * (double)key[d];
    return held(scale_of(&oracle->call) * sum);
}

static float plain_score(const struct oracle *oracle, int64_t j)
{
    const int64_t dim = oracle->call.problem->head_dim_qk;
    const float *key = oracle->k + j * dim;
    float sum = 0.0f;
    for (int64_t d = 0; d < dim; d++)
        sum += oracle->q[d] * key[d];
    return (float)held((float)scale_of(&oracle->call) * sum);
}

static int64_t at_least_one(int64_t n) { return n > 0 ? n : 1; }

bool oracle_begin(struct oracle *oracle, const struct oracle_call *call)
{
    const clattn_problem *p = call->problem;
    const size_t keys = (size_t)at_least_one(call->seq_kv);
    oracle->call = *call;
    oracle->batch = oracle->kv_head = -1;
    oracle->k = malloc(keys * (size_t)p->head_dim_qk * sizeof *oracle->k);
    oracle->v = malloc(keys * (size_t)p->head_dim_v * sizeof *oracle->v);
    oracle->q = malloc((size_t)p->head_dim_qk * sizeof *oracle->q);
    oracle->weights = malloc(keys * sizeof *oracle->weights);
    oracle->plain_weights = malloc(keys * sizeof *oracle->plain_weights);
    if (oracle->k && oracle->v && oracle->q && oracle->weights && oracle->plain_weights)
        return true;
    oracle_end(oracle);
    return false;
}

void oracle_end(struct oracle *oracle)
{
    free(oracle->k);
    free(oracle->v);
    free(oracle->q);
    free(oracle->weights);
    free(oracle->plain_weights);
}

/* Rows of one head of a tensor to float. */
static void decode(const clattn_tensor *t, const void *data, int64_t batch, int64_t head, int64_t first, int64_t rows,
                   int64_t dim, float *out)
{
    for (int64_t s = 0; s < rows; s++) {
        const int64_t at = batch * t->stride_batch + head * t->stride_head + (first + s) * t->stride_seq;
        for (int64_t d = 0; d < dim; d++)
            out[s * dim + d] = storage_get(t->type, data, at + d * t->stride_dim);
    }
}

/* Query heads share key/value heads in runs: head h reads h / (heads_q / heads_kv). */
static void select_row(struct oracle *oracle, int64_t batch, int64_t head, int64_t row)
{
    const struct oracle_call *call = &oracle->call;
    const clattn_problem *p = call->problem;
    const int64_t kv_head = head / (p->heads_q / p->heads_kv);
    if (batch != oracle->batch || kv_head != oracle->kv_head) {
        decode(&p->k, call->k, batch, kv_head, 0, call->seq_kv, p->head_dim_qk, oracle->k);
        decode(&p->v, call->v, batch, kv_head, 0, call->seq_kv, p->head_dim_v, oracle->v);
        oracle->batch = batch;
        oracle->kv_head = kv_head;
    }
    decode(&p->q, call->q, batch, head, row, 1, p->head_dim_qk, oracle->q);
}

void oracle_row(struct oracle *oracle, int64_t batch, int64_t head, int64_t row, double *o, double *lse, double *weights)
{
    const struct oracle_call *call = &oracle->call;
    const int64_t keys = call->seq_kv, dim = call->problem->head_dim_v;
    double *p = oracle->weights;
    double largest = -INFINITY, sum = 0.0;
    bool empty = true;
    select_row(oracle, batch, head, row);
    for (int64_t j = 0; j < keys; j++) {
        p[j] = -INFINITY;
        if (visible(call, batch, head, row, j)) {
            empty = false;
            p[j] = score(oracle, j);
            largest = p[j] > largest ? p[j] : largest;
        }
    }
    for (int64_t e = 0; e < dim; e++)
        o[e] = 0.0;
    for (int64_t j = 0; j < keys; j++) {
        const bool seen = visible(call, batch, head, row, j);
        p[j] = seen ? exp(p[j] - largest) : 0.0;
        sum += p[j];
        for (int64_t e = 0; seen && e < dim; e++)
            o[e] += p[j] * (double)oracle->v[j * dim + e];
    }
    for (int64_t e = 0; !empty && e < dim; e++)
        o[e] /= sum;
    *lse = empty ? -INFINITY : largest + log(sum);
    for (int64_t j = 0; weights && j < keys; j++)
        weights[j] = empty ? 0.0 : p[j] / sum;
}

void oracle_plain_row(struct oracle *oracle, int64_t batch, int64_t head, int64_t row, bool round_weights, float *o, float *lse)
{
    const struct oracle_call *call = &oracle->call;
    const clattn_problem *problem = call->problem;
    const int64_t keys = call->seq_kv, dim = problem->head_dim_v;
    float *p = oracle->plain_weights;
    float largest = -INFINITY, sum = 0.0f;
    bool empty = true;
    select_row(oracle, batch, head, row);
    for (int64_t j = 0; j < keys; j++) {
        if (visible(call, batch, head, row, j)) {
            empty = false;
            p[j] = plain_score(oracle, j);
            largest = p[j] > largest ? p[j] : largest;
        }
    }
    for (int64_t e = 0; e < dim; e++)
        o[e] = 0.0f;
    for (int64_t j = 0; j < keys; j++) {
        if (!visible(call, batch, head, row, j))
            continue;
        const float weight = expf(p[j] - largest);
        const float factor = round_weights ? storage_round(problem->v.type, weight) : weight;
        sum += weight;
        for (int64_t e = 0; e < dim; e++)
            o[e] += factor * oracle->v[j * dim + e];
    }
    for (int64_t e = 0; e < dim; e++)
        o[e] = empty ? 0.0f : storage_round(problem->o.type, o[e] / sum);
    *lse = empty ? -INFINITY : largest + logf(sum);
}

bool oracle_attention(const struct oracle_call *call, double *o, double *lse)
{
    const clattn_problem *p = call->problem;
    struct oracle oracle;
    if (!oracle_begin(&oracle, call))
        return false;
    for (int64_t b = 0, row = 0; b < call->batch; b++) {
        for (int64_t h = 0; h < p->heads_q; h++) {
            for (int64_t i = 0; i < call->seq_q; i++, row++) {
                double row_lse;
                oracle_row(&oracle, b, h, i, o + row * p->head_dim_v, &row_lse, NULL);
                if (lse)
                    lse[row] = row_lse;
            }
        }
    }
    oracle_end(&oracle);
    return true;
}
