/* SPDX-License-Identifier: Apache-2.0
 * The products of nv_mma: fp16 or bf16, depth 16 (mma.sync m16n8k16). Included by cl/engines/nvidia/mma/nv_mma.cl.
 */
/* Bits c and c + 1 as the halves of a word, all ones where the key is visible. */
FN uint seen_pair(uint unseen, int c)
{
    return (unseen >> c & 1 ? 0u : 0x0000FFFFu) | (unseen >> (c + 1) & 1 ? 0u : 0xFFFF0000u);
}

/* V is read transposed: 16 keys, then the same 16 keys eight columns further. */
#define VALUES_AT(item) ((uint)((item) % 16 * V_STRIDE + (item) / 16 * 16))

/* S = Q K^T. If copies k and v are given, their pieces are placed between the products. Issued at once, they would delay the
 * loads of the first operands. */
FN void product_qk_beside(engine *e, uint from, nv_copy *k, nv_copy *v)
{
    UNROLL for (int m = 0; m < M_TILES; m++)
    {
        UNROLL for (int j = 0; j < S_TILES; j++)
        {
            UNROLL for (int i = 0; i < 4; i++) { e->s[m][j][i] = 0.0f; }
        }
    }
    UNROLL for (int d = 0; d < DIM / 16; d++)
    {
        uint a[M_TILES][4];
        if (k) {
            nv_copy_share(k, BLOCK_N, DIM, QK_STRIDE, d, DIM / 16);
        }
        if (v) {
            nv_copy_share(v, BLOCK_N, DIM_V, V_STRIDE, d, DIM / 16);
        }
        UNROLL for (int m = 0; m < M_TILES; m++) { ptx_load_matrices(a[m], e->q_at + m * 16 * QK_STRIDE + d * 32); }
        UNROLL for (int j = 0; j < S_TILES; j += 2)
        {
            uint b[4];
            ptx_load_matrices(b, from + j * 8 * QK_STRIDE + d * 32);
            UNROLL for (int m = 0; m < M_TILES; m++)
            {
                ptx_mma(e->s[m][j], a[m], b[0], b[1]);
                ptx_mma(e->s[m][j + 1], a[m], b[2], b[3]);
            }
        }
    }
}

FN void product_qk(engine *e, uint from) { product_qk_beside(e, from, 0, 0); }

/* O = O + P V. Keys whose bit is set count as 0 whatever their V holds: 0 times NaN would be NaN. A constant without bits costs
 * nothing. */
FN void add_product_pv(engine *e, uint from, uint unseen)
{
    UNROLL for (int n = 0; n < WARP_KEYS / 16; n++)
    {
        uint a[M_TILES][4];
        const uint seen[2] = {seen_pair(unseen, 4 * n), seen_pair(unseen, 4 * n + 2)};
        UNROLL for (int m = 0; m < M_TILES; m++)
        {
            UNROLL for (int i = 0; i < 4; i++)
            {
                a[m][i] = ptx_pack(e->s[m][2 * n + i / 2][i % 2 * 2], e->s[m][2 * n + i / 2][i % 2 * 2 + 1]);
            }
        }
        UNROLL for (int j = 0; j < O_TILES; j += 2)
        {
            uint b[4];
            ptx_load_matrices_transposed(b, from + n * 16 * V_STRIDE + j * 16);
            UNROLL for (int i = 0; i < 4; i++) { b[i] &= seen[i % 2]; }
            UNROLL for (int m = 0; m < M_TILES; m++)
            {
                ptx_mma(e->o[m][j], a[m], b[0], b[1]);
                ptx_mma(e->o[m][j + 1], a[m], b[2], b[3]);
            }
        }
    }
}

FN void rescale_o(engine *e, const elem *alpha)
{
    FOR_ROWS(r)
    {
        FOR_O_COLS(c) { O_GET(e, r, c) *= alpha[r]; }
    }
}

/* O = alpha O + P V. */
FN void product_pv(engine *e, uint from, const elem *alpha)
{
    rescale_o(e, alpha);
    add_product_pv(e, from, 0);
}
