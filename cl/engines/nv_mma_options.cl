/* SPDX-License-Identifier: Apache-2.0
 * When nv_mma fetches mask and bias of a block: beside the first product. Included by cl/engines/nv_mma.cl.
 */
#define BIAS_PLACE(e) ((e)->local_memory + LOCAL_SIZE - BIAS_SIZE)
#define ROW_OF(e, r) ((e)->row + (r) / 2 * 16 + (r) % 2 * 8)
#include "cl/engines/nv_options.cl"

/* The biases of columns c and c + 1 of elem r. */
FN void nv_bias(const engine *e, int r, int c, float *x)
{
#if BIAS_TYPE
    bias_pair(BIAS_PLACE(e) + (uint)(ROW_OF(e, r) * BIAS_STRIDE + (e->col + c / 2 * 8) * BIAS_WIDTH), x);
#else
    x[0] = x[1] = 0.0f;
#endif
}

FN void load_mask_pieces(engine *e, const tile *t, const launch_args *a, const option_data *b, int key0)
{
    FOR_ROWS(r)
    {
        __global const uchar *from = b->mask + option_row(t, &a->mask, ROW_OF(e, r)) + key0;
        UNROLL for (int k = 0; k < MASK_PIECES; k++) { e->pieces[r][k] = mask_piece(e, from, k); }
    }
}
FN void take_mask_pieces(engine *e)
{
    FOR_ROWS(r)
    {
        uint mine = 0;
        UNROLL for (int k = 0; k < MASK_PIECES; k++) { mine |= piece_bits(e->pieces[r][k], k); }
        e->kept[r] = mask_of_four(e, mine);
    }
}

FN void take_mask_bytes(engine *e, const tile *t, const launch_args *a, const option_data *b, int key0)
{
    FOR_ROWS(r) { e->kept[r] = mask_by_bytes(e, a, b->mask + option_row(t, &a->mask, ROW_OF(e, r)), key0); }
}

#if BIAS_TYPE
/* By each warp for its rows. */
FN void fetch_bias(const engine *e, const tile *t, const launch_args *a, const option_data *b, int key0)
{
    const int lane = ptx_here((int)get_local_id(0)) % 32, rows = 16 * M_TILES, row0 = e->warp * rows;
    (void)bias_of_rows(e, t, a, b, key0, row0, rows, lane);
}
#endif

/* Behind the barrier of a block and before its product. */
FN void fetch_options(engine *e, const tile *t, const launch_args *a, const option_data *b, int key0, int class)
{
    e->hidden = 0;
    e->takes_pieces = 0;
    if (HAS_MASK(a) && (class & CLASS_MASKED)) {
        e->takes_pieces = option_is_whole(&a->mask, b->mask, 1, 8, key0, a->mask_columns);
        if (e->takes_pieces) {
            load_mask_pieces(e, t, a, b, key0);
        } else {
            take_mask_bytes(e, t, a, b, key0);
        }
    }
#if BIAS_TYPE
    if (HAS_BIAS(a) && (class & CLASS_BIASED)) {
        fetch_bias(e, t, a, b, key0);
    }
#endif
    PTX_COPY_COMMIT();
}

/* Behind the product. With two slots the next block's copies may stay on their way. */
FN void take_options(engine *e)
{
    PTX_COPY_WAIT(SLOTS - 1);
    PTX_WARP_TOGETHER();
    if (e->takes_pieces) {
        take_mask_pieces(e);
    }
}

/* Which keys of a block no row of the warp sees, a bit each of this work-item's columns. */
FN uint unseen_by_warp(const engine *e)
{
    uint unseen = e->hidden & KEY_BITS;
    UNROLL for (int bits = 4; bits < 32; bits *= 2) { unseen &= ptx_neighbour_word(unseen, bits); }
    return unseen;
}
