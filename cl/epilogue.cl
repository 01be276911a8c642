/* SPDX-License-Identifier: Apache-2.0
 * The end of a tile: divides O by the row sum and stores LSE, as a natural logarithm or as the maximum and the sum. A row with
 * no visible key gives O = 0 and LSE = -inf, or a sum of 0.
 *
 * SPLIT 1: the keys of a tile are split into chunks. Each chunk stores a partial result in the workspace, in fp32, for
 * cl/split/merge.cl:
 *
 *         output of (batch, head, query, chunk)   HEAD_DIM_V floats each, not yet divided; chunks of a row are adjacent
 *         largest score of the same               after all outputs
 *         sum of weights of the same              after all largest scores
 *
 * The largest score and the sum stay separate: where scores are large, the single float maximum + log2(sum) has no digits left
 * for the sum.
 */

/* The sink of a row; -inf where there is none, and past the queries of the sequence. */
FN float row_sink(const tile *t, const launch_args *a, const option_data *b, int row)
{
    return a->has_sinks && tile_query(t, row) < t->q_length ? b->sinks[a->sinks + tile_head(t, row)] : -INFINITY;
}

/* A sink adds to the denominator of the rows of its head, and to nothing else. *scale is the factor that O needs for it. All
 * values are in natural units, in which sinks are given. A sink of -inf has no effect, and NaN passes through. */
FN void add_sink(elem sink, elem *top, elem *l, elem *scale)
{
    const elem over = sink - *top, lesser = EXP2(-fabs(over) * LOG2_E);
    const index none = (index)(sink == (elem)(-INFINITY)), wins = (index)(over > (elem)(0.0f));
    *scale = PICK(none, (elem)(1.0f), PICK(wins, lesser, (elem)(1.0f)));
    *l = PICK(none, *l, PICK(wins, *l * lesser + (elem)(1.0f), *l + lesser));
    *top = PICK(none, *top, PICK(wins, sink, *top));
}

/* *to = x where c holds. */
#ifndef STORE_FLOAT_WHEN
#define STORE_FLOAT_WHEN(c, to, x)                                                                                             \
    if (c) {                                                                                                                   \
        *(to) = (x);                                                                                                           \
    }
#endif

/* ln of a sum of exponentials, from its largest exponent `top` and `sum`, the sum relative to it. */
#define LOG_SUM(top, sum) PICK((sum) == (elem)(0.0f), (elem)(-INFINITY), (top) + log2(sum) * (elem)(LN_2))

/* Stored by one of the work-items that share the rows. */
FN void store_lse_row(const tile *t, const launch_args *a, index in_tile, elem top, elem sum, int is_owner,
                      __global float *lse_data)
{
    const elem first = a->lse_floats == 2 ? top : LOG_SUM(top, sum);
    FOR_LANES(lane)
    {
        const int row = LANE_INDEX(in_tile, lane) + t->row0, there = is_owner & (row < t->rows);
        __global float *to = lse_data + a->lse_floats * tile_row_offset(t, a->lse, row);
        STORE_FLOAT_WHEN(there, to, LANE(first, lane));
        STORE_FLOAT_WHEN(there & (a->lse_floats == 2), to + 1, LANE(sum, lane));
    }
}

#if SPLIT
FN void store_partial_row(engine *e, const tile *t, const launch_args *a, int r, __global float *workspace, elem top, elem sum)
{
    const index in_tile = ENGINE_ROW(e, r);
    FOR_LANES(lane)
    {
        const int row = LANE_INDEX(in_tile, lane) + t->row0;
        /* One condition a store, and an address that is valid either way: PoCL 3.1 turns nested conditions into wild stores. */
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
        /* For a row with a NaN score, l is NaN and not 0. The division below keeps the NaN. */
        const index unseen = (index)(l[r] == (elem)(0.0f));
        elem top = IN_NATURAL_UNITS(BASE_TWO(e, m[r])), sum = l[r], scale = (elem)(1.0f);
        if (a->has_sinks) {
            add_sink(sinks_of(t, a, b, in_tile), &top, &sum, &scale);
        }
        const elem inverse = scale / PICK(sum == (elem)(0.0f), (elem)(1.0f), sum);
        FOR_O_COLS(c) { O_SET(e, r, c, PICK(unseen, (elem)(0.0f), O_GET(e, r, c) * inverse)); }
        store_row(e, t, a, r, o_data);
        if (a->lse_floats) {
            store_lse_row(t, a, in_tile, top, sum, ENGINE_OWNS_ROWS(e), lse_data);
        }
    }
}
#endif
