/* SPDX-License-Identifier: Apache-2.0
 * Code of nv_mma and nv_wgmma after their products. A row is shared by four adjacent work-items of a warp, each with pairs of
 * adjacent columns. Included by these two engines.
 */
/* Folds over the four work-items of a row. */
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

/* How many of a work-item's columns of a block are at or before `key`, which is relative to column 0. Columns come in pairs,
 * eight keys apart. */
FN int columns_to(int key)
{
    const int near = clamp(key, -7, BLOCK_N - 7);
    return ((near + 8) >> 3) + ((near + 7) >> 3);
}
FN uint columns_below(int count) { return (uint)(((ulong)1 << count) - 1); }

/* One bit for each column in [first, last]. */
FN uint columns_within(int first, int last) { return columns_below(columns_to(last)) & ~columns_below(columns_to(first - 1)); }

/* Whether c holds for any work-item of the warp. */
#define ENGINE_ANY(c) (ptx_ballot(c) != 0u)
#include "cl/engines/nvidia/nv_late.cl"

#if O_TYPE == K_TYPE && O_TYPE != FP32 && HEAD_DIM_V % 32 == 0
/* The same for all work-items, so the branch is uniform. */
FN int stores_by_eight(const launch_args *a, __global const void *o_data)
{
    const size_t steps = (size_t)(a->o.batch | a->o.head | a->o.seq | a->o.base) * 2;
    return a->o.dim == 1 && (((size_t)o_data | steps) & 15) == 0;
}

/* From a work-item's pairs of 4 x 8 columns to its share of a row: 8 adjacent columns, the group number `item` of the four. The
 * four work-items exchange words first with the adjacent work-item, then with the one two further. */
FN uint4 exchange_pairs(const uint *w, int item)
{
    const int odd = item & 1, high = item & 2;
    const uint r0 = ptx_neighbour_word(odd ? w[0] : w[1], 1), r1 = ptx_neighbour_word(odd ? w[2] : w[3], 1);
    const uint x0 = odd ? r0 : w[0], x1 = odd ? w[1] : r0, x2 = odd ? r1 : w[2], x3 = odd ? w[3] : r1;
    const uint u0 = ptx_neighbour_word(high ? x0 : x2, 2), u1 = ptx_neighbour_word(high ? x1 : x3, 2);
    return high ? (uint4)(u0, u1, x2, x3) : (uint4)(x0, x1, u0, u1);
}

/* Scattered words keep the memory pipes busy for longer than two blocks of keys take. 16 bytes at once are four times as
 * fast. */
FN void store_row_by_eight(engine *e, int there, long at, int r, __global void *o_data)
{
    const int item = e->col / 2;
    __global uint4 *to = (__global uint4 *)((__global ushort *)o_data + at) + item;
    UNROLL for (int c = 0; c < O_COLS; c += 8)
    {
        uint w[4];
        UNROLL for (int i = 0; i < 4; i++) { w[i] = ptx_pack(O_GET(e, r, c + 2 * i), O_GET(e, r, c + 2 * i + 1)); }
        ptx_store_when(there, to + c / 2, exchange_pairs(w, item));
    }
}
#endif

#if O_TYPE == FP32
#define NV_STORE_O(c, to, x) ptx_store_float_when(c, (__global float *)(to), x)
typedef float nv_output;
#elif O_TYPE == FP16
#define NV_STORE_O(c, to, x) ptx_store_half_when(c, to, ptx_pack_fp16(x, 0.0f))
typedef ushort nv_output;
#else
#define NV_STORE_O(c, to, x) ptx_store_half_when(c, to, ptx_pack_bf16(x, 0.0f))
typedef ushort nv_output;
#endif

/* No branch here depends on the work-item. Otherwise the loop around nv_wgmma's store could not use uniform registers. */
FN void nv_store_row(engine *e, const tile *t, const launch_args *a, int r, __global void *o_data)
{
    const int row = ENGINE_ROW(e, r) + t->row0, there = row < t->rows;
    const long at = tile_row_offset(t, a->o, row);
#if O_TYPE == K_TYPE && O_TYPE != FP32 && HEAD_DIM_V % 32 == 0
    if (stores_by_eight(a, o_data)) {
        store_row_by_eight(e, there, at, r, o_data);
        return;
    }
#endif
    /* Step by step: one address for each element would take as many registers as elements. */
    const long step = ptx_here(8) * a->o.dim;
    __global nv_output *to = (__global nv_output *)o_data + at + ENGINE_O_COL(e, 0) * a->o.dim;
    UNROLL for (int c = 0; c < O_COLS; c += 2)
    {
        NV_STORE_O(there & (ENGINE_O_COL(e, c) < HEAD_DIM_V), to, O_GET(e, r, c));
        NV_STORE_O(there & (ENGINE_O_COL(e, c + 1) < HEAD_DIM_V), to + a->o.dim, O_GET(e, r, c + 1));
        to += step;
    }
}
#define ENGINE_STORE_ROW(e, t, a, r, o_data) nv_store_row(e, t, a, r, o_data)
