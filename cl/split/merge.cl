/* SPDX-License-Identifier: Apache-2.0
 * Merges the partial results of the chunks of keys (layout: cl/epilogue.cl). With M the largest of the maxima m,
 *
 *         O = sum of e^(m - M) * o / sum of e^(m - M) * l        LSE = M + ln(the latter)
 *
 * A partial result with no visible key (l = 0) weighs 0. If all are such, O is 0 and LSE is -inf. A single result passes
 * through bit for bit. The sink is added here, once. A work-item writes MERGE_COLUMNS elements of a row of O. In a separate
 * kernel that is one element on devices with many work-items, and a whole row on CPUs, as a loop over vectors.
 */
/* Only a few groups merge, with no other work. So the latency of reads is overlapped only with independent reads. */
#ifdef MERGE_INSIDE
#include "cl/split/last_chunk.cl"
#define MERGE_STEP 32
#define MERGE_EXP2(x) EXP2(x)
#define MERGE_THERE(col) ((col) < HEAD_DIM_V)
#else
#define LOAD_PARTIAL(p) (*(p))
#define MERGE_STEP 1
#define MERGE_EXP2(x) exp2(x)
#define MERGE_THERE(col) 1
#if MERGE_COLUMNS == 1
#define MERGE_TOGETHER 8
#else
#define MERGE_TOGETHER 1
#endif
#endif
#if MERGE_TOGETHER > 1
#define UNROLL_TOGETHER UNROLL
#else
#define UNROLL_TOGETHER
#endif

/* The largest of `top` and the chunks' largest scores. */
FN float merge_top(const launch_args *a, __global const float *tops, float top)
{
#ifdef TOP_OF_WARP
    for (int i = (int)get_local_id(0) % MERGE_STEP; i < a->chunks; i += MERGE_STEP) {
        const float x = LOAD_PARTIAL(tops + i);
        top = x > top ? x : top;
    }
    return TOP_OF_WARP(top);
#else
    for (int i = 0; i < a->chunks; i++) {
        const float x = LOAD_PARTIAL(tops + i);
        top = x > top ? x : top;
    }
    return top;
#endif
}

/* Columns col, col + MERGE_STEP ... of a row of the tile. */
FN void merge_row(const tile *t, const launch_args *a, const option_data *b, int row, int col, __global void *o_data,
                  __global float *lse_data, __global const float *workspace)
{
    const int head = tile_head(t, row);
    const long first = partial_row(a, t->batch, head, tile_query(t, row), 0);
    __global const float *tops = workspace + partial_top(a, first), *sums = workspace + partial_sum(a, first);
    __global const float *out = workspace + partial_output(a, first) + col;
    float o[MERGE_COLUMNS];
    const float largest = merge_top(a, tops, -INFINITY), base = largest == -INFINITY ? 0.0f : largest;
    const float sink = row_sink(t, a, b, row);
    float top = IN_NATURAL_UNITS(largest), sum = 0.0f, scale = 1.0f;
    int sees = 0;
    for (int c = 0; c < MERGE_COLUMNS; c++) {
        o[c] = 0.0f;
    }
    for (int first_chunk = 0; first_chunk < a->chunks; first_chunk += MERGE_TOGETHER) {
        float x[MERGE_TOGETHER], l[MERGE_TOGETHER], part[MERGE_TOGETHER][MERGE_COLUMNS];
        UNROLL_TOGETHER
        for (int i = 0; i < MERGE_TOGETHER; i++) {
            const int chunk = min(first_chunk + i, a->chunks - 1);
            x[i] = LOAD_PARTIAL(tops + chunk);
            l[i] = LOAD_PARTIAL(sums + chunk);
            for (int c = 0; c < MERGE_COLUMNS; c++) {
                const int at = MERGE_THERE(col + c * MERGE_STEP) ? c * MERGE_STEP : -col;
                part[i][c] = LOAD_PARTIAL(out + (long)chunk * HEAD_DIM_V + at);
            }
        }
        UNROLL_TOGETHER
        for (int i = 0; i < MERGE_TOGETHER; i++) {
            /* An empty chunk has no visible key; its stored values are ignored. After a NaN score, the sum is NaN and not 0. */
            const int empty = l[i] == 0.0f || first_chunk + i >= a->chunks;
            const float weight = empty ? 0.0f : MERGE_EXP2(IN_BASE_TWO(x[i] - base));
            sees |= !empty;
            sum = MULTIPLY_ADD(weight, empty ? 0.0f : l[i], sum);
            for (int c = 0; c < MERGE_COLUMNS; c++) {
                o[c] = MULTIPLY_ADD(weight, empty ? 0.0f : part[i][c], o[c]);
            }
        }
    }
    if (sink != -INFINITY) { /* as add_sink() in cl/epilogue.cl */
        const float over = sink - top, lesser = MERGE_EXP2(-fabs(over) * LOG2_E);
        scale = over > 0.0f ? lesser : 1.0f;
        sum = over > 0.0f ? sum * lesser + 1.0f : sum + lesser;
        top = over > 0.0f ? sink : top;
    }
    const float inverse = scale / (sum == 0.0f ? 1.0f : sum);
    const long o_row = tile_row_offset(t, a->o, row);
    for (int c = 0; c < MERGE_COLUMNS; c++) {
        if (MERGE_THERE(col + c * MERGE_STEP)) {
            STORE_O(sees ? o[c] * inverse : 0.0f, o_data, o_row + (col + c * MERGE_STEP) * a->o.dim);
        }
    }
    if (a->lse_floats && col == 0) {
        __global float *to = lse_data + a->lse_floats * tile_row_offset(t, a->lse, row);
        if (a->lse_floats == 2) {
            to[0] = top;
            to[1] = sum;
        } else {
            to[0] = sum == 0.0f ? -INFINITY : top + log2(sum) * LN_2;
        }
    }
}

#ifdef MERGE_INSIDE
/* Run by the whole group: 32 adjacent work-items a row. */
FN void merge_tile(const tile *t, const launch_args *a, const option_data *b, __global void *o_data, __global float *lse_data,
                   __global const float *workspace)
{
    const int end = min(t->row0 + BLOCK_M, t->rows), lane = (int)get_local_id(0) % MERGE_STEP;
    SEE_OTHER_GROUPS();
    for (int row = t->row0 + (int)get_local_id(0) / MERGE_STEP; row < end; row += WORK_GROUP / MERGE_STEP) {
        merge_row(t, a, b, row, lane, o_data, lse_data, workspace);
    }
}
#else
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
    tile t;
    if (row >= (long)args.batches * args.heads_q * args.seq_q) {
        return;
    }
    t.pack = 1;
    t.head0 = head;
    tile_sequence(&t, &args, &options, batch);
    if (query < t.q_rows) {
        merge_row(&t, &args, &options, query, col, o_data, lse_data, workspace);
    }
}

#ifdef ENGINE_APART
__kernel __attribute__((reqd_work_group_size(MERGE_GROUP, 1, 1))) void merge(KERNEL_PARAMETERS)
{
    add_up(KERNEL_ARGUMENTS, (long)get_global_id(0));
}
#endif
#endif
