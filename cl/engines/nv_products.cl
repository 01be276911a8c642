/* SPDX-License-Identifier: Apache-2.0
 * The products of nv_mma: fp16 or bf16, 16 numbers deep (mma.sync m16n8k16). Included by cl/engines/nv_mma.cl.
 */
/* V is read transposed: 16 keys, then the same eight columns on. */
#define VALUES_AT(item) ((uint)((item) % 16 * V_STRIDE + (item) / 16 * 16))

/* S = Q K^T. */
FN void product_qk(engine *e, uint from)
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

/* O = O + P V. */
FN void add_product_pv(engine *e, uint from)
{
    UNROLL for (int n = 0; n < WARP_KEYS / 16; n++)
    {
        uint a[M_TILES][4];
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
            UNROLL for (int m = 0; m < M_TILES; m++)
            {
                ptx_mma(e->o[m][j], a[m], b[0], b[1]);
                ptx_mma(e->o[m][j + 1], a[m], b[2], b[3]);
            }
        }
    }
}

/* O = alpha O + P V. */
FN void product_pv(engine *e, uint from, const elem *alpha)
{
    FOR_ROWS(r)
    {
        FOR_O_COLS(c) { O_GET(e, r, c) *= alpha[r]; }
    }
    add_product_pv(e, from);
}
