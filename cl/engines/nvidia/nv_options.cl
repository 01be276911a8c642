/* SPDX-License-Identifier: Apache-2.0
 * The mask and the bias of a block in nv_mma and nv_wgmma, for cl/score_pairs.cl. The mask is one bit a column in registers.
 * The bias of the warp's rows is staged in local memory, in BIAS_TYPE, the type of the call's buffer. Each engine decides
 * where in local memory, and when both are fetched. Included by these two engines, where SCORE_OPTIONS.
 */
#define ENGINE_BIAS(e, r, c, x) nv_bias(e, r, c, x)
/* One bit for each of this work-item's columns of a block. */
#define KEY_BITS ((1u << (S_COLS - 1)) * 2u - 1u)
#define MASK_PIECES ((BLOCK_N + 31) / 32) /* pieces of eight keys of a row that a work-item reads */

/* The biases of columns c and c + 1 of elem r, from bias_place(e, r, c) of the engine. */
FN void nv_bias(const engine *e, int r, int c, float *x)
{
    const uint at = bias_place(e, r, c);
#if BIAS_TYPE == FP32
    x[0] = as_float(ptx_load(at));
    x[1] = as_float(ptx_load(at + 4));
#elif BIAS_TYPE == BF16
    const uint word = ptx_load(at);
    x[0] = as_float(word << 16);
    x[1] = as_float(word & 0xFFFF0000u);
#else
    ptx_unpack_fp16(ptx_load(at), x);
#endif
}

/* Whether the address and the strides of mask or bias, with elements of `size` bytes, are multiples of `bytes`, and all columns
 * of the block exist. The same for all work-items. */
FN int option_is_whole(const tensor_view *v, __global const void *data, int size, int bytes, int key0, int columns)
{
    const size_t steps = (size_t)(v->base | v->batch | v->head | v->seq) * size;
    return v->dim == 1 && (((size_t)data | steps) & (bytes - 1)) == 0 && key0 + BLOCK_N <= columns;
}

/* One bit for each of four bytes: whether it is not 0. */
FN uint byte_bits(uint x)
{
    const uint high = (((x & 0x7F7F7F7Fu) + 0x7F7F7F7Fu) | x) & 0x80808080u;
    return high * 0x00204081u >> 28;
}

/* Element offset of key 0 in the mask or bias of a row of the tile. Rows past the last use the last row's. */
FN long option_row(const tile *t, const tensor_view *v, int in_tile)
{
    const int row = min(t->row0 + in_tile, t->rows - 1);
    return v->base + t->batch * v->batch + tile_head(t, row) * v->head + tile_query(t, row) * v->seq;
}

/* Each of the four work-items of a row reads every fourth piece of eight keys: piece 4k + n is number k of work-item n. */
FN uint2 mask_piece(const engine *e, __global const uchar *from, int k)
{
    return ((__global const uint2 *)from)[min(4 * k + e->col / 2, BLOCK_N / 8 - 1)];
}
FN uint piece_bits(uint2 x, int k) { return (byte_bits(x.x) | byte_bits(x.y) << 4) << (8 * k); }
/* The four work-items exchange their bits: bit 8k + i of the word of work-item n is key i of piece 4k + n. */
FN uint mask_of_four(const engine *e, uint mine)
{
    uint bits = 0;
    UNROLL for (int n = 0; n < 4; n++) { bits |= (ptx_word_of_four(mine, n) >> e->col & 0x03030303u) << (2 * n); }
    return bits;
}

/* A loop, since it is rarely needed and unrolled code would slow down the common case. */
FN uint mask_by_bytes(const engine *e, const launch_args *a, __global const uchar *row, int key0)
{
    uint bits = 0;
    _Pragma("unroll 1") for (int c = 0; c < S_COLS; c++)
    {
        const int key = key0 + ENGINE_S_COL(e, c);
        const uint byte = key < a->mask_columns ? row[key * a->mask.dim] : 0u;
        bits |= byte ? 1u << c : 0u;
    }
    return bits;
}

/* The columns visible under lengths and diagonal. */
FN void see_range(engine *e, const tile *t, int key0)
{
    const int open = tile_block_is_open(t, key0), key = key0 + ENGINE_S_COL(e, 0);
    FOR_ROWS(r)
    {
        const int query = tile_query(t, t->row0 + ROW_OF(e, r));
        ENGINE_SEEN(e, r) = open ? ~0u : columns_within(FIRST_KEY(t, query) - key, LAST_KEY(t, query) - key);
    }
}

/* Then the columns visible under the mask. Where pieces are whole, load_mask only loads them and take_mask applies them once
 * they have arrived. Otherwise load_mask applies the mask at once. */
FN void load_mask(engine *e, const tile *t, const launch_args *a, const option_data *b, int key0)
{
    e->takes_pieces = option_is_whole(&a->mask, b->mask, 1, 8, key0, a->mask_columns);
    FOR_ROWS(r)
    {
        __global const uchar *row = b->mask + option_row(t, &a->mask, ROW_OF(e, r));
        if (e->takes_pieces) {
            UNROLL for (int k = 0; k < MASK_PIECES; k++) { e->pieces[r][k] = mask_piece(e, row + key0, k); }
        } else {
            ENGINE_SEEN(e, r) &= mask_by_bytes(e, a, row, key0);
        }
    }
}
FN void take_mask(engine *e)
{
    FOR_ROWS(r)
    {
        uint mine = 0;
        UNROLL for (int k = 0; k < MASK_PIECES; k++) { mine |= piece_bits(e->pieces[r][k], k); }
        ENGINE_SEEN(e, r) &= mask_of_four(e, mine);
    }
}

#if BIAS_TYPE
/* One warp copies the bias of `rows` rows from row0 on. Keys from bias_columns on are masked, and nothing is read there. */
FN void bias_by_elements(const engine *e, const tile *t, const launch_args *a, const option_data *b, int key0, int row0,
                         int rows, int lane)
{
    _Pragma("unroll 4") for (int i = lane; i < rows * BLOCK_N; i += 32)
    {
        const int row = row0 + i / BLOCK_N, col = i % BLOCK_N, there = key0 + col < a->bias_columns;
        const long from = option_row(t, &a->bias, row) + (key0 + col) * a->bias.dim;
        const uint at = BIAS_PLACE(e) + (uint)(row * BIAS_STRIDE + col * BIAS_WIDTH);
#if BIAS_TYPE == FP32
        ptx_store_word(at, there ? ((__global const uint *)b->bias)[from] : 0xFF800000u);
#else
        ptx_store_half(at, there ? ((__global const ushort *)b->bias)[from] : BIAS_TYPE == FP16 ? 0xFC00u : 0xFF80u);
#endif
    }
}
#endif
