/* SPDX-License-Identifier: Apache-2.0
 * What leaves the loop: O divided by the row sum, LSE in natural logarithm. A row that saw nothing gives 0 and -inf.
 *
 * SPLIT 1: the keys of a tile are split into chunks, and what leaves is a partial result in the workspace, in fp32, for
 * cl/split/merge.cl:
 *
 *        output of (batch, head, query, chunk)   HEAD_DIM_V floats each, chunks of a row side by side, not yet divided
 *        largest score of the same, in base two  after all outputs
 *        sum of weights of the same              after all of these
 *
 * The two stay apart: one float for maximum + log2(sum) has no digits left for the sum where scores are large.
 */

/* The sink of a row in base two: -inf where there is none, and past the queries of the sequence. A finite one stays finite; NaN
 * passes. */
FN float row_sink(const tile *t, const launch_args *a, const option_data *b, int row)
{
    const float sink = a->has_sinks && tile_query(t, row) < t->q_length ? b->sinks[a->sinks + tile_head(t, row)] : -INFINITY;
    const float x = sink * LOG2_E, y = x > LARGEST ? LARGEST : x;
    return y < -LARGEST && sink != -INFINITY ? -LARGEST : y;
}

/* A sink takes part in the denominator of its head's rows, and in nothing else. `scale` is what O and l are multiplied by for
 * it. */
FN void add_sink(elem s, elem *m, elem *l, elem *scale)
{
    const elem now = LARGER(s, *m);
    const elem base = PICK(now == (elem)(-INFINITY), (elem)(0.0f), now);
    *scale = EXP2(*m - base);
    *l = *l * *scale + EXP2(s - base);
    *m = now;
}

/* *to = x where c holds. */
#ifndef STORE_FLOAT_WHEN
#define STORE_FLOAT_WHEN(c, to, x)                                                                                             \
    if (c) {                                                                                                                   \
        *(to) = (x);                                                                                                           \
    }
#endif

/* By one of the work-items that share the rows. */
FN void store_lse_row(const tile *t, const launch_args *a, index in_tile, elem lse, int is_owner, __global float *lse_data)
{
    FOR_LANES(lane)
    {
        const int row = LANE_INDEX(in_tile, lane) + t->row0;
        STORE_FLOAT_WHEN(is_owner & (row < t->rows), lse_data + tile_row_offset(t, a->lse, row), LANE(lse, lane));
    }
}

#if SPLIT
FN void store_partial_row(engine *e, const tile *t, const launch_args *a, int r, __global float *workspace, elem top, elem sum)
{
    const index in_tile = ENGINE_ROW(e, r);
    FOR_LANES(lane)
    {
        const int row = LANE_INDEX(in_tile, lane) + t->row0;
        /* One condition a store and an address that is good either way: PoCL 3.1 makes wild stores of nested ones. */
        const int there = row < t->rows, real = there ? row : t->row0;
        const long partial = partial_row(a, t->batch, tile_head(t, real), tile_query(t, real), t->chunk);
        __global float *out = workspace + partial_output(a, partial);
#ifdef ENGINE_PARTIAL_ROW
        if (there) {
            ENGINE_PARTIAL_ROW(e, r, lane, out);
        }
#else
        FOR_O_COLS(c)
        {
            const int col = ENGINE_O_COL(e, c);
            if (there & (col < HEAD_DIM_V)) {
                const elem x = O_GET(e, r, c);
                out[col] = LANE(x, lane);
            }
        }
#endif
        if (there & ENGINE_OWNS_ROWS(e)) {
            workspace[partial_top(a, partial)] = LANE(top, lane);
            workspace[partial_sum(a, partial)] = LANE(sum, lane);
        }
    }
}
#else
FN void store_row(engine *e, const tile *t, const launch_args *a, int r, __global void *o_data)
{
#ifdef ENGINE_STORE_ROW
    ENGINE_STORE_ROW(e, t, a, r, o_data);
#else
    const index in_tile = ENGINE_ROW(e, r);
    FOR_LANES(lane)
    {
        const int row = LANE_INDEX(in_tile, lane) + t->row0;
        if (row < t->rows) {
            const long at = tile_row_offset(t, a->o, row);
            FOR_O_COLS(c)
            {
                const int col = ENGINE_O_COL(e, c);
                if (col < HEAD_DIM_V) {
                    const elem x = O_GET(e, r, c);
                    STORE_O(LANE(x, lane), o_data, at + col * a->o.dim);
                }
            }
        }
    }
#endif
}
#endif

#if SPLIT
FN void store_tile(engine *e, const tile *t, const launch_args *a, const option_data *b, elem *m, elem *l,
                   __global void *o_data, __global float *lse_data, __global float *workspace)
{
    engine_fold_sum(e, l);
    FOR_ROWS(r) { store_partial_row(e, t, a, r, workspace, BASE_TWO(e, m[r]), l[r]); }
}
#else
/* The sinks of the rows of one elem. */
FN elem sinks_of(const tile *t, const launch_args *a, const option_data *b, index in_tile)
{
    elem x;
    FOR_LANES(lane)
    {
        const int row = min(LANE_INDEX(in_tile, lane) + t->row0, t->rows - 1);
        LANE(x, lane) = row_sink(t, a, b, row);
    }
    return x;
}

FN void store_tile(engine *e, const tile *t, const launch_args *a, const option_data *b, elem *m, elem *l,
                   __global void *o_data, __global float *lse_data, __global float *workspace)
{
    engine_fold_sum(e, l);
    FOR_ROWS(r)
    {
        const index in_tile = ENGINE_ROW(e, r);
        /* l is NaN, not 0, for a row with a NaN score, and the division below keeps that. */
        const index unseen = (index)(l[r] == (elem)(0.0f));
        elem top = BASE_TWO(e, m[r]), sum = l[r], scale = (elem)(1.0f);
        if (a->has_sinks) {
            add_sink(sinks_of(t, a, b, in_tile), &top, &sum, &scale);
        }
        const index empty = (index)(sum == (elem)(0.0f));
        const elem inverse = scale / PICK(empty, (elem)(1.0f), sum);
        const elem lse = PICK(empty, (elem)(-INFINITY), top + log2(sum));
        FOR_O_COLS(c) { O_SET(e, r, c, PICK(unseen, (elem)(0.0f), O_GET(e, r, c) * inverse)); }
        store_row(e, t, a, r, o_data);
        if (a->has_lse) {
            store_lse_row(t, a, in_tile, lse * LN_2, ENGINE_OWNS_ROWS(e), lse_data);
        }
    }
}
#endif
