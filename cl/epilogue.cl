/* SPDX-License-Identifier: Apache-2.0
 * What leaves the loop: O divided by the row sum, LSE in natural logarithm. A row that saw nothing gives 0 and -inf.
 */
FN void store_tile(engine *e, const tile *t, const launch_args *a, elem *m, elem *l, __global void *o_data,
                   __global float *lse_data)
{
    engine_fold_sum(e, l);
    FOR_ROWS(r)
    {
        const index in_tile = ENGINE_ROW(e, r);
        /* l is NaN, not 0, for a row with a NaN score, and its division below keeps that. */
        const index empty = (index)(l[r] == (elem)(0.0f));
        const elem inverse = (elem)(1.0f) / PICK(empty, (elem)(1.0f), l[r]);
        const elem lse = PICK(empty, (elem)(-INFINITY), (m[r] + log2(l[r])) * LN_2);
        FOR_O_COLS(c) { O_SET(e, r, c, PICK(empty, (elem)(0.0f), O_GET(e, r, c) * inverse)); }
#ifdef ENGINE_STORE_ROW
        ENGINE_STORE_ROW(e, t, a, r, o_data);
#else
        for (int lane = 0; lane < LANES; lane++) {
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
        if (a->has_lse) {
            if (ENGINE_OWNS_ROWS(e)) {
                for (int lane = 0; lane < LANES; lane++) {
                    const int row = LANE_INDEX(in_tile, lane) + t->row0;
                    if (row < t->rows) {
                        lse_data[tile_row_offset(t, a->lse, row)] = LANE(lse, lane);
                    }
                }
            }
        }
    }
}
