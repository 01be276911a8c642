/* SPDX-License-Identifier: Apache-2.0
 * Fetches the mask and the bias of a block in nv_wgmma, once its K has arrived. Included by
 * cl/engines/nvidia/wgmma/nv_wgmma.cl.
 */
#if SCORE_OPTIONS
#define ROW_OF(e, r) ENGINE_ROW(e, r)
FN uint bias_place(const engine *e, int r, int c)
{
    const int item = (int)get_local_id(0) - 128;
    const uint row = (uint)(item / 32 * 16 + item % 32 / 4 + 8 * r), col = (uint)(item % 4 * 2 + c / 2 * 8);
    return BIAS_PLACE(e) + row * BIAS_STRIDE + col * BIAS_WIDTH;
}
#include "cl/engines/nvidia/nv_options.cl"

/* The columns visible under a bias with -inf, once it is in local memory. */
#define ENGINE_BIAS_TAKEN
FN void take_hiding_bias(engine *e)
{
    FOR_ROWS(r)
    {
        uint seen = 0;
        UNROLL for (int c = 0; c < S_COLS; c += 2)
        {
            float x[2];
            nv_bias(e, r, c, x);
            seen |= (x[0] == -INFINITY ? 0u : 1u << c) | (x[1] == -INFINITY ? 0u : 2u << c);
        }
        e->seen[r] &= seen;
    }
}

#if BIAS_TYPE
/* Each warp copies the bias of its rows, after it has added their biases of the block before. It copies 16 bytes at a time
 * where alignment allows. Rows are one stride apart, since a tile has one head. */
FN void fetch_bias(const engine *e, const tile *t, const launch_args *a, const option_data *b, int key0)
{
    const int item = ptx_here((int)get_local_id(0)) - 128, row0 = item / 32 * 16, lane = item % 32;
    if (!option_is_whole(&a->bias, b->bias, BIAS_WIDTH, 16, key0, a->bias_columns)) {
        bias_by_elements(e, t, a, b, key0, row0, 16, lane);
        return;
    }
    const int pieces = BLOCK_N * BIAS_WIDTH / 16, at_once = pieces <= 8 ? 4 : pieces <= 16 ? 2 : 1; /* in a row; rows */
    const int mine = min(lane, at_once * pieces - 1), at = mine % pieces * 16, step = at_once * BIAS_WIDTH;
    int row = row0 + mine / pieces;
    __global const uchar *from = (__global const uchar *)b->bias + (option_row(t, &a->bias, row) + key0) * BIAS_WIDTH + at;
    const uint to = BIAS_PLACE(e) + (uint)(row * BIAS_STRIDE + at);
    UNROLL for (int i = 0; i < 16; i += at_once)
    {
        ptx_copy(to + (uint)(i * BIAS_STRIDE), from, 16);
        row += at_once;
        from += t->row0 + row < t->rows ? a->bias.seq * step : 0;
    }
    PTX_COPY_COMMIT();
}
#endif
#endif
