/* SPDX-License-Identifier: Apache-2.0
 * Runs the two products of an engine alone, in the order of cl/attention.cl but without softmax and mask, and shows where each
 * element of a tile sits. One team, one head, KEY_BLOCKS blocks of keys. Composed by tests/cl/test_engine_map.c.
 *
 *   lse_data      in: the weights P[row][key]
 *   scores_data   out: scores[row][key]
 *   o_data        out: the output tile, O = alpha * (alpha * O0 + P V of block 0) + P V of block 1 ..., with O0 = 1 and alpha =
 * 1/2 workspace     out, as int: times each (row, column of S) was held, each (row, column of O), each row was owned; then, as
 * float: folded maximum of each row, folded sum of each row
 */
#include "cl/contract.cl"

#define KEYS_OF_ALL (KEY_BLOCKS * BLOCK_N)

/* Some engines leave S without its factor: docs/adding-an-engine.md. */
#ifdef ENGINE_BASE_TWO
#define BASE_TWO(e, x) ENGINE_BASE_TWO(e, x)
#else
#define BASE_TWO(e, x) (x)
#endif

FN void probe_scores(engine *e, int key0, __global float *scores, __global volatile int *count, __global const float *weights,
                     elem *largest, elem *sum)
{
    FOR_ROWS(r)
    {
        const index row = ENGINE_ROW(e, r);
        FOR_S_COLS(c)
        {
            const int key = key0 + ENGINE_S_COL(e, c);
            elem s = S_GET(e, r, c);
            largest[r] = LARGER(largest[r], s);
            for (int lane = 0; lane < LANES; lane++) {
                const int at = LANE_INDEX(row, lane) * KEYS_OF_ALL + key;
                atomic_inc(count + at);
                scores[at] = LANE(BASE_TWO(e, s), lane);
            }
            elem p = (elem)(0.0f);
#if LANES == 1
            p = weights[row * KEYS_OF_ALL + key];
#else
            for (int lane = 0; lane < LANES; lane++) {
                ((float *)&p)[lane] = weights[LANE_INDEX(row, lane) * KEYS_OF_ALL + key];
            }
#endif
            S_SET(e, r, c, p);
            sum[r] += p;
        }
    }
}

FN void probe_output(engine *e, __global float *o, __global volatile int *count)
{
    FOR_ROWS(r)
    {
        const index row = ENGINE_ROW(e, r);
        FOR_O_COLS(c)
        {
            const int col = ENGINE_O_COL(e, c);
            const elem x = O_GET(e, r, c);
            for (int lane = 0; lane < LANES; lane++) {
                if (col < HEAD_DIM_V) {
                    const int at = LANE_INDEX(row, lane) * HEAD_DIM_V + col;
                    atomic_inc(count + at);
                    o[at] = LANE(x, lane);
                }
            }
        }
    }
}

FN void probe_rows(engine *e, const elem *largest, const elem *sum, __global volatile int *owned, __global float *folded)
{
    FOR_ROWS(r)
    {
        const index row = ENGINE_ROW(e, r);
        const elem x = BASE_TWO(e, largest[r]), y = sum[r];
        if (ENGINE_OWNS_ROWS(e)) {
            for (int lane = 0; lane < LANES; lane++) {
                atomic_inc(owned + LANE_INDEX(row, lane));
                folded[LANE_INDEX(row, lane)] = LANE(x, lane);
                folded[BLOCK_M + LANE_INDEX(row, lane)] = LANE(y, lane);
            }
        }
    }
}

__kernel __attribute__((reqd_work_group_size(WORK_GROUP, 1, 1))) void probe(KERNEL_PARAMETERS)
{
    const option_data options = OPTION_DATA;
    engine e;
    tile t;
    elem largest[S_ROWS], now[S_ROWS], sum[S_ROWS], alpha[S_ROWS];
    ENGINE_LOCAL(e)
    __global volatile int *count = (__global volatile int *)workspace;
    __global volatile int *o_count = count + BLOCK_M * KEYS_OF_ALL;
    __global volatile int *owned = o_count + BLOCK_M * HEAD_DIM_V;
    __global float *folded = workspace + BLOCK_M * (KEYS_OF_ALL + HEAD_DIM_V + 1);
    /* A team that is the whole group has no other next to it, and PoCL 3.1 (LLVM 15, for haswell) miscompiles a return before
     * barriers, though it is never taken: the output was wrong, or work-item 0 ran the end of the kernel twice. */
#if TEAM != WORK_GROUP
    if (get_local_id(0) / TEAM > 0) {
        return;
    }
#endif
    tile_decode(&t, &args, &options, 0);
    engine_begin(&e, &t, &args, q_data, k_data, v_data);
    FOR_ROWS(r)
    {
        largest[r] = (elem)(-INFINITY);
        sum[r] = (elem)(0.0f);
        alpha[r] = (elem)(0.5f);
        FOR_O_COLS(c) { O_SET(&e, r, c, (elem)(1.0f)); }
    }
    /* As the kernel does it: of a constant number of blocks compilers make another text. */
    for (int key0 = tile_first_block(&t); key0 < t.key_end; key0 = tile_next_block(&t, key0)) {
        engine_qk(&e, &t, key0, args.scale * LOG2_E);
        FOR_ROWS(r) { now[r] = (elem)(-INFINITY); }
        probe_scores(&e, key0, scores_data, count, lse_data, now, sum);
        engine_fold_max(&e, now);
        FOR_ROWS(r) { largest[r] = LARGER(largest[r], now[r]); }
        engine_pv(&e, &t, key0, alpha);
    }
    engine_fold_sum(&e, sum);
    probe_output(&e, (__global float *)o_data, o_count);
    probe_rows(&e, largest, sum, owned, folded);
}
