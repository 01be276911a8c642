/* SPDX-License-Identifier: Apache-2.0
 * Whether a plan that was made for one problem can be called for another. */
#include "plan.h"
#include "problem.h"
#include "strides.h"

/* Along an axis of at most one element the stride has no effect. */
static bool same_stride(int64_t bound, int64_t a, int64_t b) { return bound <= 1 || a == b; }

static bool serves_tensor(const clattn_problem *p, const clattn_tensor *tensor, const clattn_tensor *other)
{
    const char *axis;
    int64_t multiple;
    return tensor->type == other->type && cla_strides_serve(p, tensor, &other->strides, &axis, &multiple);
}

static bool serves_tensors(const clattn_problem *p, const clattn_problem *other)
{
    return serves_tensor(p, &p->q, &other->q) && serves_tensor(p, &p->k, &other->k) && serves_tensor(p, &p->v, &other->v) &&
           serves_tensor(p, &p->o, &other->o);
}

static bool same_outputs(const clattn_problem *p, const clattn_problem *other)
{
    if (p->lse.present != other->lse.present || p->scores.kind != other->scores.kind)
        return false;
    if (p->lse.present && p->lse.form != other->lse.form)
        return false;
    return p->scores.kind == CLATTN_SCORES_NONE ||
           (p->scores.first_head == other->scores.first_head && cla_score_heads(p) == cla_score_heads(other) &&
            same_stride(p->batch, p->scores.strides.batch, other->scores.strides.batch) &&
            same_stride(cla_score_heads(p), p->scores.strides.head, other->scores.strides.head) &&
            same_stride(p->seq_q, p->scores.strides.row, other->scores.strides.row) &&
            same_stride(p->seq_kv, p->scores.strides.column, other->scores.strides.column));
}

static bool both_or_neither(int64_t a, int64_t b) { return (a == 0) == (b == 0); }

/* Calls set the strides of masks and biases, but not which axes are broadcast: the plan fixes those. */
static bool same_options(const clattn_problem *p, const clattn_problem *other)
{
    if (p->softcap != other->softcap || p->sinks != other->sinks || p->mask.present != other->mask.present ||
        p->bias.present != other->bias.present || p->alibi.present != other->alibi.present)
        return false;
    if (p->mask.present && !(both_or_neither(p->mask.strides.batch, other->mask.strides.batch) &&
                             both_or_neither(p->mask.strides.head, other->mask.strides.head)))
        return false;
    if (p->bias.present && !(p->bias.type == other->bias.type && p->bias.factors == other->bias.factors &&
                             both_or_neither(p->bias.strides.batch, other->bias.strides.batch) &&
                             both_or_neither(p->bias.strides.head, other->bias.strides.head)))
        return false;
    return !p->alibi.present || (same_stride(p->batch, p->alibi.strides.batch, other->alibi.strides.batch) &&
                                 same_stride(p->heads_q, p->alibi.strides.head, other->alibi.strides.head));
}

static bool same_sequences(const clattn_problem *p, const clattn_problem *other)
{
    return p->causal == other->causal && p->corner == other->corner && p->q_lengths == other->q_lengths &&
           p->kv_lengths == other->kv_lengths && p->offsets == other->offsets && p->packed.starts == other->packed.starts &&
           p->packed.total_q == other->packed.total_q && p->packed.total_kv == other->packed.total_kv;
}

bool clattn_plan_serves(const clattn_plan *plan, const clattn_problem *problem)
{
    clattn_problem other;
    if (!plan || cla_problem_take(problem, &other, NULL) != CLATTN_SUCCESS)
        return false;
    const clattn_problem *p = &plan->problem;
    return other.batch <= p->batch && other.seq_q <= p->seq_q && other.seq_kv <= p->seq_kv && other.heads_q == p->heads_q &&
           other.heads_kv == p->heads_kv && other.head_dim_qk == p->head_dim_qk && other.head_dim_v == p->head_dim_v &&
           serves_tensors(p, &other) && same_outputs(p, &other) && same_options(p, &other) && same_sequences(p, &other);
}
