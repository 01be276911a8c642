/* SPDX-License-Identifier: Apache-2.0 */
#include "problem.h"

#include "arithmetic.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

void clattn_problem_init_sized(clattn_problem *problem, size_t size)
{
    clattn_problem fresh;
    if (!problem)
        return;
    memset(&fresh, 0, sizeof fresh);
    fresh.q.type = fresh.k.type = fresh.v.type = fresh.o.type = CLATTN_FP32;
    fresh.scale = NAN;
    fresh.window.left = fresh.window.right = -1;
    fresh.mask.columns = fresh.bias.columns = -1;
    fresh.bias.type = CLATTN_FP32;
    memset(problem, 0, size);
    memcpy(problem, &fresh, size < sizeof fresh ? size : sizeof fresh);
    problem->struct_size = size;
}

/* Packed tensors have no batch dimension. */
static bool is_packed(const clattn_problem *p) { return p->packed.starts != CLATTN_NO_INTEGERS; }

static void lay_out(clattn_tensor *tensor, clattn_layout layout, int64_t batch, int64_t heads, int64_t seq, int64_t dim)
{
    tensor->strides.column = 1;
    tensor->strides.row = layout == CLATTN_BHSD ? dim : cla_times(layout == CLATTN_BSHD ? heads : cla_times(batch, heads), dim);
    tensor->strides.head = layout == CLATTN_BHSD ? cla_times(seq, dim) : dim;
    tensor->strides.batch = cla_times(layout == CLATTN_SBHD ? heads : cla_times(heads, seq), dim);
}

int64_t cla_score_heads(const clattn_problem *p)
{
    /* Also called with unchecked numbers, whose product may wrap. */
    return p->scores.heads ? p->scores.heads : (int64_t)((uint64_t)p->heads_q - (uint64_t)p->scores.first_head);
}

/* The part of the caller's struct that both versions know; the other fields have their defaults. */
static size_t known_size(const clattn_problem *given)
{
    return given->struct_size < sizeof *given ? given->struct_size : sizeof *given;
}

void clattn_problem_set_layout(clattn_problem *problem, clattn_layout layout)
{
    clattn_problem full, *const p = &full;
    if (!problem || problem->struct_size < CLA_PROBLEM_LEAST_SIZE)
        return;
    clattn_problem_init(p);
    memcpy(p, problem, known_size(problem));
    const int64_t batch = cla_entries(p, p->batch), seq_q = cla_rows_q(p, p->seq_q), seq_kv = cla_rows_kv(p, p->seq_kv);
    lay_out(&p->q, layout, batch, p->heads_q, seq_q, p->head_dim_qk);
    lay_out(&p->k, layout, batch, p->heads_kv, seq_kv, p->head_dim_qk);
    lay_out(&p->v, layout, batch, p->heads_kv, seq_kv, p->head_dim_v);
    lay_out(&p->o, layout, batch, p->heads_q, seq_q, p->head_dim_v);
    p->lse.strides.row = 1;
    p->lse.strides.head = seq_q;
    p->lse.strides.batch = cla_times(p->heads_q, seq_q);
    /* Scores are numbered within each sequence, packed or not. */
    p->scores.strides.column = 1;
    p->scores.strides.row = p->seq_kv;
    p->scores.strides.head = cla_times(p->seq_q, p->seq_kv);
    p->scores.strides.batch = cla_times(cla_times(cla_score_heads(p), p->seq_q), p->seq_kv);
    memcpy(problem, p, known_size(problem));
}

const char *cla_type_name(clattn_type type)
{
    return type == CLATTN_FP32 ? "fp32" : type == CLATTN_FP16 ? "fp16" : type == CLATTN_BF16 ? "bf16" : "unknown";
}

const char *cla_corner_name(clattn_corner corner)
{
    return corner == CLATTN_TOP_LEFT ? "top-left" : corner == CLATTN_BOTTOM_RIGHT ? "bottom-right" : "explicit";
}

bool cla_problem_is_empty(int64_t batch, int64_t heads_q, int64_t seq_q) { return batch == 0 || heads_q == 0 || seq_q == 0; }

bool cla_tensor_extent(const int64_t sizes[4], const int64_t strides[4], int64_t *lowest, int64_t *highest)
{
    *lowest = *highest = 0;
    for (int i = 0; i < 4; i++) {
        if (sizes[i] == 0)
            return false;
        const int64_t reach = cla_times(sizes[i] - 1, strides[i]);
        *(reach < 0 ? lowest : highest) += reach;
    }
    return true;
}

int64_t cla_group_size(const clattn_problem *p) { return p->heads_kv > 0 && p->heads_q > 0 ? p->heads_q / p->heads_kv : 1; }

int64_t cla_entries(const clattn_problem *p, int64_t batch) { return is_packed(p) ? 1 : batch; }

int64_t cla_rows_q(const clattn_problem *p, int64_t seq_q) { return is_packed(p) ? p->packed.total_q : seq_q; }

int64_t cla_rows_kv(const clattn_problem *p, int64_t seq_kv) { return is_packed(p) ? p->packed.total_kv : seq_kv; }

bool cla_packs_no_row(const clattn_problem *p) { return is_packed(p) && p->packed.total_q == 0; }

static clattn_status check_size(const char *field, int64_t value, int64_t lowest, int64_t highest, clattn_error *error)
{
    if (value < lowest || value > highest)
        return cla_fail(error, CLATTN_INVALID_ARGUMENT, field, "%s is %" PRId64 ": it must lie in %" PRId64 " ... %" PRId64,
                        field, value, lowest, highest);
    return CLATTN_SUCCESS;
}

static clattn_status check_type(const char *field, clattn_type type, clattn_error *error)
{
    if (type != CLATTN_FP32 && type != CLATTN_FP16 && type != CLATTN_BF16)
        return cla_fail(error, CLATTN_INVALID_ARGUMENT, field, "%s is %d: it must be CLATTN_FP32, CLATTN_FP16 or CLATTN_BF16",
                        field, (int)type);
    return CLATTN_SUCCESS;
}

clattn_status cla_check_output_stride(const char *field, int64_t size, int64_t stride, clattn_error *error)
{
    if (size > 1 && stride == 0)
        return cla_fail(error, CLATTN_INVALID_ARGUMENT, field,
                        "%s is 0 while that dimension has %" PRId64
                        " elements: they would overwrite each other; set the strides "
                        "(clattn_problem_set_layout does, for contiguous tensors)",
                        field, size);
    return CLATTN_SUCCESS;
}

clattn_status cla_check_rows(const char *field, int64_t batch, int64_t heads, int64_t seq_q, clattn_error *error)
{
    if (cla_times(cla_times(batch, heads), seq_q) > CLA_MAX_ROWS)
        return cla_fail(error, CLATTN_INVALID_ARGUMENT, field,
                        "%s: batch (%" PRId64 ") x heads (%" PRId64 ") x seq_q (%" PRId64
                        ") is more than 2^50 rows; use smaller sizes",
                        field, batch, heads, seq_q);
    return CLATTN_SUCCESS;
}

static clattn_status check_sizes(const clattn_problem *p, clattn_error *error)
{
    TRY(check_size("problem.batch", p->batch, 0, INT32_MAX / 2, error));
    TRY(check_size("problem.heads_q", p->heads_q, 0, INT32_MAX / 2, error));
    TRY(check_size("problem.heads_kv", p->heads_kv, 0, INT32_MAX / 2, error));
    TRY(check_size("problem.seq_q", p->seq_q, 0, CLA_MAX_SEQ, error));
    TRY(check_size("problem.seq_kv", p->seq_kv, 0, CLA_MAX_SEQ, error));
    TRY(check_size("problem.head_dim_qk", p->head_dim_qk, 1, CLA_MAX_HEAD_DIM, error));
    TRY(check_size("problem.head_dim_v", p->head_dim_v, 1, CLA_MAX_HEAD_DIM, error));
    if (p->heads_q > 0 && p->heads_kv == 0)
        return cla_fail(error, CLATTN_INVALID_ARGUMENT, "problem.heads_kv", "problem.heads_kv is 0 while heads_q is %" PRId64,
                        p->heads_q);
    if (p->heads_q > 0 && p->heads_q % p->heads_kv != 0)
        return cla_fail(error, CLATTN_INVALID_ARGUMENT, "problem.heads_q",
                        "problem.heads_q (%" PRId64 ") must be a multiple of heads_kv (%" PRId64 ")", p->heads_q, p->heads_kv);
    return cla_check_rows("problem.batch", p->batch, p->heads_q, p->seq_q, error);
}

static clattn_status check_outputs(const clattn_problem *p, clattn_error *error)
{
    /* The rows of all packed sequences follow each other, even if each sequence is short. */
    const int64_t batch = cla_entries(p, p->batch), rows = cla_rows_q(p, p->seq_q);
    if (cla_problem_is_empty(p->batch, p->heads_q, rows) || p->seq_q == 0) /* nothing is written; strides may be 0 */
        return CLATTN_SUCCESS;
    TRY(cla_check_output_stride("problem.o.strides.batch", batch, p->o.strides.batch, error));
    TRY(cla_check_output_stride("problem.o.strides.head", p->heads_q, p->o.strides.head, error));
    TRY(cla_check_output_stride("problem.o.strides.row", rows, p->o.strides.row, error));
    TRY(cla_check_output_stride("problem.o.strides.column", p->head_dim_v, p->o.strides.column, error));
    if (p->lse.present) {
        if (p->lse.form != CLATTN_LSE && p->lse.form != CLATTN_MAX_AND_SUM)
            return cla_fail(error, CLATTN_INVALID_ARGUMENT, "problem.lse.form", "problem.lse.form is %d, no clattn_lse_form",
                            (int)p->lse.form);
        TRY(cla_check_output_stride("problem.lse.strides.batch", batch, p->lse.strides.batch, error));
        TRY(cla_check_output_stride("problem.lse.strides.head", p->heads_q, p->lse.strides.head, error));
        TRY(cla_check_output_stride("problem.lse.strides.row", rows, p->lse.strides.row, error));
    }
    if (p->scores.kind != CLATTN_SCORES_NONE && p->seq_kv > 0) {
        TRY(cla_check_output_stride("problem.scores.strides.batch", p->batch, p->scores.strides.batch, error));
        TRY(cla_check_output_stride("problem.scores.strides.head", cla_score_heads(p), p->scores.strides.head, error));
        TRY(cla_check_output_stride("problem.scores.strides.row", p->seq_q, p->scores.strides.row, error));
        TRY(cla_check_output_stride("problem.scores.strides.column", p->seq_kv, p->scores.strides.column, error));
    }
    return CLATTN_SUCCESS;
}

static clattn_status check_options(const clattn_problem *p, clattn_error *error)
{
    if (!isfinite(p->scale))
        return cla_fail(error, CLATTN_INVALID_ARGUMENT, "problem.scale",
                        "problem.scale is infinite: it must be a number (leave it as "
                        "clattn_problem_init sets it for 1/sqrt(head_dim_qk))");
    if (p->corner != CLATTN_TOP_LEFT && p->corner != CLATTN_BOTTOM_RIGHT && p->corner != CLATTN_EXPLICIT)
        return cla_fail(error, CLATTN_INVALID_ARGUMENT, "problem.corner",
                        "problem.corner is %d: it must be CLATTN_TOP_LEFT, CLATTN_BOTTOM_RIGHT or CLATTN_EXPLICIT",
                        (int)p->corner);
    return CLATTN_SUCCESS;
}

static clattn_status check_scores(const clattn_problem *p, clattn_error *error)
{
    if (p->scores.kind < CLATTN_SCORES_NONE || p->scores.kind > CLATTN_SCORES_SOFTMAX)
        return cla_fail(error, CLATTN_INVALID_ARGUMENT, "problem.scores.kind",
                        "problem.scores.kind is %d: it must be one of CLATTN_SCORES_NONE, _RAW, _SOFTCAP, _BIAS and _SOFTMAX",
                        (int)p->scores.kind);
    if (p->scores.kind == CLATTN_SCORES_NONE)
        return CLATTN_SUCCESS;
    TRY(check_size("problem.scores.first_head", p->scores.first_head, 0, p->heads_q > 0 ? p->heads_q - 1 : 0, error));
    return check_size("problem.scores.heads", p->scores.heads, 0, p->heads_q - p->scores.first_head, error);
}

static clattn_status check_integer(const char *field, clattn_integer type, clattn_error *error)
{
    if (type != CLATTN_NO_INTEGERS && type != CLATTN_INT32 && type != CLATTN_INT64)
        return cla_fail(error, CLATTN_INVALID_ARGUMENT, field,
                        "%s is %d: it must be CLATTN_INT32, CLATTN_INT64 or CLATTN_NO_INTEGERS", field, (int)type);
    return CLATTN_SUCCESS;
}

static clattn_status check_sequences(const clattn_problem *p, clattn_error *error)
{
    TRY(check_integer("problem.q_lengths", p->q_lengths, error));
    TRY(check_integer("problem.kv_lengths", p->kv_lengths, error));
    TRY(check_integer("problem.offsets", p->offsets, error));
    TRY(check_integer("problem.packed.starts", p->packed.starts, error));
    if (p->offsets && p->corner != CLATTN_EXPLICIT)
        return cla_fail(error, CLATTN_INVALID_ARGUMENT, "problem.offsets",
                        "problem.offsets needs problem.corner = CLATTN_EXPLICIT");
    if (p->packed.starts) {
        TRY(check_size("problem.packed.total_q", p->packed.total_q, 0, INT64_MAX / 4, error));
        TRY(check_size("problem.packed.total_kv", p->packed.total_kv, 0, INT64_MAX / 4, error));
    }
    return CLATTN_SUCCESS;
}

static clattn_status check_scoring(const clattn_problem *p, clattn_error *error)
{
    if (!isfinite(p->softcap) || p->softcap < 0.0f)
        return cla_fail(error, CLATTN_INVALID_ARGUMENT, "problem.softcap",
                        "problem.softcap must be a positive number, or 0 for none");
    TRY(check_size("problem.window.left", p->window.left, -1, INT64_MAX, error));
    TRY(check_size("problem.window.right", p->window.right, -1, INT64_MAX, error));
    if (p->mask.present)
        TRY(check_size("problem.mask.columns", p->mask.columns, -1, CLA_MAX_SEQ, error));
    if (p->bias.present) {
        TRY(check_size("problem.bias.columns", p->bias.columns, -1, CLA_MAX_SEQ, error));
        TRY(check_type("problem.bias.type", p->bias.type, error));
    }
    return CLATTN_SUCCESS;
}

bool cla_problem_alters_scores(const clattn_problem *p)
{
    return p->softcap != 0.0f || p->mask.present || p->bias.present || p->alibi.present;
}

clattn_status cla_problem_take(const clattn_problem *given, clattn_problem *problem, clattn_error *error)
{
    clattn_problem_init(problem);
    TRY(cla_struct_take("problem", given, CLA_PROBLEM_LEAST_SIZE, problem, sizeof *problem, error));
    TRY(check_sizes(problem, error));
    TRY(check_type("problem.q.type", problem->q.type, error));
    TRY(check_type("problem.k.type", problem->k.type, error));
    TRY(check_type("problem.v.type", problem->v.type, error));
    TRY(check_type("problem.o.type", problem->o.type, error));
    if (isnan(problem->scale))
        problem->scale = (float)(1.0 / sqrt((double)problem->head_dim_qk));
    TRY(check_options(problem, error));
    TRY(check_scores(problem, error));
    TRY(check_scoring(problem, error));
    TRY(check_sequences(problem, error));
    return check_outputs(problem, error);
}
