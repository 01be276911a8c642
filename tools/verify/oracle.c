/* SPDX-License-Identifier: Apache-2.0 */
#include "oracle.h"

#include "half.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A finite score stays finite in base two; in base e the limit is that much smaller. */
#define LARGEST_SCORE ((double)FLT_MAX * 0.69314718055994530942)
#define LOG2_E 1.44269504088896340736f
#define LN_2 0.69314718055994530942f

void oracle_call_init(struct oracle_call *call, const clattn_problem *problem)
{
    memset(call, 0, sizeof *call);
    call->problem = problem;
    call->batch = problem->batch;
    call->seq_q = problem->seq_q;
    call->seq_kv = problem->seq_kv;
    call->offset = problem->offset;
    call->scale = problem->scale;
    call->window_left = problem->window.left;
    call->window_right = problem->window.right;
    call->mask_columns = problem->mask.columns;
    call->bias_columns = problem->bias.columns;
}

/* ----------------------------------------------------------------------------------------------------------- sequences */

static int64_t integer_at(const void *data, clattn_integer type, int64_t i)
{
    return type == CLATTN_INT64 ? ((const int64_t *)data)[i] : ((const int32_t *)data)[i];
}

static int64_t within(int64_t x, int64_t lowest, int64_t highest) { return x < lowest ? lowest : x > highest ? highest : x; }

/* Number i of cumulative starts: none is below 0 or past the total. A sequence that would end before it starts is empty. */
static int64_t start_of_sequence(const void *starts, clattn_integer type, int64_t i, int64_t total)
{
    return within(integer_at(starts, type, i), 0, total);
}

/* An offset past these limits masks all keys or none, as the limit itself does; sums with it cannot overflow. */
#define FAR ((int64_t)1 << 60)

void oracle_sequence_find(const struct oracle_call *call, int64_t batch, struct oracle_sequence *s)
{
    const clattn_problem *p = call->problem;
    const clattn_integer starts = p->packed.starts;
    s->q_start = s->kv_start = 0;
    s->q_length = call->seq_q;
    s->kv_length = call->seq_kv;
    if (starts) {
        s->q_start = start_of_sequence(call->q_starts, starts, batch, p->packed.total_q);
        s->kv_start = start_of_sequence(call->kv_starts, starts, batch, p->packed.total_kv);
        const int64_t q_end = start_of_sequence(call->q_starts, starts, batch + 1, p->packed.total_q);
        const int64_t kv_end = start_of_sequence(call->kv_starts, starts, batch + 1, p->packed.total_kv);
        s->q_length = within(q_end - s->q_start, 0, call->seq_q);
        s->kv_length = within(kv_end - s->kv_start, 0, call->seq_kv);
    }
    s->q_rows = s->q_length;
    s->kv_rows = s->kv_length;
    if (p->q_lengths)
        s->q_length = within(integer_at(call->q_lengths, p->q_lengths, batch), 0, s->q_length);
    if (p->kv_lengths)
        s->kv_length = within(integer_at(call->kv_lengths, p->kv_lengths, batch), 0, s->kv_length);
    s->offset = 0;
    if (p->corner == CLATTN_BOTTOM_RIGHT)
        s->offset = s->kv_length - s->q_length;
    if (p->corner == CLATTN_EXPLICIT)
        s->offset = within(p->offsets ? integer_at(call->offsets, p->offsets, batch) : call->offset, -FAR, FAR);
}

/* ---------------------------------------------------------------------------------------------------- visibility, scores */

static float bias_at(const struct oracle_call *call, int64_t batch, int64_t head, int64_t i, int64_t j)
{
    const clattn_problem *p = call->problem;
    return storage_get(p->bias.type, call->bias,
                       batch * p->bias.strides.batch + head * p->bias.strides.head + i * p->bias.strides.row +
                           j * p->bias.strides.column);
}

static bool mask_keeps(const struct oracle_call *call, int64_t batch, int64_t head, int64_t i, int64_t j)
{
    const clattn_problem *p = call->problem;
    if (call->mask_columns >= 0 && j >= call->mask_columns)
        return false;
    return call->mask[batch * p->mask.strides.batch + head * p->mask.strides.head + i * p->mask.strides.row +
                      j * p->mask.strides.column] != 0;
}

static bool bias_keeps(const struct oracle_call *call, int64_t batch, int64_t head, int64_t i, int64_t j)
{
    if (call->bias_columns >= 0 && j >= call->bias_columns)
        return false;
    const float bias = bias_at(call, batch, head, i, j);
    return !(isinf(bias) && bias < 0.0f);
}

/* Every rule that masks a key belongs here. */
bool oracle_sees(const struct oracle_call *call, const struct oracle_sequence *s, int64_t batch, int64_t head, int64_t i,
                 int64_t j)
{
    const clattn_problem *p = call->problem;
    const int64_t distance = j - i; /* compared with the offset, so that no sum overflows */
    if (i >= s->q_length || j >= s->kv_length)
        return false;
    if (p->causal && distance > s->offset)
        return false;
    if (call->window_left >= 0 && distance < s->offset - within(call->window_left, 0, FAR))
        return false;
    if (call->window_right >= 0 && distance > s->offset + within(call->window_right, 0, FAR))
        return false;
    if (p->mask.present && !mask_keeps(call, batch, head, i, j))
        return false;
    return !p->bias.present || bias_keeps(call, batch, head, i, j);
}

static double scale_of(const struct oracle_call *call)
{
    return isnan(call->scale) ? 1.0 / sqrt((double)call->problem->head_dim_qk) : (double)call->scale;
}

static double held(double score)
{
    if (score > LARGEST_SCORE)
        return LARGEST_SCORE;
    return score < -LARGEST_SCORE ? -LARGEST_SCORE : score; /* a NaN stays one */
}

/* What is multiplied with the distance between query and key, and that distance. */
static float slope_of(const struct oracle *oracle)
{
    const clattn_problem *p = oracle->call.problem;
    return oracle->call.alibi[oracle->batch * p->alibi.strides.batch + oracle->head * p->alibi.strides.head];
}

static double distance_of(const struct oracle *oracle, int64_t j)
{
    return fabs((double)(oracle->row + oracle->sequence.offset - j));
}

static double factor_of(const struct oracle *oracle)
{
    return oracle->call.problem->bias.factors ? (double)oracle->call.bias_factors[oracle->head] : 1.0;
}

/* The score of a key, up to a stage. Every rule that changes a score belongs here, and below. */
static double score(const struct oracle *oracle, int64_t j, clattn_scores_kind stage)
{
    const clattn_problem *p = oracle->call.problem;
    const float *key = oracle->k + j * p->head_dim_qk;
    double s = 0.0;
    for (int64_t d = 0; d < p->head_dim_qk; d++)
        s += (double)oracle->q[d] * (double)key[d];
    s = held(scale_of(&oracle->call) * s);
    if (p->softcap != 0.0f && stage >= CLATTN_SCORES_SOFTCAP)
        s = (double)p->softcap * tanh(s / (double)p->softcap);
    if (stage < CLATTN_SCORES_BIAS)
        return s;
    if (p->bias.present)
        s += held(factor_of(oracle) * (double)bias_at(&oracle->call, oracle->batch, oracle->head, oracle->row, j));
    if (p->alibi.present)
        s -= (double)slope_of(oracle) * distance_of(oracle, j);
    return held(s);
}

static float held_plain(float score, bool base_two)
{
    return base_two ? (score > FLT_MAX ? FLT_MAX : score < -FLT_MAX ? -FLT_MAX : score) : (float)held((double)score);
}

/* What tanh may give of the right value: 5 units in the last place less (OpenCL C 1.2, section 7.4), the way of cut sums. */
#define TANH_IS (1.0f - 5.0f * 0x1p-23f)

/* The float next to x towards zero. */
static float cut(double x)
{
    const float near = (float)x;
    return fabs((double)near) > fabs(x) ? nextafterf(near, 0.0f) : near;
}

/* A product of rows: as a matrix unit sums it, exact products 16 at a time, and each sum cut. */
static float cut_product(const float *x, const float *y, int64_t count)
{
    float sum = 0.0f;
    for (int64_t first = 0; first < count; first += 16) {
        double part = (double)sum;
        for (int64_t d = first; d < count && d < first + 16; d++)
            part += (double)x[d] * (double)y[d];
        sum = cut(part);
    }
    return sum;
}

/* The same in fp32. In base two, as in the fused engines, every factor includes log2 e, and products are summed from the last
 * to the first. */
static float plain_score(const struct oracle *oracle, int64_t j, clattn_scores_kind stage, int form)
{
    const bool base_two = form == ORACLE_PLAIN_BASE_TWO;
    const clattn_problem *p = oracle->call.problem;
    const float *key = oracle->k + j * p->head_dim_qk;
    const int64_t dim = p->head_dim_qk;
    const float unit = base_two ? LOG2_E : 1.0f, scale = (float)scale_of(&oracle->call);
    float s = form == ORACLE_PLAIN_CUT ? cut_product(oracle->q, key, dim) : 0.0f;
    for (int64_t d = 0; form != ORACLE_PLAIN_CUT && d < dim; d++)
        s += base_two ? oracle->q[dim - 1 - d] * key[dim - 1 - d] : oracle->q[d] * key[d];
    if (p->softcap != 0.0f && stage >= CLATTN_SCORES_SOFTCAP)
        s = p->softcap * unit * tanhf(held_plain(scale * s, false) / p->softcap) * (form == ORACLE_PLAIN_CUT ? TANH_IS : 1.0f);
    else
        s = held_plain(scale * unit * s, base_two);
    if (stage < CLATTN_SCORES_BIAS)
        return s;
    if (p->bias.present) {
        const float bias = bias_at(&oracle->call, oracle->batch, oracle->head, oracle->row, j);
        s += held_plain((float)factor_of(oracle) * unit * bias, base_two);
    }
    if (p->alibi.present)
        s -= slope_of(oracle) * unit * (float)distance_of(oracle, j);
    return held_plain(s, base_two);
}

/* A row past the queries of its sequence has none. */
static bool has_sink(const struct oracle *oracle)
{
    return oracle->call.problem->sinks && oracle->row < oracle->sequence.q_length &&
           oracle->call.sinks[oracle->head] != -INFINITY;
}

/* ---------------------------------------------------------------------------------------------------------------- rows */

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
    oracle->seen = malloc(keys * sizeof *oracle->seen);
    oracle->weights = malloc(keys * sizeof *oracle->weights);
    oracle->plain_weights = malloc(keys * sizeof *oracle->plain_weights);
    if (oracle->k && oracle->v && oracle->q && oracle->seen && oracle->weights && oracle->plain_weights)
        return true;
    oracle_end(oracle);
    return false;
}

void oracle_end(struct oracle *oracle)
{
    free(oracle->k);
    free(oracle->v);
    free(oracle->q);
    free(oracle->seen);
    free(oracle->weights);
    free(oracle->plain_weights);
}

/* Rows of one head of a tensor to float. */
static void decode(const clattn_tensor *t, const void *data, int64_t batch, int64_t head, int64_t first, int64_t rows,
                   int64_t dim, float *out)
{
    for (int64_t s = 0; s < rows; s++) {
        const int64_t at = batch * t->strides.batch + head * t->strides.head + (first + s) * t->strides.row;
        for (int64_t d = 0; d < dim; d++)
            out[s * dim + d] = storage_get(t->type, data, at + d * t->strides.column);
    }
}

/* Query heads share key/value heads in runs: head h reads h / (heads_q / heads_kv). */
static void select_row(struct oracle *oracle, int64_t batch, int64_t head, int64_t row)
{
    const struct oracle_call *call = &oracle->call;
    const clattn_problem *p = call->problem;
    const int64_t kv_head = head / (p->heads_q / p->heads_kv), first = p->packed.starts ? 0 : batch;
    struct oracle_sequence *s = &oracle->sequence;
    if (batch != oracle->batch)
        oracle_sequence_find(call, batch, s);
    if (batch != oracle->batch || kv_head != oracle->kv_head) {
        decode(&p->k, call->k, first, kv_head, s->kv_start, s->kv_rows, p->head_dim_qk, oracle->k);
        decode(&p->v, call->v, first, kv_head, s->kv_start, s->kv_rows, p->head_dim_v, oracle->v);
    }
    oracle->batch = batch;
    oracle->kv_head = kv_head;
    oracle->head = head;
    oracle->row = row;
    decode(&p->q, call->q, first, head, s->q_start + row, row < s->q_rows ? 1 : 0, p->head_dim_qk, oracle->q);
    for (int64_t j = 0; j < call->seq_kv; j++)
        oracle->seen[j] = oracle_sees(call, s, batch, head, row, j);
}

void oracle_row(struct oracle *oracle, int64_t batch, int64_t head, int64_t row, double *o, double *lse, double *weights)
{
    const int64_t keys = oracle->call.seq_kv, dim = oracle->call.problem->head_dim_v;
    const bool *seen = oracle->seen;
    double *p = oracle->weights;
    double largest = -INFINITY, sum = 0.0;
    bool empty = true;
    select_row(oracle, batch, head, row);
    const double sink = has_sink(oracle) ? (double)oracle->call.sinks[head] : -INFINITY;
    for (int64_t j = 0; j < keys; j++) {
        if (seen[j]) {
            empty = false;
            p[j] = score(oracle, j, CLATTN_SCORES_BIAS);
            largest = p[j] > largest ? p[j] : largest;
        }
    }
    largest = sink > largest ? sink : largest;
    sum = !has_sink(oracle) ? 0.0 : sink == largest ? 1.0 : exp(sink - largest); /* NaN of a NaN */
    for (int64_t e = 0; e < dim; e++)
        o[e] = 0.0;
    for (int64_t j = 0; j < keys; j++) {
        p[j] = seen[j] ? exp(p[j] - largest) : 0.0;
        sum += p[j];
        for (int64_t e = 0; seen[j] && e < dim; e++)
            o[e] += p[j] * (double)oracle->v[j * dim + e];
    }
    for (int64_t e = 0; !empty && e < dim; e++)
        o[e] /= sum;
    *lse = sum == 0.0 ? -INFINITY : largest + log(sum);
    for (int64_t j = 0; weights && j < keys; j++)
        weights[j] = empty ? 0.0 : p[j] / sum;
}

/* In natural units. Returns what is to be multiplied with O and the weights. */
static float join_sink(float sink, float *top, float *sum)
{
    const float over = sink - *top, lesser = expf(-fabsf(over));
    if (over > 0.0f) {
        *sum = *sum * lesser + 1.0f;
        *top = sink;
        return lesser;
    }
    *sum += lesser; /* NaN of a NaN */
    return 1.0f;
}

static void plain_row(struct oracle *oracle, bool round_weights, int form, float *o, float *lse)
{
    const bool base_two = form == ORACLE_PLAIN_BASE_TWO;
    const clattn_problem *problem = oracle->call.problem;
    const int64_t keys = oracle->call.seq_kv, dim = problem->head_dim_v;
    const bool *seen = oracle->seen;
    float *p = oracle->plain_weights;
    float largest = -INFINITY, sum = 0.0f;
    bool empty = true;
    for (int64_t j = 0; j < keys; j++) {
        if (seen[j]) {
            empty = false;
            p[j] = plain_score(oracle, j, CLATTN_SCORES_BIAS, form);
            largest = p[j] > largest ? p[j] : largest;
        }
    }
    for (int64_t e = 0; e < dim; e++)
        o[e] = 0.0f;
    for (int64_t j = 0; j < keys; j++) {
        const float weight = !seen[j] ? 0.0f : base_two ? exp2f(p[j] - largest) : expf(p[j] - largest);
        const float factor = round_weights ? storage_round(problem->v.type, weight) : weight;
        p[j] = weight;
        sum += weight;
        for (int64_t e = 0; seen[j] && e < dim; e++)
            o[e] += factor * oracle->v[j * dim + e];
    }
    float top = base_two ? largest * LN_2 : largest;
    const float scale = has_sink(oracle) ? join_sink(oracle->call.sinks[oracle->head], &top, &sum) : 1.0f;
    for (int64_t e = 0; e < dim; e++)
        o[e] = empty ? 0.0f : storage_round(problem->o.type, o[e] * scale / sum);
    for (int64_t j = 0; j < keys; j++)
        p[j] = empty ? 0.0f : p[j] * scale / sum;
    *lse = sum == 0.0f ? -INFINITY : top + (base_two ? log2f(sum) * LN_2 : logf(sum));
}

void oracle_plain_row(struct oracle *oracle, int64_t batch, int64_t head, int64_t row, bool round_weights,
                      struct oracle_plain *plain)
{
    select_row(oracle, batch, head, row);
    for (int form = 0; form < ORACLE_PLAIN_FORMS; form++) {
        plain_row(oracle, round_weights, !round_weights && form == ORACLE_PLAIN_CUT ? ORACLE_PLAIN_NATURAL : form,
                  plain->o[form], &plain->lse[form]);
        if (plain->weights[form])
            memcpy(plain->weights[form], oracle->plain_weights, (size_t)oracle->call.seq_kv * sizeof(float));
    }
}

void oracle_scores(struct oracle *oracle, int64_t batch, int64_t head, int64_t row, clattn_scores_kind kind, double *scores,
                   float *plain)
{
    select_row(oracle, batch, head, row);
    for (int64_t j = 0; j < oracle->call.seq_kv; j++) {
        /* Past the rows of a packed sequence there is nothing to multiply. */
        const bool there = row < oracle->sequence.q_rows && j < oracle->sequence.kv_rows;
        const bool shown = there && (kind < CLATTN_SCORES_BIAS || oracle->seen[j]);
        scores[j] = shown ? score(oracle, j, kind) : -INFINITY;
        plain[j] = shown ? plain_score(oracle, j, kind, ORACLE_PLAIN_NATURAL) : -INFINITY;
    }
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
