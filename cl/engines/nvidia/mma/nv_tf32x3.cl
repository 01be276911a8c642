/* SPDX-License-Identifier: Apache-2.0
 * The products of nv_tf32x3: fp32, depth 8 (mma.sync m16n8k8 of tf32). Included by cl/engines/nvidia/mma/nv_mma.cl.
 *
 * A tensor core reads the upper 19 bits of an fp32; 11 bits of the significand remain. Each number is split into its value
 * rounded to 11 bits and the rest. Of the four products of these parts, the three largest are added:
 *
 *         x y = big(x) big(y) + big(x) rest(y) + rest(x) big(y) + about 2^-24 |x y|
 *
 * The split rounds and does not truncate, so rests have either sign, and over many products the omitted terms cancel. Over few
 * products they do not cancel and are as large as the rounding errors of plain fp32. There S includes the fourth product too.
 *
 * A tensor core truncates its sums, where a multiply-add rounds. Over 4096 keys in one sum that gives ten times the error of
 * plain fp32. So a tensor core adds only eight products for S, and the products of one block of keys for O. fp32 additions
 * join these partial sums.
 */
typedef struct {
    uint big[4], rest[4];
} operand;
/* So few products include the product of the rests. */
#define FEW_PRODUCTS (HEAD_DIM <= 16)

/* A number past 3.402e38 becomes infinite, and its rest NaN. */
FN void operand_set(operand *y, int i, uint x)
{
    y->big[i] = (x + 0x1000u) & 0xFFFFE000u;
    y->rest[i] = as_uint(as_float(x) - as_float(y->big[i]));
}

/* Loads four matrices of eight rows by 16 bytes. */
FN void load_operand(operand *y, uint from)
{
    uint x[4];
    ptx_load_matrices(x, from);
    UNROLL for (int i = 0; i < 4; i++) { operand_set(y, i, x[i]); }
}

/* Two adjacent tiles of a product: the sum of the large parts, and the sum of the small parts, whose rounding does not
 * matter. */
typedef struct {
    float large[M_TILES][2][4], small[M_TILES][2][4];
} piece;

FN void piece_clear(float (*x)[2][4])
{
    UNROLL for (int m = 0; m < M_TILES; m++)
    {
        UNROLL for (int i = 0; i < 8; i++) { x[m][i / 4][i % 4] = 0.0f; }
    }
}

/* sum += a b, with the big part or the rest of each. */
FN void multiply(float (*sum)[2][4], const operand *a, int rest_of_a, const operand *b, int rest_of_b)
{
    const uint *right = rest_of_b ? b->rest : b->big;
    UNROLL for (int m = 0; m < M_TILES; m++)
    {
        const uint *left = rest_of_a ? a[m].rest : a[m].big;
        ptx_mma_tf32(sum[m][0], left, right[0], right[1]);
        ptx_mma_tf32(sum[m][1], left, right[2], right[3]);
    }
}

/* S = Q K^T. Q is read again for every two tiles of S. The assembler would keep all of Q in registers and spill O. So the
 * address contains a 0 that the assembler does not know. */
FN void product_qk(engine *e, uint from)
{
    UNROLL for (int j = 0; j < S_TILES; j += 2)
    {
        piece p;
        piece_clear(p.small);
        UNROLL for (int d = 0; d < DIM / 8; d++)
        {
            operand a[M_TILES], b;
            piece_clear(p.large);
            UNROLL for (int m = 0; m < M_TILES; m++)
            {
                load_operand(&a[m], e->q_at + (uint)j * e->zero + m * 16 * QK_STRIDE + d * 32);
            }
            load_operand(&b, from + j * 8 * QK_STRIDE + d * 32);
            /* Products into the same sum wait for each other, so products into another sum are placed between them. */
            if (FEW_PRODUCTS) {
                multiply(p.small, a, 1, &b, 1);
            }
            multiply(p.small, a, 1, &b, 0);
            multiply(p.large, a, 0, &b, 0);
            multiply(p.small, a, 0, &b, 1);
            UNROLL for (int m = 0; m < M_TILES; m++)
            {
                UNROLL for (int i = 0; i < 8; i++)
                {
                    const float x = p.large[m][i / 4][i % 4];
                    e->s[m][j + i / 4][i % 4] = d == 0 ? x : e->s[m][j + i / 4][i % 4] + x;
                }
            }
        }
        UNROLL for (int m = 0; m < M_TILES; m++)
        {
            UNROLL for (int i = 0; i < 8; i++) { e->s[m][j + i / 4][i % 4] += p.small[m][i / 4][i % 4]; }
        }
    }
}

/* Work-item i holds columns i % 4 and i % 4 + 4 of a left operand, but columns 2 (i % 4) and the next of S. The product takes
 * keys in the order of S, for V too. */
#define VALUES_AT(item) ((uint)((item) % 4 * 2 * V_STRIDE + (item) / 4 * 4))
FN void load_values(operand *y, uint from)
{
    UNROLL for (int i = 0; i < 4; i++) { operand_set(y, i, ptx_load(from + i % 2 * V_STRIDE + i / 2 * 32)); }
}

/* The weights of eight keys as an operand. */
FN void weights_operand(operand *y, const float *s)
{
    UNROLL for (int i = 0; i < 4; i++) { operand_set(y, i, as_uint(s[i % 2 * 2 + i / 2])); }
}

/* O = alpha O + P V. The small products are added before the large ones, so that one sum is enough. Two sums would not fit in
 * registers, together with O, P and its rests. */
FN void product_pv(engine *e, uint from, const elem *alpha)
{
    UNROLL for (int j = 0; j < O_TILES; j += 2)
    {
        float sum[M_TILES][2][4];
        piece_clear(sum);
        UNROLL for (int n = 0; n < WARP_KEYS / 8; n++)
        {
            operand a[M_TILES], b;
            UNROLL for (int m = 0; m < M_TILES; m++) { weights_operand(&a[m], e->s[m][n]); }
            load_values(&b, from + n * 8 * V_STRIDE + j * 32);
            multiply(sum, a, 1, &b, 0);
            multiply(sum, a, 0, &b, 1);
        }
        UNROLL for (int n = 0; n < WARP_KEYS / 8; n++)
        {
            operand a[M_TILES], b;
            UNROLL for (int m = 0; m < M_TILES; m++) { weights_operand(&a[m], e->s[m][n]); }
            load_values(&b, from + n * 8 * V_STRIDE + j * 32);
            multiply(sum, a, 0, &b, 0);
        }
        UNROLL for (int m = 0; m < M_TILES; m++)
        {
            UNROLL for (int i = 0; i < 8; i++)
            {
                float *o = &e->o[m][j + i / 4][i % 4];
                *o = MULTIPLY_ADD(*o, alpha[2 * m + i % 4 / 2], sum[m][i / 4][i % 4]);
            }
        }
    }
}
