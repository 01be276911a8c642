/* SPDX-License-Identifier: Apache-2.0
 * Adds up the partial results of the chunks of keys (cl/epilogue.cl says where they lie): with M the largest LSE,
 *
 *        O = sum of 2^(lse - M) * o / sum of 2^(lse - M)        LSE = M + log2(that sum)
 *
 * A partial result that saw nothing (LSE -inf) weighs 0; all such give 0 and -inf, and one result alone comes out bit for bit.
 * The sink joins here, once. A work-item gives MERGE_COLUMNS elements of a row of O: one on devices with many work-items, all
 * on CPUs, where that is a loop over vectors.
 */
#if MERGE_COLUMNS == 1
#define MERGE_TOGETHER _Pragma("unroll 8")
#else
#define MERGE_TOGETHER
#endif

/* As in cl/attention.cl. */
#ifdef ENGINE_APART
__attribute__((noinline)) void add_up(KERNEL_PARAMETERS, const long at);
void add_up(KERNEL_PARAMETERS, const long at)
{
#else
__kernel __attribute__((reqd_work_group_size(MERGE_GROUP, 1, 1))) void merge(KERNEL_PARAMETERS)
{
    const long at = (long)get_global_id(0);
#endif
    const option_data options = OPTION_DATA;
    const long row = quotient(at, HEAD_DIM_V / MERGE_COLUMNS), heads = quotient(row, args.seq_q);
    const int col = (int)(at - row * (HEAD_DIM_V / MERGE_COLUMNS)) * MERGE_COLUMNS, query = (int)(row - heads * args.seq_q);
    const int batch = (int)quotient(heads, args.heads_q), head = (int)(heads - (long)batch * args.heads_q);
    float o[MERGE_COLUMNS];
    tile t;
    if (row >= (long)args.batches * args.heads_q * args.seq_q) {
        return;
    }
    t.pack = 1;
    t.head0 = head;
    tile_sequence(&t, &args, &options, batch);
    if (query >= t.q_rows) {
        return;
    }
    const long first = partial_row(&args, batch, head, query, 0);
    __global const float *lse = workspace + args.workspace + partial_rows(&args) * HEAD_DIM_V + first;
    __global const float *out = workspace + args.workspace + first * HEAD_DIM_V + col;
    float top = args.has_sinks ? options.sinks[args.sinks + head] : -INFINITY;
    top = top == -INFINITY ? top : clamp(top * LOG2_E, -LARGEST, LARGEST);
    const float sink = top;
    /* Few groups with nothing else to do: reads that do not wait for each other are all that hides how long each takes. */
    MERGE_TOGETHER
    for (int i = 0; i < args.chunks; i++) {
        const float x = lse[i];
        top = x > top ? x : top;
    }
    const float base = top == -INFINITY ? 0.0f : top;
    float sum = sink == -INFINITY ? 0.0f : exp2(sink - base), weight_of_keys = 0.0f;
    for (int c = 0; c < MERGE_COLUMNS; c++) {
        o[c] = 0.0f;
    }
    MERGE_TOGETHER
    for (int i = 0; i < args.chunks; i++) {
        const float x = lse[i], weight = exp2(x - base);
        sum += weight;
        weight_of_keys += weight;
        for (int c = 0; c < MERGE_COLUMNS; c++) {
            const float part = out[(long)i * HEAD_DIM_V + c];
            /* A chunk that saw nothing: what is written for it does not matter. */
            o[c] = MULTIPLY_ADD(weight, x == -INFINITY ? 0.0f : part, o[c]);
        }
    }
    const long o_row = tile_row_offset(&t, args.o, query);
    for (int c = 0; c < MERGE_COLUMNS; c++) {
        STORE_O(weight_of_keys == 0.0f ? 0.0f : o[c] / sum, o_data, o_row + (col + c) * args.o.dim);
    }
    if (args.has_lse && col == 0) {
        lse_data[tile_row_offset(&t, args.lse, query)] = sum == 0.0f ? -INFINITY : (top + log2(sum)) * LN_2;
    }
}

#ifdef ENGINE_APART
__kernel __attribute__((reqd_work_group_size(MERGE_GROUP, 1, 1))) void merge(KERNEL_PARAMETERS)
{
    add_up(KERNEL_ARGUMENTS, (long)get_global_id(0));
}
#endif
