/* SPDX-License-Identifier: Apache-2.0
 * The verdict on a trial's outputs: everything due was written, nothing else was, and the numbers are as near to the double
 * ones as docs/semantics.md requires. */
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

struct place {
    int64_t b, h, i, e;
    double got, want;
};

/* Rows that are judged together: the plain loop's largest error counts for all of them. Scores that leave fp32 few digits make
 * it large, and must not widen what other rows are allowed. */
struct lot {
    double error, plain_error;                 /* largest of O */
    double lse_error, plain_lse_error;         /* against the size of the LSE, or 1 */
    double weights_error, plain_weights_error; /* of weights; of scores against their size, or 1 */
    double square, error_square, plain_square; /* sums over all elements */
    int64_t rows;
    struct place worst, worst_lse, worst_weight;
};
#define LARGE_LSE 4096.0
enum { ORDINARY, LARGE, LOTS };

struct judge {
    const struct trial *trial;
    const struct trial_data *data;
    struct trial_result *result;
    struct oracle oracle;
    double *o, *weights;
    struct oracle_plain plain;
    float *plain_scores;
    double largest_v;
    struct lot lots[LOTS];
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

/* Where the outputs of a row lie. */
static void place_of(const struct judge *j, int64_t b, int64_t i, int64_t *batch, int64_t *row)
{
    const bool packed = j->trial->problem.packed.starts != CLATTN_NO_INTEGERS;
    *batch = packed ? 0 : b;
    *row = packed ? j->oracle.sequence.q_start + i : i;
}

static double larger_of(double a, double b) { return b > a ? b : a; }

/* Only finite values tell the error of fp32. */
static void note_plain(double *largest, double error) { *largest = isfinite(error) ? larger_of(*largest, error) : *largest; }

static void judge_outputs(struct judge *j, struct lot *lot, int64_t b, int64_t h, int64_t i)
{
    int64_t batch, row;
    place_of(j, b, i, &batch, &row);
    for (int64_t e = 0; e < j->trial->problem.head_dim_v; e++) {
        const double want = j->o[e], got = (double)trial_get(&j->data->o, batch, h, row, e);
        const double error = difference(got, want);
        double plain = 0.0;
        if (error > lot->error || lot->rows == 0)
            lot->worst = (struct place){b, h, i, e, got, want};
        lot->error = larger_of(lot->error, error);
        for (int form = 0; form < ORACLE_PLAIN_FORMS; form++)
            note_plain(&plain, difference((double)j->plain.o[form][e], want));
        note_plain(&lot->plain_error, plain);
        lot->plain_square += plain * plain;
        lot->error_square += error * error;
        lot->square += isfinite(want) ? want * want : 0.0;
    }
}

/* A size of its own for each number: an error of 1e-6 is one in a hundred and nothing in a million. */
static double size_of_number(double want) { return isfinite(want) && fabs(want) > 1.0 ? fabs(want) : 1.0; }

static void judge_lse(struct judge *j, struct lot *lot, int64_t b, int64_t h, int64_t i, double want)
{
    int64_t batch, row;
    place_of(j, b, i, &batch, &row);
    const double got = (double)trial_get(&j->data->lse, batch, h, row, 0), size = size_of_number(want);
    const double error = difference(got, want) / size;
    if (error > lot->lse_error)
        lot->worst_lse = (struct place){b, h, i, 0, got, want};
    lot->lse_error = larger_of(lot->lse_error, error);
    for (int form = 0; form < ORACLE_PLAIN_FORMS; form++)
        note_plain(&lot->plain_lse_error, difference((double)j->plain.lse[form], want) / size);
}

/* Scores of any stage. Those before softmax may be of any size, and their errors count against it. */
static void judge_scores(struct judge *j, struct lot *lot, int64_t b, int64_t h, int64_t i)
{
    const clattn_problem *p = &j->trial->problem;
    const int64_t place = h - p->scores.first_head;
    const bool softmax = p->scores.kind == CLATTN_SCORES_SOFTMAX;
    if (place < 0 || place >= j->data->scores.size[1])
        return;
    if (!softmax)
        oracle_scores(&j->oracle, b, h, i, p->scores.kind, j->weights, j->plain_scores);
    for (int64_t key = 0; key < j->trial->seq_kv; key++) {
        const double got = (double)trial_get(&j->data->scores, b, place, i, key), want = j->weights[key];
        const double size = size_of_number(want), error = difference(got, want) / size;
        if (error > lot->weights_error)
            lot->worst_weight = (struct place){b, h, i, key, got, want};
        lot->weights_error = larger_of(lot->weights_error, error);
        for (int form = 0; form < ORACLE_PLAIN_FORMS; form++) {
            const float *plain = softmax ? j->plain.weights[form] : j->plain_scores;
            note_plain(&lot->plain_weights_error, difference((double)plain[key], want) / size);
        }
    }
}

static void judge_row(struct judge *j, int64_t b, int64_t h, int64_t i)
{
    double lse;
    oracle_row(&j->oracle, b, h, i, j->o, &lse, j->weights);
    oracle_plain_row(&j->oracle, b, h, i, j->trial->round_weights, &j->plain);
    struct lot *lot = &j->lots[isfinite(lse) && fabs(lse) > LARGE_LSE ? LARGE : ORDINARY];
    if (j->data->scores.count > 0)
        judge_scores(j, lot, b, h, i);
    if (!j->trial->problem.packed.starts || i < j->oracle.sequence.q_rows) { /* past these are scores and no output */
        judge_outputs(j, lot, b, h, i);
        if (j->data->lse.count > 0)
            judge_lse(j, lot, b, h, i, lse);
        lot->rows++;
    }
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

/* What the rules of docs/semantics.md allow a lot: twice the plain loop's own error plus what rounding to the storage type may
 * add. */
struct bounds {
    double error, relative, lse, weights;
};
static struct bounds bounds_of(const struct judge *j, const struct lot *lot)
{
    static const double epsilons[] = {0.0, 1e-6, 0x1p-11, 0x1p-8}, relatives[] = {0.0, 1e-5, 1e-3, 8e-3};
    const clattn_problem *p = &j->trial->problem;
    const clattn_type type = j->trial->round_weights && p->v.type > p->o.type ? p->v.type : p->o.type;
    const double unit = type == CLATTN_FP32 ? larger_of(j->largest_v, 1.0) : j->largest_v, size = sqrt(lot->square);
    struct bounds bounds = {.error = 2.0 * lot->plain_error + epsilons[type] * unit,
                            .relative = relatives[type],
                            .lse = 2.0 * lot->plain_lse_error + 1e-6,
                            .weights = 2.0 * lot->plain_weights_error + 1e-6};
    if (j->trial->inputs == TRIAL_ONES && !j->trial->round_weights) /* 1 in every type: only the fp32 sums may round */
        bounds.error = 0x1p-23 * (4.0 + sqrt((double)j->trial->seq_kv)) + 2.0 * lot->plain_error;
    if (size > 0.0) { /* where numbers cancel, fp32 sums as such, and the plain loop, may be further off than that */
        bounds.relative = larger_of(bounds.relative, 2.0 * sqrt(lot->plain_square) / size);
        bounds.relative += 0x1p-23 * j->largest_v * sqrt((double)(lot->rows * p->head_dim_v)) / size;
    }
    return bounds;
}

/* Notes in the result the pair that came nearest to its bound. */
static void report(double error, double bound, double *worst, double *its_bound)
{
    if (*its_bound == 0.0 || !(error / bound <= *worst / *its_bound)) {
        *worst = error;
        *its_bound = bound;
    }
}

static void blame_place(struct trial_result *r, const char *what, char last, const struct place *at, double error, double bound)
{
    blame(r, "%s[b=%" PRId64 " h=%" PRId64 " i=%" PRId64 " %c=%" PRId64 "] is %.9g, expected %.9g: error %.3g, allowed %.3g",
          what, at->b, at->h, at->i, last, at->e, at->got, at->want, error, bound);
}

static void judge_lot(struct judge *j, const struct lot *lot)
{
    struct trial_result *r = j->result;
    const struct bounds bounds = bounds_of(j, lot);
    const double relative = lot->square > 0.0         ? sqrt(lot->error_square / lot->square)
                            : lot->error_square > 0.0 ? INFINITY
                                                      : 0.0;
    const struct place *lse = &lot->worst_lse;
    report(lot->error, bounds.error, &r->max_error, &r->bound);
    report(relative, bounds.relative, &r->rel_error, &r->rel_bound);
    report(lot->lse_error, bounds.lse, &r->lse_error, &r->lse_bound);
    report(lot->weights_error, bounds.weights, &r->weights_error, &r->weights_bound);
    if (!(lot->error <= bounds.error))
        blame_place(r, "o", 'd', &lot->worst, lot->error, bounds.error);
    if (!(relative <= bounds.relative))
        blame(r,
              "|out - ref| / |ref| is %.3g, allowed %.3g; worst at o[b=%" PRId64 " h=%" PRId64 " i=%" PRId64 " d=%" PRId64
              "]: %.9g for %.9g",
              relative, bounds.relative, lot->worst.b, lot->worst.h, lot->worst.i, lot->worst.e, lot->worst.got,
              lot->worst.want);
    if (!(lot->lse_error <= bounds.lse))
        blame(r, "lse[b=%" PRId64 " h=%" PRId64 " i=%" PRId64 "] is %.9g, expected %.9g: error %.3g of it, allowed %.3g",
              lse->b, lse->h, lse->i, lse->got, lse->want, lot->lse_error, bounds.lse);
    if (!(lot->weights_error <= bounds.weights))
        blame_place(r, "scores", 'j', &lot->worst_weight, lot->weights_error, bounds.weights);
}

static void judge_numbers(struct judge *j)
{
    judge_rows(j);
    for (int i = 0; i < LOTS; i++)
        if (j->lots[i].rows > 0 || j->lots[i].weights_error > 0.0)
            judge_lot(j, &j->lots[i]);
}

static bool judge_begin(struct judge *j, const struct oracle_call *call)
{
    const size_t dim = (size_t)j->trial->problem.head_dim_v, keys = (size_t)j->trial->seq_kv + 1;
    bool ok = true;
    j->largest_v = largest_value(&j->data->v);
    j->o = malloc(dim * sizeof *j->o);
    j->weights = malloc(keys * sizeof *j->weights);
    j->plain_scores = malloc(keys * sizeof *j->plain_scores);
    for (int form = 0; form < ORACLE_PLAIN_FORMS; form++) {
        j->plain.o[form] = malloc(dim * sizeof *j->plain.o[form]);
        j->plain.weights[form] = malloc(keys * sizeof *j->plain.weights[form]);
        ok = ok && j->plain.o[form] && j->plain.weights[form];
    }
    return ok && j->o && j->weights && j->plain_scores && oracle_begin(&j->oracle, call);
}

static void judge_end(struct judge *j)
{
    free(j->o);
    free(j->weights);
    free(j->plain_scores);
    for (int form = 0; form < ORACLE_PLAIN_FORMS; form++) {
        free(j->plain.o[form]);
        free(j->plain.weights[form]);
    }
}

void trial_judge(const struct trial *trial, const struct trial_data *data, struct trial_result *result)
{
    struct oracle_call call;
    struct judge j = {.trial = trial, .data = data, .result = result};
    trial_oracle_call(trial, data, &call);
    result->ok = true;
    if (data->o.count == 0)
        return;
    judge_all_written(trial, data, &call, result);
    if (judge_begin(&j, &call)) {
        judge_numbers(&j);
        oracle_end(&j.oracle);
    } else {
        blame(result, "the host is out of memory");
    }
    judge_end(&j);
}
