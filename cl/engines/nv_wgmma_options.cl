/* SPDX-License-Identifier: Apache-2.0
 * When nv_wgmma fetches mask and bias of a block: while the product is at work. Included by cl/engines/nv_wgmma.cl.
 */
#if SCORE_OPTIONS
#include "cl/engines/nv_options.cl"

/* The biases of columns c and c + 1 of elem r. */
FN void nv_bias(const engine *e, int r, int c, float *x)
{
    const int item = (int)get_local_id(0) - 128;
    const uint row = (uint)(item / 32 * 16 + item % 32 / 4 + 8 * r), col = (uint)(item % 4 * 2 + c / 2 * 8);
    bias_pair(BIAS_PLACE(e) + row * BIAS_STRIDE + col * BIAS_WIDTH, x);
}

FN void fetch_mask(engine *e, const tile *t, const launch_args *a, const option_data *b, int key0)
{
    const int whole = option_is_whole(&a->mask, b->mask, 1, 8, key0, a->mask_columns);
    FOR_ROWS(r)
    {
        __global const uchar *row = b->mask + option_row(t, &a->mask, ENGINE_ROW(e, r));
        if (whole) {
            uint mine = 0;
            UNROLL for (int k = 0; k < MASK_PIECES; k++) { mine |= piece_bits(mask_piece(e, row + key0, k), k); }
            e->kept[r] = mask_of_four(e, mine);
        } else {
            e->kept[r] = mask_by_bytes(e, a, row, key0);
        }
    }
}

#if BIAS_TYPE
/* By each warp for its rows. */
FN void fetch_bias(const engine *e, const tile *t, const launch_args *a, const option_data *b, int key0)
{
    const int item = ptx_here((int)get_local_id(0)) - 128, row0 = item / 32 * 16, lane = item % 32;
    if (bias_of_rows(e, t, a, b, key0, row0, 16, lane)) {
        PTX_COPY_COMMIT();
    }
}
#endif
#endif
