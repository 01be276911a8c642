/* SPDX-License-Identifier: Apache-2.0
 * Fetches what cl/engines/nv_wgmma_options.cl has of a block's mask and bias. Included behind cl/score.cl.
 */
#if SCORE_OPTIONS
/* Element offset of key 0 in the mask or bias of a row of the tile; rows past the last have the last one's. */
FN long option_row(const tile *t, const tensor_view *v, int row)
{
    return v->base + t->batch * v->batch + t->head0 * v->head + min(t->row0 + row, t->rows - 1) * v->seq;
}

/* The four work-items of a row read every fourth piece of eight keys each and exchange what they found: bit 8k + i of the word
 * of work-item n is key i of piece 4k + n. */
FN uint mask_by_pieces(const engine *e, __global const uchar *from)
{
    __global const uint2 *pieces = (__global const uint2 *)from;
    const int item = e->col / 2;
    uint mine = 0, bits = 0;
    UNROLL for (int k = 0; k < (BLOCK_N + 31) / 32; k++)
    {
        const uint2 x = pieces[min(4 * k + item, BLOCK_N / 8 - 1)];
        mine |= (byte_bits(x.x) | byte_bits(x.y) << 4) << (8 * k);
    }
    UNROLL for (int n = 0; n < 4; n++) { bits |= (ptx_word_of_four(mine, n) >> e->col & 0x03030303u) << (2 * n); }
    return bits;
}

/* A loop, since it is seldom needed: unrolled it would stand in the way of the rest. */
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

FN void fetch_mask(engine *e, const tile *t, const launch_args *a, const option_data *b, int key0)
{
    const int whole = option_is_whole(&a->mask, b->mask, 1, 8, key0, a->mask_columns);
    FOR_ROWS(r)
    {
        __global const uchar *row = b->mask + option_row(t, &a->mask, ENGINE_ROW(e, r));
        e->kept[r] = whole ? mask_by_pieces(e, row + key0) : mask_by_bytes(e, a, row, key0);
    }
}

#if BIAS_TYPE
/* By each warp for its rows, 16 bytes at a time where they lie so. */
FN void fetch_bias(const engine *e, const tile *t, const launch_args *a, const option_data *b, int key0)
{
    const int item = ptx_here((int)get_local_id(0)) - 128, row0 = item / 32 * 16, lane = item % 32;
    if (option_is_whole(&a->bias, b->bias, BIAS_WIDTH, 16, key0, a->bias_columns)) {
        const int pieces = BLOCK_N * BIAS_WIDTH / 16;
        for (int i = lane; i < 16 * pieces; i += 32) {
            const int row = row0 + i / pieces, at = i % pieces * 16;
            __global const uchar *from = (__global const uchar *)b->bias + (option_row(t, &a->bias, row) + key0) * BIAS_WIDTH;
            ptx_copy(BIAS_PLACE(e) + (uint)(row * BIAS_STRIDE + at), from + at, 16);
        }
        PTX_COPY_COMMIT();
        return;
    }
    _Pragma("unroll 4") for (int i = lane; i < 16 * BLOCK_N; i += 32)
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
#endif
