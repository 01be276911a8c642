/* SPDX-License-Identifier: Apache-2.0
 * What nv_wgmma has of the mask and the bias of a block, for cl/score_pairs.cl: a bit a column in registers, and the bias of
 * the warp's 16 rows in local memory, of the type BIAS_TYPE that it has in the call's buffer. Fetched while the product is at
 * work.
 */
#if SCORE_OPTIONS
FN void nv_bias(const engine *e, int r, int c, float *x)
{
    const int item = (int)get_local_id(0) - 128;
    const uint row = (uint)(item / 32 * 16 + item % 32 / 4 + 8 * r), col = (uint)(item % 4 * 2 + c / 2 * 8);
    const uint at = BIAS_PLACE(e) + row * BIAS_STRIDE + col * BIAS_WIDTH;
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
#define ENGINE_KEPT(e, r) (e)->kept[r]
#define ENGINE_BIAS(e, r, c, x) nv_bias(e, r, c, x)
#define ENGINE_HIDDEN(e, r, bits) (e)->hidden = (r) == 0 ? (bits) : (e)->hidden & (bits)
#endif
