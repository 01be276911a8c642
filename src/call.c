/* SPDX-License-Identifier: Apache-2.0 */
#include "call.h"

#include "buffer.h"
#include "problem.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* What a call says of a problem where the caller does not say otherwise. */
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
    cla_problem_take(problem, &taken, NULL); /* whether it can be served is for clattn_plan_serves to say */
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

/* Q, K, V or O. Packed tensors have one batch entry and all rows of all sequences. */
static clattn_status check_main(const char *field, const clattn_buffer *buffer, const clattn_tensor *tensor, int64_t batch,
                                int64_t heads, int64_t seq, int64_t dim, bool written, const clattn_context *context,
                                clattn_error *error)
{
    const struct tensor_check t = {field,
                                   buffer,
                                   cla_type_size(tensor->type),
                                   {batch, heads, seq, dim},
                                   {tensor->strides.batch, tensor->strides.head, tensor->strides.row, tensor->strides.column},
                                   written};
    return cla_check_tensor(&t, context, error);
}

static clattn_status check_main_buffers(const clattn_plan *plan, const clattn_call *call, clattn_error *error)
{
    const clattn_problem *p = &plan->problem;
    const clattn_context *context = plan->context;
    const bool packed = p->packed.starts != CLATTN_NO_INTEGERS;
    const int64_t batch = packed ? 1 : call->batch;
    const int64_t seq_q = packed ? p->packed.total_q : call->seq_q, seq_kv = packed ? p->packed.total_kv : call->seq_kv;
    TRY(check_main("call.q", &call->q, &p->q, batch, p->heads_q, seq_q, p->head_dim_qk, false, context, error));
    TRY(check_main("call.k", &call->k, &p->k, batch, p->heads_kv, seq_kv, p->head_dim_qk, false, context, error));
    TRY(check_main("call.v", &call->v, &p->v, batch, p->heads_kv, seq_kv, p->head_dim_v, false, context, error));
    TRY(check_main("call.o", &call->o, &p->o, batch, p->heads_q, seq_q, p->head_dim_v, true, context, error));
    if (p->lse.present) {
        const struct tensor_check t = {"call.lse",
                                       &call->lse,
                                       sizeof(float),
                                       {batch, p->heads_q, seq_q, 1},
                                       {p->lse.strides.batch, p->lse.strides.head, p->lse.strides.row, 0},
                                       true};
        TRY(cla_check_tensor(&t, context, error));
    }
    if (p->scores.kind != CLATTN_SCORES_NONE) {
        const struct tensor_check t = {
            "call.scores",
            &call->scores,
            sizeof(float),
            {call->batch, cla_score_heads(p), call->seq_q, call->seq_kv},
            {p->scores.strides.batch, p->scores.strides.head, p->scores.strides.row, p->scores.strides.column},
            true};
        TRY(cla_check_tensor(&t, context, error));
    }
    if (call->workspace.kind != CLATTN_BUFFER_NONE) {
        const struct tensor_check t = {"call.workspace", &call->workspace,
                                       sizeof(float),    {(int64_t)(plan->workspace / sizeof(float)), 1, 1, 1},
                                       {1, 0, 0, 0},     true};
        TRY(cla_check_tensor(&t, context, error));
    }
    return CLATTN_SUCCESS;
}

/* Columns past the keys of the call are never read. */
static int64_t columns_of(int64_t given, int64_t seq_kv) { return given < 0 || given > seq_kv ? seq_kv : given; }

/* A plan may count on what batch entries or heads share. */
static clattn_status check_sharing(const char *field, int64_t given, int64_t planned, clattn_error *error)
{
    if ((given == 0) == (planned == 0))
        return CLATTN_SUCCESS;
    return cla_fail(error, CLATTN_INVALID_ARGUMENT, field,
                    "%s is %" PRId64 " and the plan's problem has %" PRId64
                    " there: both must be 0 (shared) or neither; make another plan, or give the stride of a copy each",
                    field, given, planned);
}

static clattn_status check_strides(const clattn_problem *p, const clattn_call *call, clattn_error *error)
{
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

static clattn_status check_score_buffers(const clattn_plan *plan, const clattn_call *call, clattn_error *error)
{
    const clattn_problem *p = &plan->problem;
    const clattn_context *context = plan->context;
    const struct tensor_check mask = {
        "call.mask",
        &call->mask,
        1,
        {call->batch, p->heads_q, call->seq_q, columns_of(call->mask_columns, call->seq_kv)},
        {call->mask_strides.batch, call->mask_strides.head, call->mask_strides.row, call->mask_strides.column},
        false};
    const struct tensor_check bias = {
        "call.bias",
        &call->bias,
        cla_type_size(p->bias.type),
        {call->batch, p->heads_q, call->seq_q, columns_of(call->bias_columns, call->seq_kv)},
        {call->bias_strides.batch, call->bias_strides.head, call->bias_strides.row, call->bias_strides.column},
        false};
    const struct tensor_check factors = {"call.bias_factors",   &call->bias_factors, sizeof(float),
                                         {p->heads_q, 1, 1, 1}, {1, 0, 0, 0},        false};
    const struct tensor_check slopes = {"call.alibi",
                                        &call->alibi,
                                        sizeof(float),
                                        {call->batch, p->heads_q, 1, 1},
                                        {p->alibi.strides.batch, p->alibi.strides.head, 0, 0},
                                        false};
    const struct tensor_check sinks = {"call.sinks", &call->sinks, sizeof(float), {p->heads_q, 1, 1, 1}, {1, 0, 0, 0}, false};
    TRY(check_strides(p, call, error));
    if (p->mask.present)
        TRY(cla_check_tensor(&mask, context, error));
    if (p->bias.present)
        TRY(cla_check_tensor(&bias, context, error));
    if (p->bias.present && p->bias.factors)
        TRY(cla_check_tensor(&factors, context, error));
    if (p->alibi.present)
        TRY(cla_check_tensor(&slopes, context, error));
    if (p->sinks)
        TRY(cla_check_tensor(&sinks, context, error));
    return CLATTN_SUCCESS;
}

static clattn_status check_integers(const char *field, const clattn_buffer *buffer, clattn_integer type, int64_t count,
                                    const clattn_context *context, clattn_error *error)
{
    const struct tensor_check t = {field, buffer, type == CLATTN_INT64 ? 8u : 4u, {count, 1, 1, 1}, {1, 0, 0, 0}, false};
    return type == CLATTN_NO_INTEGERS ? CLATTN_SUCCESS : cla_check_tensor(&t, context, error);
}

static clattn_status check_sequence_buffers(const clattn_plan *plan, const clattn_call *call, clattn_error *error)
{
    const clattn_problem *p = &plan->problem;
    const clattn_context *context = plan->context;
    TRY(check_integers("call.q_lengths", &call->q_lengths, p->q_lengths, call->batch, context, error));
    TRY(check_integers("call.kv_lengths", &call->kv_lengths, p->kv_lengths, call->batch, context, error));
    TRY(check_integers("call.offsets", &call->offsets, p->offsets, call->batch, context, error));
    TRY(check_integers("call.q_starts", &call->q_starts, p->packed.starts, call->batch + 1, context, error));
    return check_integers("call.kv_starts", &call->kv_starts, p->packed.starts, call->batch + 1, context, error);
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

clattn_status cla_call_take(const clattn_plan *plan, const clattn_call *given, clattn_call *call, bool *empty,
                            clattn_error *error)
{
    clattn_call_init(call, plan);
    TRY(cla_struct_take("call", given, offsetof(clattn_call, workspace), call, sizeof *call, error));
    TRY(check_numbers(plan, call, error));
    *empty = cla_problem_is_empty(call->batch, plan->problem.heads_q, call->seq_q);
    if (*empty)
        return CLATTN_SUCCESS;
    TRY(check_main_buffers(plan, call, error));
    TRY(check_score_buffers(plan, call, error));
    return check_sequence_buffers(plan, call, error);
}
