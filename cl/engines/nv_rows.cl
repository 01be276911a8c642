/* SPDX-License-Identifier: Apache-2.0
 * What nv_mma and nv_wgmma have in common behind their products: a row is shared by four neighbours of a warp, each with pairs of
 * neighbouring columns. Included by these two engines.
 */
/* The four work-items of a row. */
FN void engine_fold_max(engine *e, elem *x)
{
    (void)e;
    UNROLL for (int bits = 1; bits < 4; bits *= 2)
    {
        FOR_ROWS(r) { x[r] = LARGER(x[r], ptx_neighbour(x[r], bits)); }
    }
}
FN void engine_fold_sum(engine *e, elem *x)
{
    (void)e;
    UNROLL for (int bits = 1; bits < 4; bits *= 2)
    {
        FOR_ROWS(r) { x[r] += ptx_neighbour(x[r], bits); }
    }
}

/* S stays as the product left it, and the factor goes into the exponent: one multiplication a score less. Not with a factor
 * that is not positive (the maximum would be another) or over 1 (the largest number times it would be infinite). With options
 * the scores are in base two before softmax sees them. */
#if !SCORE_OPTIONS
#define ENGINE_POWER(e, x, y) EXP2(fma(x, (e)->late, -((y) * (e)->late)))
#define ENGINE_BASE_TWO(e, x) ((x) * (e)->late)
#endif
FN void scale_scores(engine *e, float factor)
{
    const int late = !SCORE_OPTIONS && factor > 1e-30f && factor <= 1.0f;
    e->late = late ? factor : 1.0f;
    if (!late) {
        FOR_ROWS(r)
        {
            FOR_S_COLS(c) { S_SET(e, r, c, S_GET(e, r, c) * factor); }
        }
    }
}

/* Two neighbours at once where they lie in one aligned word: numbers of the call, a uniform branch. */
FN void nv_store_row(engine *e, const tile *t, const launch_args *a, int r, __global void *o_data)
{
    const int row = ENGINE_ROW(e, r) + t->row0;
    if (row >= t->rows) {
        return;
    }
    const long at = tile_row_offset(t, a->o, row);
#if O_TYPE != FP32 && HEAD_DIM_V % 2 == 0 && O_TYPE == K_TYPE
    if (a->o.dim == 1 && (((size_t)o_data + (size_t)at * 2) & 3) == 0) {
        __global uint *to = (__global uint *)((__global ushort *)o_data + at);
        UNROLL for (int c = 0; c < O_COLS; c += 2)
        {
            if (ENGINE_O_COL(e, c) < HEAD_DIM_V) {
                to[ENGINE_O_COL(e, c) / 2] = ptx_pack(O_GET(e, r, c), O_GET(e, r, c + 1));
            }
        }
        return;
    }
#endif
    /* Step by step: as many addresses at once as there are elements would take as many registers. */
    const long step = ptx_here(8) * a->o.dim;
    long to = at + ENGINE_O_COL(e, 0) * a->o.dim;
    UNROLL for (int c = 0; c < O_COLS; c += 2)
    {
        if (ENGINE_O_COL(e, c) < HEAD_DIM_V) {
            STORE_O(O_GET(e, r, c), o_data, to);
        }
        if (ENGINE_O_COL(e, c + 1) < HEAD_DIM_V) {
            STORE_O(O_GET(e, r, c + 1), o_data, to + a->o.dim);
        }
        to += step;
    }
}
#define ENGINE_STORE_ROW(e, t, a, r, o_data) nv_store_row(e, t, a, r, o_data)
