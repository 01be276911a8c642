/* SPDX-License-Identifier: Apache-2.0
 * Two partial results into one (clattn_enqueue_merge). A work-item owns a row, so that the result may take the place of a part.
 * A_TYPE, B_TYPE and O_TYPE are the storage types; base.cl's load for A is that of Q, for B that of K.
 */
typedef struct {
    tensor_view a, b, o, a_lse, b_lse, o_lse;
    int batches, heads, seq_q, head_dim;
    int has_lse, unused;
} merge_args;

FN long element_at(const tensor_view v, int batch, int head, int query)
{
    return v.base + batch * v.batch + head * v.head + query * v.seq;
}

__kernel void merge_partials(__global const void *a, __global const float *a_lse, __global const void *b,
                             __global const float *b_lse, __global void *o, __global float *o_lse, const merge_args args)
{
    const long row = (long)get_global_id(0);
    const int query = (int)(row % args.seq_q), head = (int)(row / args.seq_q % args.heads);
    const int batch = (int)(row / args.seq_q / args.heads);
    if (batch >= args.batches) {
        return;
    }
    const float x = a_lse[element_at(args.a_lse, batch, head, query)], y = b_lse[element_at(args.b_lse, batch, head, query)];
    const float top = y > x ? y : x, base = top == -INFINITY ? 0.0f : top;
    /* exp(0) = 1 and exp(-inf) = 0 exactly: a part alone passes through unchanged. */
    const float wx = exp(x - base), wy = exp(y - base), sum = wx + wy;
    const long a_at = element_at(args.a, batch, head, query), b_at = element_at(args.b, batch, head, query);
    const long o_at = element_at(args.o, batch, head, query);
    for (int d = 0; d < args.head_dim; d++) {
        /* What a part that saw nothing holds does not matter, NaN included. */
        const float p = x == -INFINITY ? 0.0f : wx * LOAD_Q(a, a_at + d * args.a.dim);
        const float q = y == -INFINITY ? 0.0f : wy * LOAD_K(b, b_at + d * args.b.dim);
        STORE_O(sum == 0.0f ? 0.0f : (p + q) / sum, o, o_at + d * args.o.dim);
    }
    if (args.has_lse) {
        o_lse[element_at(args.o_lse, batch, head, query)] = y == -INFINITY ? x : x == -INFINITY ? y : top + log(sum);
    }
}
