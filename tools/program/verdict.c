/* SPDX-License-Identifier: Apache-2.0 */
#include "verdict.h"

#include "cli.h"
#include "trial.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Multiply-adds that the double loops may spend: a few seconds. What is larger is checked on a sample of rows. */
enum { EFFORT = 500000000 };

static struct trial_tensor view(const clattn_tensor *t, int64_t batch, int64_t heads, int64_t seq, int64_t dim, void *data)
{
    struct trial_tensor tensor = {.type = t->type,
                                  .size = {batch, heads, seq, dim},
                                  .stride = {t->strides.batch, t->strides.head, t->strides.row, t->strides.column},
                                  .origin = 0,
                                  .count = batch * heads * seq * dim,
                                  .data = data};
    return tensor;
}

static void print_result(const struct trial *trial, const struct trial_result *r, bool has_lse)
{
    const int64_t rows = trial->batch * trial->problem.heads_q * trial->seq_q;
    printf("check      %s: largest error %.2e (allowed %.2e), relative %.2e (allowed %.2e)", r->ok ? "right" : "WRONG",
           r->max_error, r->bound, r->rel_error, r->rel_bound);
    if (has_lse)
        printf(", lse %.2e (allowed %.2e)", r->lse_error, r->lse_bound);
    if (r->rows_checked < rows)
        printf("; %" PRId64 " of %" PRId64 " rows", r->rows_checked, rows);
    printf("\n");
}

int verdict_print(const char *command, const char *engine, const clattn_problem *p, const struct trial_data *options,
                  void *const inputs[3], void *o, float *lse, float *scores)
{
    struct trial trial;
    struct trial_data data;
    struct trial_result result;
    const bool packed = p->packed.starts != CLATTN_NO_INTEGERS;
    const int64_t batch = packed ? 1 : p->batch, q_rows = packed ? p->packed.total_q : p->seq_q,
                  kv_rows = packed ? p->packed.total_kv : p->seq_kv;
    const clattn_tensor lse_tensor = {CLATTN_FP32, {p->lse.strides.batch, p->lse.strides.head, p->lse.strides.row, 1}};
    const clattn_tensor scores_tensor = {CLATTN_FP32, p->scores.strides};
    memset(&data, 0, sizeof data);
    if (options)
        data = *options;
    memset(&result, 0, sizeof result);
    trial_init(&trial, p);
    trial.effort = EFFORT;
    data.q = view(&p->q, batch, p->heads_q, q_rows, p->head_dim_qk, inputs[0]);
    data.k = view(&p->k, batch, p->heads_kv, kv_rows, p->head_dim_qk, inputs[1]);
    data.v = view(&p->v, batch, p->heads_kv, kv_rows, p->head_dim_v, inputs[2]);
    data.o = view(&p->o, batch, p->heads_q, q_rows, p->head_dim_v, o);
    if (lse != NULL)
        data.lse = view(&lse_tensor, batch, p->heads_q, q_rows, 1, lse);
    if (scores != NULL)
        data.scores = view(&scores_tensor, p->batch, p->heads_q, p->seq_q, p->seq_kv, scores);
    trial_judge_engine(&trial, engine, &data, &result);
    print_result(&trial, &result, lse != NULL);
    return result.ok ? CLI_OK : cli_fail(command, CLI_CHECK_FAILED, "--check", "%s", result.message);
}
