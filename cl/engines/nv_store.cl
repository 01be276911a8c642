/* SPDX-License-Identifier: Apache-2.0
 * Stores one elem of rows of O where a work-item holds pairs of neighbouring columns. Included by the engines nv_mma and
 * nv_wgmma.
 */
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
    FOR_O_COLS(c)
    {
        if (ENGINE_O_COL(e, c) < HEAD_DIM_V) {
            STORE_O(O_GET(e, r, c), o_data, at + ENGINE_O_COL(e, c) * a->o.dim);
        }
    }
}
