/* SPDX-License-Identifier: Apache-2.0
 * The verdict on a trial's outputs: what had to be written was written, nothing else was, and the numbers are as near to the
 * double ones as docs/semantics.md asks. */
#include "half.h"
#include "oracle.h"
#include "random.h"
#include "trial.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_EFFORT 6000000 /* multiply-adds: some 20 ms on the host */

struct judge {
    const struct trial *trial;
    const struct trial_data *data;
    struct trial_result *result;
    struct oracle oracle;
    double *o, *weights;
    float *plain, *plain_scores;
    double largest_v, largest_lse;
    double plain_error, plain_lse_error;       /* of the plain loop, largest */
    double plain_score_error;                  /* against the size of the score, or 1 */
    double square, error_square, plain_square; /* sums over all elements */
    double worst_excess;
    struct {
        int64_t b, h, i, e;
        double got, want;
    } worst, worst_lse, worst_weight;
};

static void blame(struct trial_result *result, const char *format, ...)
{
    va_list arguments;
    if (!result->ok)
        return; /* the first reason is the one to read */
    result->ok = false;
    va_start(arguments, format);
    vsnprintf(result->message, sizeof result->message, format, arguments);
    va_end(arguments);
}

/* ----------------------------------------------------------------------------------------------- what was written and what not
 */

/* Which rows of an output are to be written: all, or those of packed sequences up to the longest length. NULL: out of memory.
 */
static bool *rows_due(const struct trial *trial, const struct oracle_call *call, int64_t rows)
{
    const bool packed = trial->problem.packed.starts != CLATTN_NO_INTEGERS;
    bool *due = malloc((size_t)(rows + 1) * sizeof *due);
    for (int64_t s = 0; due && s < rows; s++)
        due[s] = !packed;
    for (int64_t b = 0; due && packed && b < call->batch; b++) {
        struct oracle_sequence sequence;
        oracle_sequence_find(call, b, &sequence);
        for (int64_t i = 0; i < sequence.q_rows; i++)
            due[sequence.q_start + i] = true;
    }
    return due;
}

/* A byte an element: 1 where it belongs to the tensor and is due. */
static uint8_t *covered_elements(const struct trial_tensor *t, const bool *due)
{
    uint8_t *covered = calloc((size_t)t->count, 1);
    for (int64_t b = 0; covered && b < t->size[0]; b++)
        for (int64_t h = 0; h < t->size[1]; h++)
            for (int64_t s = 0; s < t->size[2]; s++)
                for (int64_t d = 0; d < t->size[3]; d++)
                    covered[t->origin + b * t->stride[0] + h * t->stride[1] + s * t->stride[2] + d * t->stride[3]] = due[s];
    return covered;
}

static void judge_missing(const struct trial_tensor *t, const bool *due, const char *name, struct trial_result *result)
{
    for (int64_t b = 0; b < t->size[0]; b++) {
        for (int64_t h = 0; h < t->size[1]; h++) {
            for (int64_t s = 0; s < t->size[2]; s++) {
                for (int64_t d = 0; due[s] && d < t->size[3]; d++) {
                    const int64_t at = t->origin + b * t->stride[0] + h * t->stride[1] + s * t->stride[2] + d * t->stride[3];
                    if (storage_is_poison(t->type, t->data, at)) {
                        blame(result, "%s[b=%" PRId64 " h=%" PRId64 " i=%" PRId64 " d=%" PRId64 "] was never written", name, b,
                              h, s, d);
                        return;
                    }
                }
            }
        }
    }
}

static void judge_written(const struct trial_tensor *t, const bool *due, const char *name, struct trial_result *result)
{
    if (t->count == 0)
        return;
    judge_missing(t, due, name, result);
    uint8_t *covered = covered_elements(t, due);
    if (!covered) {
        blame(result, "the host is out of memory");
        return;
    }
    for (int64_t at = 0; at < t->count; at++) {
        if (!covered[at] && !storage_is_poison(t->type, t->data, at)) {
            blame(result, "%s: an element outside of the tensor was written, %" PRId64 " elements from (0, 0, 0, 0)", name,
                  at - t->origin);
            break;
        }
    }
    free(covered);
}

static void judge_all_written(const struct trial *trial, const struct trial_data *data, const struct oracle_call *call,
                              struct trial_result *result)
{
    const int64_t rows = data->o.size[2] > data->scores.size[2] ? data->o.size[2] : data->scores.size[2];
    bool *due = rows_due(trial, call, rows);
    if (!due) {
        blame(result, "the host is out of memory");
        return;
    }
    judge_written(&data->o, due, "o", result);
    judge_written(&data->lse, due, "lse", result);
    for (int64_t s = 0; s < data->scores.size[2]; s++) /* numbered within each sequence, packed or not */
        due[s] = true;
    judge_written(&data->scores, due, "scores", result);
    free(due);
}

/* ------------------------------------------------------------------------------------------------------------- numbers */

static double difference(double got, double want)
{
    if (isnan(got) && isnan(want))
        return 0.0;
    if (got == want) /* infinities of one sign too */
        return 0.0;
    return isnan(got) || isnan(want) ? INFINITY : fabs(got - want);
}

static double largest_value(const struct trial_tensor *t)
{
    double largest = 0.0;
    if (t->count == 0)
        return 0.0;
    for (int64_t b = 0; b < t->size[0]; b++)
        for (int64_t h = 0; h < t->size[1]; h++)
            for (int64_t s = 0; s < t->size[2]; s++)
                for (int64_t d = 0; d < t->size[3]; d++) {
                    const double x = fabs((double)trial_get(t, b, h, s, d));
                    largest = isfinite(x) && x > largest ? x : largest;
                }
    return largest;
}

/* Where the outputs of a row stand. */
static void place_of(const struct judge *j, int64_t b, int64_t i, int64_t *batch, int64_t *row)
{
    const bool packed = j->trial->problem.packed.starts != CLATTN_NO_INTEGERS;
    *batch = packed ? 0 : b;
    *row = packed ? j->oracle.sequence.q_start + i : i;
}

static void judge_outputs(struct judge *j, int64_t b, int64_t h, int64_t i)
{
    const int64_t dim = j->trial->problem.head_dim_v;
    struct trial_result *r = j->result;
    int64_t batch, row;
    place_of(j, b, i, &batch, &row);
    for (int64_t e = 0; e < dim; e++) {
        const double want = j->o[e], got = (double)trial_get(&j->data->o, batch, h, row, e);
        const double error = difference(got, want), plain = difference((double)j->plain[e], want);
        if (error > r->max_error || r->rows_checked == 0) {
            j->worst.b = b, j->worst.h = h, j->worst.i = i, j->worst.e = e;
            j->worst.got = got, j->worst.want = want;
        }
        r->max_error = error > r->max_error ? error : r->max_error;
        if (isfinite(plain)) {
            j->plain_error = plain > j->plain_error ? plain : j->plain_error;
            j->plain_square += plain * plain;
        }
        j->error_square += error * error;
        j->square += isfinite(want) ? want * want : 0.0;
    }
}

static void judge_lse(struct judge *j, int64_t b, int64_t h, int64_t i, double want, double plain)
{
    struct trial_result *r = j->result;
    int64_t batch, row;
    place_of(j, b, i, &batch, &row);
    const double got = (double)trial_get(&j->data->lse, batch, h, row, 0);
    const double error = difference(got, want), plain_error = difference(plain, want);
    if (error > r->lse_error) {
        j->worst_lse.b = b, j->worst_lse.h = h, j->worst_lse.i = i;
        j->worst_lse.got = got, j->worst_lse.want = want;
        r->lse_error = error;
    }
    if (isfinite(plain_error) && plain_error > j->plain_lse_error)
        j->plain_lse_error = plain_error;
}

/* A bias of -65504 or less on a whole row leaves few digits of the scores, in any fp32 arithmetic. Such rows are held against
 * the plain loop by themselves, so that they do not widen what the others are allowed. */
#define COARSE_LSE 4096.0

static bool is_coarse(const struct judge *j, double lse)
{
    return j->trial->problem.bias.present && isfinite(lse) && fabs(lse) > COARSE_LSE;
}

static void judge_coarse_row(struct judge *j, int64_t b, int64_t h, int64_t i, double lse, double plain_lse)
{
    int64_t batch, row;
    double plain = 0.0;
    place_of(j, b, i, &batch, &row);
    for (int64_t e = 0; e < j->trial->problem.head_dim_v; e++) {
        const double error = difference((double)j->plain[e], j->o[e]);
        plain = error > plain ? error : plain;
    }
    const double bound = 2.0 * plain + (0x1p-7 + 0x1p-22 * fabs(lse)) * j->largest_v;
    for (int64_t e = 0; e < j->trial->problem.head_dim_v; e++) {
        const double got = (double)trial_get(&j->data->o, batch, h, row, e), error = difference(got, j->o[e]);
        if (!(error <= bound))
            blame(j->result,
                  "o[b=%" PRId64 " h=%" PRId64 " i=%" PRId64 " d=%" PRId64 "] is %.9g, expected %.9g: error %.3g, allowed %.3g",
                  b, h, i, e, got, j->o[e], error, bound);
    }
    if (j->data->lse.count > 0) {
        const double got = (double)trial_get(&j->data->lse, batch, h, row, 0), error = difference(got, lse);
        if (!(error <= 2.0 * difference(plain_lse, lse) + 1e-6 * fabs(lse)))
            blame(j->result, "lse[b=%" PRId64 " h=%" PRId64 " i=%" PRId64 "] is %.9g, expected %.9g", b, h, i, got, lse);
    }
}

/* Scores of any stage. Those before softmax may be of any size, and their errors count against it. */
static void judge_scores(struct judge *j, int64_t b, int64_t h, int64_t i, double lse)
{
    const clattn_problem *p = &j->trial->problem;
    const int64_t place = h - p->scores.first_head;
    /* Weights of a row whose scores are all that large are as coarse as these. */
    const bool coarse = p->scores.kind == CLATTN_SCORES_SOFTMAX && is_coarse(j, lse);
    const double forgiven = coarse ? 0x1p-22 * fabs(lse) : 0.0;
    if (place < 0 || place >= j->data->scores.size[1])
        return;
    if (p->scores.kind != CLATTN_SCORES_SOFTMAX)
        oracle_scores(&j->oracle, b, h, i, p->scores.kind, j->weights, j->plain_scores);
    for (int64_t key = 0; key < j->trial->seq_kv; key++) {
        const double got = (double)trial_get(&j->data->scores, b, place, i, key), want = j->weights[key];
        const double size = isfinite(want) && fabs(want) > 1.0 ? fabs(want) : 1.0;
        const double error = difference(got, want) / size - forgiven;
        if (error > j->result->weights_error) {
            j->worst_weight.b = b, j->worst_weight.h = h, j->worst_weight.i = i, j->worst_weight.e = key;
            j->worst_weight.got = got, j->worst_weight.want = want;
            j->result->weights_error = error;
        }
        if (p->scores.kind != CLATTN_SCORES_SOFTMAX) {
            const double plain = difference((double)j->plain_scores[key], want) / size;
            j->plain_score_error = isfinite(plain) && plain > j->plain_score_error ? plain : j->plain_score_error;
        }
    }
}

static void judge_row(struct judge *j, int64_t b, int64_t h, int64_t i)
{
    double lse;
    float plain_lse;
    oracle_row(&j->oracle, b, h, i, j->o, &lse, j->weights);
    oracle_plain_row(&j->oracle, b, h, i, j->trial->round_weights, j->plain, &plain_lse);
    if (j->data->scores.count > 0)
        judge_scores(j, b, h, i, lse);
    if (j->trial->problem.packed.starts && i >= j->oracle.sequence.q_rows) {
        j->result->rows_checked++; /* it has scores and no output */
        return;
    }
    if (is_coarse(j, lse)) {
        judge_coarse_row(j, b, h, i, lse, (double)plain_lse);
        j->result->rows_checked++;
        return;
    }
    judge_outputs(j, b, h, i);
    if (isfinite(lse) && fabs(lse) > j->largest_lse)
        j->largest_lse = fabs(lse);
    if (j->data->lse.count > 0)
        judge_lse(j, b, h, i, lse, (double)plain_lse);
    j->result->rows_checked++;
}

/* All rows, or a seeded sample that holds the first and the last. */
static void judge_rows(struct judge *j)
{
    const struct trial *t = j->trial;
    const clattn_problem *p = &t->problem;
    const int64_t cost = (t->seq_kv + 1) * (p->head_dim_qk + p->head_dim_v) * 2;
    const int64_t effort = t->effort > 0 ? t->effort : DEFAULT_EFFORT;
    const uint64_t rows = (uint64_t)(t->batch * p->heads_q * t->seq_q);
    const uint64_t limit = (uint64_t)(effort / cost > 16 ? effort / cost : 16);
    const bool packed = p->packed.starts != CLATTN_NO_INTEGERS;
    uint64_t row = 0;
    for (int64_t b = 0; b < t->batch; b++) {
        struct oracle_sequence s;
        oracle_sequence_find(&j->oracle.call, b, &s);
        for (int64_t h = 0; h < p->heads_q; h++) {
            for (int64_t i = 0; i < t->seq_q; i++, row++) {
                if (packed && i >= s.q_rows && j->data->scores.count == 0)
                    continue;
                if (rows <= limit || row == 0 || row + 1 == rows || random_mix(t->seed ^ row << 8) % rows < limit)
                    judge_row(j, b, h, i);
            }
        }
    }
}

/* Past some 32, the rounding of the scores themselves to fp32 moves weights by more than all else; the plain loop meets that
 * too, but in few rows it may be lucky. */
static double large_scores(const struct judge *j)
{
    return j->largest_lse > 32.0 ? 0x1p-24 * (j->largest_lse - 32.0) * j->largest_v : 0.0;
}

/* Where the bounds come from: twice the plain loop's own error plus what rounding to the storage type may add. */
static void set_bounds(struct judge *j)
{
    static const double epsilons[] = {0.0, 1e-6, 0x1p-11, 0x1p-8}, relatives[] = {0.0, 1e-5, 1e-3, 8e-3};
    const clattn_problem *p = &j->trial->problem;
    const clattn_type type = j->trial->round_weights && p->v.type > p->o.type ? p->v.type : p->o.type;
    struct trial_result *r = j->result;
    double unit = j->largest_v;
    if (type == CLATTN_FP32 && unit < 1.0)
        unit = 1.0;
    r->bound = 2.0 * j->plain_error + epsilons[type] * unit + large_scores(j);
    if (j->trial->inputs == TRIAL_ONES && !j->trial->round_weights) /* 1 in every type: only the fp32 sums may round */
        r->bound = 0x1p-23 * (4.0 + sqrt((double)j->trial->seq_kv)) + 2.0 * j->plain_error;
    r->rel_error = j->square > 0.0 ? sqrt(j->error_square / j->square) : j->error_square > 0.0 ? INFINITY : 0.0;
    r->rel_bound = relatives[type];
    if (j->square > 0.0) { /* where numbers cancel, fp32 sums as such, and the plain loop, may be further off than that */
        const double size = sqrt(j->square), plain = 2.0 * sqrt(j->plain_square) / size;
        r->rel_bound = plain > r->rel_bound ? plain : r->rel_bound;
        r->rel_bound += (0x1p-23 * j->largest_v + large_scores(j)) * sqrt((double)(r->rows_checked * p->head_dim_v)) / size;
    }
    r->lse_bound = 2.0 * j->plain_lse_error + 1e-6 * (j->largest_lse > 1.0 ? j->largest_lse : 1.0);
    r->weights_bound =
        p->scores.kind == CLATTN_SCORES_SOFTMAX ? 1e-6 + 4e-7 * j->largest_lse : 1e-6 + 2.0 * j->plain_score_error;
}

static void judge_numbers(struct judge *j)
{
    struct trial_result *r = j->result;
    judge_rows(j);
    set_bounds(j);
    if (!(r->max_error <= r->bound))
        blame(r, "o[b=%" PRId64 " h=%" PRId64 " i=%" PRId64 " d=%" PRId64 "] is %.9g, expected %.9g: error %.3g, allowed %.3g",
              j->worst.b, j->worst.h, j->worst.i, j->worst.e, j->worst.got, j->worst.want, r->max_error, r->bound);
    if (!(r->rel_error <= r->rel_bound))
        blame(r,
              "|out - ref| / |ref| is %.3g, allowed %.3g; worst at o[b=%" PRId64 " h=%" PRId64 " i=%" PRId64 " d=%" PRId64
              "]: %.9g for %.9g",
              r->rel_error, r->rel_bound, j->worst.b, j->worst.h, j->worst.i, j->worst.e, j->worst.got, j->worst.want);
    if (!(r->lse_error <= r->lse_bound))
        blame(r, "lse[b=%" PRId64 " h=%" PRId64 " i=%" PRId64 "] is %.9g, expected %.9g: error %.3g, allowed %.3g",
              j->worst_lse.b, j->worst_lse.h, j->worst_lse.i, j->worst_lse.got, j->worst_lse.want, r->lse_error, r->lse_bound);
    if (!(r->weights_error <= r->weights_bound))
        blame(r,
              "scores[b=%" PRId64 " h=%" PRId64 " i=%" PRId64 " j=%" PRId64
              "] is %.9g, expected %.9g: error %.3g, allowed %.3g",
              j->worst_weight.b, j->worst_weight.h, j->worst_weight.i, j->worst_weight.e, j->worst_weight.got,
              j->worst_weight.want, r->weights_error, r->weights_bound);
}

void trial_judge(const struct trial *trial, const struct trial_data *data, struct trial_result *result)
{
    const clattn_problem *p = &trial->problem;
    struct oracle_call call;
    struct judge j = {.trial = trial, .data = data, .result = result};
    trial_oracle_call(trial, data, &call);
    result->ok = true;
    if (data->o.count == 0)
        return;
    judge_all_written(trial, data, &call, result);
    j.largest_v = largest_value(&data->v);
    j.o = malloc((size_t)p->head_dim_v * sizeof *j.o);
    j.plain = malloc((size_t)p->head_dim_v * sizeof *j.plain);
    j.weights = malloc((size_t)(trial->seq_kv + 1) * sizeof *j.weights);
    j.plain_scores = malloc((size_t)(trial->seq_kv + 1) * sizeof *j.plain_scores);
    if (j.o && j.plain && j.weights && j.plain_scores && oracle_begin(&j.oracle, &call)) {
        judge_numbers(&j);
        oracle_end(&j.oracle);
    } else {
        blame(result, "the host is out of memory");
    }
    free(j.o);
    free(j.plain);
    free(j.weights);
    free(j.plain_scores);
}
