/* SPDX-License-Identifier: Apache-2.0 */
#include "call.h"

#include "arithmetic.h"
#include "buffer.h"
#include "overlap.h"
#include "problem.h"
#include "strides.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAX_BUFFERS = 17 };

static const clattn_strides one_after_another = {0, 0, 0, 1};

/* The defaults of a call, from the problem. */
static void set_numbers(clattn_call *call, const clattn_problem *p)
{
    call->batch = p->batch;
    call->seq_q = p->seq_q;
    call->seq_kv = p->seq_kv;
    call->offset = p->offset;
    call->scale = p->scale;
    call->window_left = p->window.left;
    call->window_right = p->window.right;
    call->mask_columns = p->mask.columns;
    call->bias_columns = p->bias.columns;
    call->mask_strides = p->mask.strides;
    call->bias_strides = p->bias.strides;
    call->q_strides = p->q.strides;
    call->k_strides = p->k.strides;
    call->v_strides = p->v.strides;
    call->o_strides = p->o.strides;
    call->lse_strides = p->lse.strides;
}

void clattn_call_init_sized(clattn_call *call, size_t size, const clattn_plan *plan)
{
    clattn_call fresh;
    if (!call)
        return;
    memset(&fresh, 0, sizeof fresh);
    if (plan)
        set_numbers(&fresh, &plan->problem);
    else
        fresh.window_left = fresh.window_right = fresh.mask_columns = fresh.bias_columns = -1;
    memset(call, 0, size);
    memcpy(call, &fresh, size < sizeof fresh ? size : sizeof fresh);
    call->struct_size = size;
}

void clattn_call_set_problem(clattn_call *call, const clattn_problem *problem)
{
    clattn_problem taken;
    clattn_call full;
    if (!call || !problem)
        return;
    cla_problem_take(problem, &taken, NULL); /* clattn_plan_serves tells whether it can be served */
    const size_t size = call->struct_size < sizeof full ? call->struct_size : sizeof full;
    memcpy(&full, call, size);
    set_numbers(&full, &taken);
    memcpy(call, &full, size);
}

static clattn_status check_bound(const char *field, int64_t value, int64_t bound, clattn_error *error)
{
    if (value < 0 || value > bound)
        return cla_fail(error, CLATTN_INVALID_ARGUMENT, field, "%s is %" PRId64 ": this plan's bound is %" PRId64, field, value,
                        bound);
    return CLATTN_SUCCESS;
}

/* The buffers of a call, each with what it must hold. */
struct buffer_list {
    struct tensor_check tensors[MAX_BUFFERS];
    size_t count;
};

static void add(struct buffer_list *list, const char *field, clattn_buffer *buffer, size_t element_size, const int64_t sizes[4],
                const clattn_strides *strides, bool written)
{
    const struct tensor_check t = {field,
                                   buffer,
                                   element_size,
                                   {sizes[0], sizes[1], sizes[2], sizes[3]},
                                   {strides->batch, strides->head, strides->row, strides->column},
                                   written};
    list->tensors[list->count++] = t;
}

/* Q, K, V, O, and the other outputs. */
static void add_main_buffers(struct buffer_list *list, const clattn_problem *p, clattn_call *call, size_t workspace_bytes)
{
    const int64_t batch = cla_entries(p, call->batch);
    const int64_t rows = cla_rows_q(p, call->seq_q), keys = cla_rows_kv(p, call->seq_kv);
    const int64_t q[] = {batch, p->heads_q, rows, p->head_dim_qk}, k[] = {batch, p->heads_kv, keys, p->head_dim_qk};
    const int64_t v[] = {batch, p->heads_kv, keys, p->head_dim_v}, o[] = {batch, p->heads_q, rows, p->head_dim_v};
    const int64_t lse[] = {batch, p->heads_q, rows, 1};
    const int64_t scores[] = {call->batch, cla_score_heads(p), call->seq_q, call->seq_kv};
    const int64_t workspace[] = {1, 1, 1, (int64_t)(workspace_bytes / sizeof(float))};
    add(list, "call.q", &call->q, cla_type_size(p->q.type), q, &call->q_strides, false);
    add(list, "call.k", &call->k, cla_type_size(p->k.type), k, &call->k_strides, false);
    add(list, "call.v", &call->v, cla_type_size(p->v.type), v, &call->v_strides, false);
    add(list, "call.o", &call->o, cla_type_size(p->o.type), o, &call->o_strides, true);
    if (p->lse.present)
        add(list, "call.lse", &call->lse, cla_lse_size(p->lse.form), lse, &call->lse_strides, true);
    if (p->scores.kind != CLATTN_SCORES_NONE)
        add(list, "call.scores", &call->scores, sizeof(float), scores, &p->scores.strides, true);
    if (call->workspace.kind != CLATTN_BUFFER_NONE)
        add(list, "call.workspace", &call->workspace, sizeof(float), workspace, &one_after_another, true);
}

/* Columns past the keys of the call are never read. */
static int64_t columns_of(int64_t given, int64_t seq_kv) { return given < 0 || given > seq_kv ? seq_kv : given; }

/* A plan may rely on what batch entries or heads share. */
static clattn_status check_sharing(const char *field, int64_t given, int64_t planned, clattn_error *error)
{
    if ((given == 0) == (planned == 0))
        return CLATTN_SUCCESS;
    return cla_fail(error, CLATTN_INVALID_ARGUMENT, field,
                    "%s is %" PRId64 " and the plan's problem has %" PRId64
                    " there: both must be 0 (shared) or neither; make another plan, or give the stride of a copy each",
                    field, given, planned);
}

static clattn_status check_tensor_strides(const char *name, const clattn_problem *p, const clattn_tensor *tensor,
                                          const clattn_strides *given, clattn_error *error)
{
    const char *axis;
    int64_t multiple;
    char field[64];
    if (cla_strides_serve(p, tensor, given, &axis, &multiple))
        return CLATTN_SUCCESS;
    snprintf(field, sizeof field, "call.%s_strides.%s", name, axis);
    if (multiple == 0)
        return cla_fail(error, CLATTN_INVALID_ARGUMENT, field,
                        "%s must be 1 as in the plan's problem, which its kernels count on; make another plan", field);
    return cla_fail(error, CLATTN_INVALID_ARGUMENT, field,
                    "%s must be a multiple of %" PRId64 " elements, positive and below 2^39 where the plan's is: its kernels "
                    "count on that; make another plan",
                    field, multiple);
}

/* With a stride of 0, writes to an output would race. */
static clattn_status check_output_strides(const clattn_problem *p, const clattn_call *call, clattn_error *error)
{
    const int64_t batch = cla_entries(p, call->batch), rows = cla_rows_q(p, call->seq_q);
    TRY(cla_check_output_stride("call.o_strides.batch", batch, call->o_strides.batch, error));
    TRY(cla_check_output_stride("call.o_strides.head", p->heads_q, call->o_strides.head, error));
    TRY(cla_check_output_stride("call.o_strides.row", rows, call->o_strides.row, error));
    TRY(cla_check_output_stride("call.o_strides.column", p->head_dim_v, call->o_strides.column, error));
    if (!p->lse.present)
        return CLATTN_SUCCESS;
    TRY(cla_check_output_stride("call.lse_strides.batch", batch, call->lse_strides.batch, error));
    TRY(cla_check_output_stride("call.lse_strides.head", p->heads_q, call->lse_strides.head, error));
    return cla_check_output_stride("call.lse_strides.row", rows, call->lse_strides.row, error);
}

static clattn_status check_strides(const clattn_problem *p, const clattn_call *call, clattn_error *error)
{
    TRY(check_tensor_strides("q", p, &p->q, &call->q_strides, error));
    TRY(check_tensor_strides("k", p, &p->k, &call->k_strides, error));
    TRY(check_tensor_strides("v", p, &p->v, &call->v_strides, error));
    TRY(check_tensor_strides("o", p, &p->o, &call->o_strides, error));
    TRY(check_output_strides(p, call, error));
    if (p->mask.present) {
        TRY(check_sharing("call.mask_strides.batch", call->mask_strides.batch, p->mask.strides.batch, error));
        TRY(check_sharing("call.mask_strides.head", call->mask_strides.head, p->mask.strides.head, error));
    }
    if (p->bias.present) {
        TRY(check_sharing("call.bias_strides.batch", call->bias_strides.batch, p->bias.strides.batch, error));
        TRY(check_sharing("call.bias_strides.head", call->bias_strides.head, p->bias.strides.head, error));
    }
    return CLATTN_SUCCESS;
}

static void add_score_buffers(struct buffer_list *list, const clattn_problem *p, clattn_call *call)
{
    const int64_t mask[] = {call->batch, p->heads_q, call->seq_q, columns_of(call->mask_columns, call->seq_kv)};
    const int64_t bias[] = {call->batch, p->heads_q, call->seq_q, columns_of(call->bias_columns, call->seq_kv)};
    const int64_t slopes[] = {call->batch, p->heads_q, 1, 1}, heads[] = {1, 1, 1, p->heads_q};
    if (p->mask.present)
        add(list, "call.mask", &call->mask, 1, mask, &call->mask_strides, false);
    if (p->bias.present)
        add(list, "call.bias", &call->bias, cla_type_size(p->bias.type), bias, &call->bias_strides, false);
    if (p->bias.present && p->bias.factors)
        add(list, "call.bias_factors", &call->bias_factors, sizeof(float), heads, &one_after_another, false);
    if (p->alibi.present)
        add(list, "call.alibi", &call->alibi, sizeof(float), slopes, &p->alibi.strides, false);
    if (p->sinks)
        add(list, "call.sinks", &call->sinks, sizeof(float), heads, &one_after_another, false);
}

static void add_integers(struct buffer_list *list, const char *field, clattn_buffer *buffer, clattn_integer type, int64_t count)
{
    const int64_t sizes[] = {1, 1, 1, count};
    if (type != CLATTN_NO_INTEGERS)
        add(list, field, buffer, type == CLATTN_INT64 ? 8u : 4u, sizes, &one_after_another, false);
}

static void add_sequence_buffers(struct buffer_list *list, const clattn_problem *p, clattn_call *call)
{
    add_integers(list, "call.q_lengths", &call->q_lengths, p->q_lengths, call->batch);
    add_integers(list, "call.kv_lengths", &call->kv_lengths, p->kv_lengths, call->batch);
    add_integers(list, "call.offsets", &call->offsets, p->offsets, call->batch);
    add_integers(list, "call.q_starts", &call->q_starts, p->packed.starts, call->batch + 1);
    add_integers(list, "call.kv_starts", &call->kv_starts, p->packed.starts, call->batch + 1);
}

/* Buffers that are written must not overlap any other. */
static clattn_status check_overlaps(const struct buffer_list *list, clattn_error *error)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct tensor_check *const out = &list->tensors[i];
        for (size_t j = 0; out->written && j < list->count; j++) {
            const struct tensor_check *const other = &list->tensors[j];
            if (j != i && !(other->written && j < i) && cla_tensors_overlap(out, other))
                return cla_fail(error, CLATTN_INVALID_ARGUMENT, out->field,
                                "%s overlaps %s in memory: kernels would %s what they write; use separate memory for it",
                                out->field, other->field, other->written ? "overwrite" : "read");
        }
    }
    return CLATTN_SUCCESS;
}

static clattn_status check_buffers(const clattn_plan *plan, clattn_call *call, size_t workspace_bytes, clattn_error *error)
{
    struct buffer_list list;
    list.count = 0;
    add_main_buffers(&list, &plan->problem, call, workspace_bytes);
    add_score_buffers(&list, &plan->problem, call);
    add_sequence_buffers(&list, &plan->problem, call);
    for (size_t i = 0; i < list.count; i++)
        TRY(cla_check_tensor(&list.tensors[i], plan->context, error));
    return check_overlaps(&list, error);
}

static clattn_status check_numbers(const clattn_plan *plan, const clattn_call *call, clattn_error *error)
{
    TRY(check_bound("call.batch", call->batch, plan->problem.batch, error));
    TRY(check_bound("call.seq_q", call->seq_q, plan->problem.seq_q, error));
    TRY(check_bound("call.seq_kv", call->seq_kv, plan->problem.seq_kv, error));
    if (!isfinite(call->scale))
        return cla_fail(error, CLATTN_INVALID_ARGUMENT, "call.scale", "call.scale is %s: it must be a number",
                        isnan(call->scale) ? "NaN" : "infinite");
    if (call->window_left < -1 || call->window_right < -1)
        return cla_fail(error, CLATTN_INVALID_ARGUMENT, call->window_left < -1 ? "call.window_left" : "call.window_right",
                        "a window's side is a number of keys, or -1 for open");
    if (call->mask_columns < -1 || call->bias_columns < -1 || call->mask_columns > CLA_MAX_SEQ ||
        call->bias_columns > CLA_MAX_SEQ)
        return cla_fail(error, CLATTN_INVALID_ARGUMENT,
                        call->mask_columns < -1 || call->mask_columns > CLA_MAX_SEQ ? "call.mask_columns" : "call.bias_columns",
                        "columns are a number of keys, or -1 for all keys of the call");
    return CLATTN_SUCCESS;
}

/* The caller's struct, brought to this version, with its numbers checked. */
static clattn_status take_numbers(const clattn_plan *plan, const clattn_call *given, clattn_call *call, bool *empty,
                                  clattn_error *error)
{
    clattn_call_init(call, plan);
    TRY(cla_struct_take("call", given, offsetof(clattn_call, workspace), call, sizeof *call, error));
    TRY(check_numbers(plan, call, error));
    *empty = cla_problem_is_empty(call->batch, plan->problem.heads_q, call->seq_q) || cla_packs_no_row(&plan->problem);
    return CLATTN_SUCCESS;
}

clattn_status cla_call_take(clattn_plan *plan, const clattn_call *given, clattn_call *call, struct choice *choice, bool *empty,
                            clattn_error *error)
{
    TRY(take_numbers(plan, given, call, empty, error));
    if (*empty)
        return CLATTN_SUCCESS;
    *choice = cla_plan_choose(plan, call->batch, call->seq_q, call->seq_kv);
    TRY(check_strides(&plan->problem, call, error));
    return check_buffers(plan, call, choice->workspace, error);
}

clattn_status clattn_call_workspace(clattn_plan *plan, const clattn_call *given, size_t *bytes, clattn_error *error)
{
    clattn_call call;
    bool empty = false;
    cla_clear(error);
    if (!plan || !bytes)
        return cla_fail(error, CLATTN_INVALID_ARGUMENT, plan ? "bytes" : "plan", "%s is NULL", plan ? "bytes" : "plan");
    *bytes = 0;
    TRY(take_numbers(plan, given, &call, &empty, error));
    if (!empty)
        *bytes = cla_plan_choose(plan, call.batch, call.seq_q, call.seq_kv).workspace;
    return CLATTN_SUCCESS;
}
