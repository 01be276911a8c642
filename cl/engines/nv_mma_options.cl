/* SPDX-License-Identifier: Apache-2.0
 * What nv_mma has of the mask and the bias of a block, for cl/score_pairs.cl: a bit a column in registers, and the bias of the
 * warp's rows in local memory, of the type BIAS_TYPE that it has in the call's buffer. Both are fetched while the first product
 * is at work. Included by cl/engines/nv_mma.cl.
 */
#define ENGINE_KEPT(e, r) (e)->kept[r]
#define ENGINE_BIAS(e, r, c, x) nv_bias(e, r, c, x)
#define ENGINE_HIDDEN(e, r, bits) (e)->hidden = (r) == 0 ? (bits) : (e)->hidden & (bits)
#define KEY_BITS ((1u << (S_COLS - 1)) * 2u - 1u)
#define BIAS_PLACE(e) ((e)->local_memory + LOCAL_SIZE - BIAS_SIZE)
/* The warp's first row in the tile. */
#define WARP_ROW(e) ((e)->warp * 16 * M_TILES)

/* The biases of columns c and c + 1 of elem r. */
FN void nv_bias(const engine *e, int r, int c, float *x)
{
#if BIAS_TYPE
    const uint at = BIAS_PLACE(e) + (uint)((e->row + r / 2 * 16 + r % 2 * 8) * BIAS_STRIDE + (e->col + c / 2 * 8) * BIAS_WIDTH);
#endif
#if BIAS_TYPE == FP32
    x[0] = as_float(ptx_load(at));
    x[1] = as_float(ptx_load(at + 4));
#elif BIAS_TYPE == BF16
    const uint word = ptx_load(at);
    x[0] = as_float(word << 16);
    x[1] = as_float(word & 0xFFFF0000u);
#elif BIAS_TYPE == FP16
    ptx_unpack_fp16(ptx_load(at), x);
#else
    x[0] = x[1] = 0.0f;
#endif
}

/* Element offset of key 0 in the mask or bias of a row of the tile; rows past the last have the last one's. */
FN long option_row(const tile *t, const tensor_view *v, int in_tile)
{
    const int row = min(t->row0 + in_tile, t->rows - 1);
    return v->base + t->batch * v->batch + tile_head(t, row) * v->head + tile_query(t, row) * v->seq;
}

/* The four work-items of a row read every fourth piece of eight keys each. */
FN void load_mask_pieces(engine *e, const tile *t, const launch_args *a, const option_data *b, int key0)
{
    FOR_ROWS(r)
    {
        __global const uint2 *pieces =
            (__global const uint2 *)(b->mask + option_row(t, &a->mask, e->row + r / 2 * 16 + r % 2 * 8) + key0);
        UNROLL for (int k = 0; k < MASK_PIECES; k++)
        {
            const uint2 x = pieces[min(4 * k + e->col / 2, BLOCK_N / 8 - 1)];
            e->pieces[r][2 * k] = x.x;
            e->pieces[r][2 * k + 1] = x.y;
        }
    }
}

/* They exchange what they found: bit 8k + i of the word of work-item n is key i of piece 4k + n. */
FN void take_mask_pieces(engine *e)
{
    FOR_ROWS(r)
    {
        uint mine = 0, bits = 0;
        UNROLL for (int k = 0; k < MASK_PIECES; k++)
        {
            mine |= (byte_bits(e->pieces[r][2 * k]) | byte_bits(e->pieces[r][2 * k + 1]) << 4) << (8 * k);
        }
        UNROLL for (int n = 0; n < 4; n++) { bits |= (ptx_word_of_four(mine, n) >> e->col & 0x03030303u) << (2 * n); }
        e->kept[r] = bits;
    }
}

/* A loop, since it is seldom needed: unrolled it would stand in the way of the rest. */
FN void take_mask_bytes(engine *e, const tile *t, const launch_args *a, const option_data *b, int key0)
{
    FOR_ROWS(r)
    {
        __global const uchar *row = b->mask + option_row(t, &a->mask, e->row + r / 2 * 16 + r % 2 * 8);
        uint bits = 0;
        _Pragma("unroll 1") for (int c = 0; c < S_COLS; c++)
        {
            const int key = key0 + ENGINE_S_COL(e, c);
            const uint byte = key < a->mask_columns ? row[key * a->mask.dim] : 0u;
            bits |= byte ? 1u << c : 0u;
        }
        e->kept[r] = bits;
    }
}

#if BIAS_TYPE
/* By each warp for its rows, 16 bytes at a time where they lie so. */
FN void fetch_bias(const engine *e, const tile *t, const launch_args *a, const option_data *b, int key0)
{
    const int lane = ptx_here((int)get_local_id(0)) % 32, rows = 16 * M_TILES;
    if (option_is_whole(&a->bias, b->bias, BIAS_WIDTH, 16, key0, a->bias_columns)) {
        const int pieces = BLOCK_N * BIAS_WIDTH / 16;
        for (int i = lane; i < rows * pieces; i += 32) {
            const int row = WARP_ROW(e) + i / pieces, at = i % pieces * 16;
            __global const uchar *from = (__global const uchar *)b->bias + (option_row(t, &a->bias, row) + key0) * BIAS_WIDTH;
            ptx_copy(BIAS_PLACE(e) + (uint)(row * BIAS_STRIDE + at), from + at, 16);
        }
        return;
    }
    _Pragma("unroll 4") for (int i = lane; i < rows * BLOCK_N; i += 32)
    {
        const int row = WARP_ROW(e) + i / BLOCK_N, col = i % BLOCK_N, there = key0 + col < a->bias_columns;
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

/* Behind the barrier of a block and before its product. */
FN void fetch_options(engine *e, const tile *t, const launch_args *a, const option_data *b, int key0, int class)
{
    e->hidden = 0;
    e->takes_pieces = 0;
    if (a->has_mask && (class & CLASS_MASKED)) {
        e->takes_pieces = option_is_whole(&a->mask, b->mask, 1, 8, key0, a->mask_columns);
        if (e->takes_pieces) {
            load_mask_pieces(e, t, a, b, key0);
        } else {
            take_mask_bytes(e, t, a, b, key0);
        }
    }
#if BIAS_TYPE
    if (a->bias_type && (class & CLASS_BIASED)) {
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
