/* SPDX-License-Identifier: Apache-2.0
 * The products of nv_tf32x3: fp32, 8 numbers deep (mma.sync m16n8k8 of tf32). Included by cl/engines/nv_mma.cl.
 *
 * A tensor core takes the upper 19 bits of an fp32, 11 of them significant, and passes over the others. Of each number the rest
 * of 13 bits is a second operand, and of the four products of the parts the three large ones are added:
 *
 *        x y = big(x) big(y) + big(x) rest(y) + rest(x) big(y) + about 2^-22 |x y|
 *
 * It also cuts its sums off where a multiply-add rounds: always towards 0, so that errors of a long sum add up instead of
 * cancelling (10 times those of plain fp32 over 4096 keys). So a sum is CHAIN products long; multiply-adds join the pieces.
 */
typedef struct {
    uint big[4], rest[4];
} operand;
#define CHAIN 4

FN uint rest_of(uint x) { return as_uint(as_float(x) - as_float(x & 0xFFFFE000u)); }

/* Four matrices of eight rows by 16 bytes. */
FN void load_operand(operand *y, uint from)
{
    ptx_load_matrices(y->big, from);
    UNROLL for (int i = 0; i < 4; i++) { y->rest[i] = rest_of(y->big[i]); }
}

/* Two neighbouring tiles of a product: the sum of the large parts, and that of the small ones, which needs no care. */
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

#define MULTIPLY(sum, a, left, b, right)                                                                                       \
    UNROLL for (int m = 0; m < M_TILES; m++)                                                                                   \
    {                                                                                                                          \
        ptx_mma_tf32((sum)[m][0], (a)[m].left, (b)->right[0], (b)->right[1]);                                                  \
        ptx_mma_tf32((sum)[m][1], (a)[m].left, (b)->right[2], (b)->right[3]);                                                  \
    }
/* Products into one sum wait for each other: others lie between. */
FN void piece_add(piece *p, const operand *a, const operand *b){
    MULTIPLY(p->small, a, rest, b, big) MULTIPLY(p->large, a, big, b, big) MULTIPLY(p->small, a, big, b, rest)}

/* S = Q K^T. Q is read again for each two tiles of S. The assembler would rather keep it all, and put O into memory for that:
 * so the second address has a 0 in it of which it does not know. */
FN void product_qk(engine *e, uint from)
{
    const uint zero = (uint)ptx_uniform(e->row >> 20);
    UNROLL for (int j = 0; j < S_TILES; j += 2)
    {
        piece p;
        piece_clear(p.small);
        UNROLL for (int d = 0; d < DIM / 8; d++)
        {
            operand a[M_TILES], b;
            if (d % CHAIN == 0) {
                piece_clear(p.large);
            }
            UNROLL for (int m = 0; m < M_TILES; m++) { load_operand(&a[m], e->q_at + j * zero + m * 16 * QK_STRIDE + d * 32); }
            load_operand(&b, from + j * 8 * QK_STRIDE + d * 32);
            piece_add(&p, a, &b);
            if (d % CHAIN == CHAIN - 1 || d == DIM / 8 - 1) {
                UNROLL for (int m = 0; m < M_TILES; m++)
                {
                    UNROLL for (int i = 0; i < 8; i++)
                    {
                        const float x = p.large[m][i / 4][i % 4];
                        e->s[m][j + i / 4][i % 4] = d < CHAIN ? x : e->s[m][j + i / 4][i % 4] + x;
                    }
                }
            }
        }
        UNROLL for (int m = 0; m < M_TILES; m++)
        {
            UNROLL for (int i = 0; i < 8; i++) { e->s[m][j + i / 4][i % 4] += p.small[m][i / 4][i % 4]; }
        }
    }
}

/* Work-item i holds of a left operand columns i % 4 and i % 4 + 4, of S 2 (i % 4) and the next: the product takes keys in this
 * order, from V too. */
#define VALUES_AT(item) ((uint)((item) % 4 * 2 * V_STRIDE + (item) / 4 * 4))
FN void load_values(operand *y, uint from)
{
    UNROLL for (int i = 0; i < 4; i++)
    {
        y->big[i] = ptx_load(from + i % 2 * V_STRIDE + i / 2 * 32);
        y->rest[i] = rest_of(y->big[i]);
    }
}

/* The weights of eight keys. */
FN void weights_operand(operand *y, const float *s)
{
    UNROLL for (int i = 0; i < 4; i++)
    {
        y->big[i] = as_uint(s[i % 2 * 2 + i / 2]);
        y->rest[i] = rest_of(y->big[i]);
    }
}

/* O = alpha O + P V. The small products go into the sum before the large ones, so that one sum is enough: there are no
 * registers for two beside O, P and its rests. */
FN void product_pv(engine *e, uint from, const elem *alpha)
{
    UNROLL for (int j = 0; j < O_TILES; j += 2)
    {
        float sum[M_TILES][2][4];
        piece_clear(sum);
        UNROLL for (int n = 0; n < BLOCK_N / 8; n++)
        {
            operand a[M_TILES], b;
            UNROLL for (int m = 0; m < M_TILES; m++) { weights_operand(&a[m], e->s[m][n]); }
            load_values(&b, from + n * 8 * V_STRIDE + j * 32);
            MULTIPLY(sum, a, rest, &b, big)
            MULTIPLY(sum, a, big, &b, rest)
        }
        UNROLL for (int n = 0; n < BLOCK_N / 8; n++)
        {
            operand a[M_TILES], b;
            UNROLL for (int m = 0; m < M_TILES; m++) { weights_operand(&a[m], e->s[m][n]); }
            load_values(&b, from + n * 8 * V_STRIDE + j * 32);
            MULTIPLY(sum, a, big, &b, big)
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
