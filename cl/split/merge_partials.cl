/* SPDX-License-Identifier: Apache-2.0
 * Merges two partial results into one (clattn_enqueue_merge). A work-item owns a row, so the result may overwrite an input.
 * A_TYPE, B_TYPE and O_TYPE are the storage types. Loads of A are base.cl's loads of Q, and loads of B those of K.
 */
typedef struct {
    tensor_view a, b, o, a_lse, b_lse, o_lse;
    int batches, heads, seq_q, head_dim;
    int a_floats, b_floats, o_floats, unused; /* floats of an LSE element: 1, or 2 for maximum and sum; 0: not wanted */
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
    __global const float *const of_a = a_lse + args.a_floats * element_at(args.a_lse, batch, head, query);
    __global const float *const of_b = b_lse + args.b_floats * element_at(args.b_lse, batch, head, query);
    /* An LSE is a maximum with a sum of 1. An LSE of -inf marks a part with no visible key. */
    const float x = of_a[0], x_sum = args.a_floats == 2 ? of_a[1] : x == -INFINITY ? 0.0f : 1.0f;
    const float y = of_b[0], y_sum = args.b_floats == 2 ? of_b[1] : y == -INFINITY ? 0.0f : 1.0f;
    const int no_a = x_sum == 0.0f, no_b = y_sum == 0.0f;
    const float top = no_a ? y : no_b ? x : y > x ? y : x;
    /* exp(0) = 1 exactly, and inf - inf is avoided: a single part passes through unchanged. */
    const float wx = no_a ? 0.0f : x == top ? x_sum : exp(x - top) * x_sum;
    const float wy = no_b ? 0.0f : y == top ? y_sum : exp(y - top) * y_sum;
    const float sum = wx + wy, share = wx / sum, other = wy / sum;
    const long a_at = element_at(args.a, batch, head, query), b_at = element_at(args.b, batch, head, query);
    const long o_at = element_at(args.o, batch, head, query);
    for (int d = 0; d < args.head_dim; d++) {
        /* The values of a part with no visible key are ignored, NaN included. */
        const float p = no_a ? 0.0f : LOAD_Q(a, a_at + d * args.a.dim);
        const float q = no_b ? 0.0f : LOAD_K(b, b_at + d * args.b.dim);
        STORE_O(no_a ? q : no_b ? p : share * p + other * q, o, o_at + d * args.o.dim);
    }
    if (args.o_floats) {
        __global float *const to = o_lse + args.o_floats * element_at(args.o_lse, batch, head, query);
        const int empty = no_a && no_b;
        to[0] = empty ? -INFINITY : args.o_floats == 2 ? top : top + log(sum);
        if (args.o_floats == 2) {
            to[1] = empty ? 0.0f : sum;
        }
    }
}
