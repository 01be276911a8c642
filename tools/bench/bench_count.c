/* SPDX-License-Identifier: Apache-2.0
 * What a shape amounts to: pairs, operations, bytes. */
#include "bench.h"

#include "half.h"

static int64_t offset_of(const struct trial *t)
{
    switch (t->problem.corner) {
    case CLATTN_TOP_LEFT:
        return 0;
    case CLATTN_BOTTOM_RIGHT:
        return t->seq_kv - t->seq_q;
    default:
        return t->offset;
    }
}

/* Keys that query i sees of those of the call. */
static int64_t keys_seen(const struct trial *t, int64_t at)
{
    const clattn_problem *p = &t->problem;
    int64_t first = 0, end = t->seq_kv;
    if (p->causal && at + 1 < end)
        end = at + 1;
    if (p->window.right >= 0 && p->window.right < end - 1 - at)
        end = at + p->window.right + 1;
    if (p->window.left >= 0 && at - p->window.left > 0)
        first = at - p->window.left;
    return end > first ? end - first : 0;
}

double bench_pairs(const struct trial *t)
{
    const int64_t offset = offset_of(t);
    double pairs = 0;
    for (int64_t i = 0; i < t->seq_q; i++)
        pairs += (double)keys_seen(t, i + offset);
    return pairs * (double)t->batch * (double)t->problem.heads_q;
}

double bench_operations(const struct trial *t)
{
    return 2.0 * bench_pairs(t) * (double)(t->problem.head_dim_qk + t->problem.head_dim_v);
}

static double tensor_bytes(const clattn_tensor *tensor, int64_t heads, int64_t length, int64_t dim)
{
    return (double)storage_size(tensor->type) * (double)heads * (double)length * (double)dim;
}

double bench_bytes(const struct trial *t)
{
    const clattn_problem *p = &t->problem;
    const double one = tensor_bytes(&p->q, p->heads_q, t->seq_q, p->head_dim_qk) +
                       tensor_bytes(&p->k, p->heads_kv, t->seq_kv, p->head_dim_qk) +
                       tensor_bytes(&p->v, p->heads_kv, t->seq_kv, p->head_dim_v) +
                       tensor_bytes(&p->o, p->heads_q, t->seq_q, p->head_dim_v) +
                       (p->lse.present ? sizeof(float) * (double)p->heads_q * (double)t->seq_q : 0.0);
    return one * (double)t->batch;
}
