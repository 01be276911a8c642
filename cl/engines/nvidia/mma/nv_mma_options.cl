/* SPDX-License-Identifier: Apache-2.0
 * Fetches the mask and the bias of a block in nv_mma, overlapped with the first product. Included by
 * cl/engines/nvidia/mma/nv_mma.cl.
 */
#define BIAS_PLACE(e) ((e)->local_memory + LOCAL_SIZE - BIAS_SIZE)
#define ROW_OF(e, r) ((e)->row + (r) / 2 * 16 + (r) % 2 * 8)
FN uint bias_place(const engine *e, int r, int c)
{
    return BIAS_PLACE(e) + (uint)(ROW_OF(e, r) * BIAS_STRIDE + (e->col + c / 2 * 8) * BIAS_WIDTH);
}
#include "cl/engines/nvidia/nv_options.cl"

#if BIAS_TYPE
/* Each warp copies the bias of its own rows, 16 bytes at a time where alignment allows. */
FN void fetch_bias(const engine *e, const tile *t, const launch_args *a, const option_data *b, int key0)
{
    const int lane = ptx_here((int)get_local_id(0)) % 32, rows = 16 * M_TILES, row0 = e->warp * rows;
    if (!option_is_whole(&a->bias, b->bias, BIAS_WIDTH, 16, key0, a->bias_columns)) {
        bias_by_elements(e, t, a, b, key0, row0, rows, lane);
        return;
    }
    const int pieces = BLOCK_N * BIAS_WIDTH / 16;
    for (int i = lane; i < rows * pieces; i += 32) {
        const int row = row0 + i / pieces, at = i % pieces * 16;
        __global const uchar *from = (__global const uchar *)b->bias + (option_row(t, &a->bias, row) + key0) * BIAS_WIDTH;
        ptx_copy(BIAS_PLACE(e) + (uint)(row * BIAS_STRIDE + at), from + at, 16);
    }
}
#endif

/* Called after the barrier of a block and before its product. */
FN void fetch_options(engine *e, const tile *t, const launch_args *a, const option_data *b, int key0, int class)
{
    see_range(e, t, key0);
    e->takes_pieces = 0;
    if (has_mask(a) && (class & CLASS_MASKED)) {
        load_mask(e, t, a, b, key0);
    }
#if BIAS_TYPE
    if (has_bias(a) && (class & CLASS_BIASED)) {
        fetch_bias(e, t, a, b, key0);
    }
#endif
    PTX_COPY_COMMIT();
}

/* Called after the product. With two slots the copies of the next block may still be in flight. */
FN void take_options(engine *e)
{
    PTX_COPY_WAIT(SLOTS - 1);
    PTX_WARP_TOGETHER();
    if (e->takes_pieces) {
        take_mask(e);
    }
}

/* The keys of a block that are masked for every row of the warp, one bit for each of this work-item's columns. */
FN uint unseen_by_warp(const engine *e)
{
    uint unseen = KEY_BITS;
    FOR_ROWS(r) { unseen &= ~e->sees[r]; }
    UNROLL for (int bits = 4; bits < 32; bits *= 2) { unseen &= ptx_neighbour_word(unseen, bits); }
    return unseen;
}
