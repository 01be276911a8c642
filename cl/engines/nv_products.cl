/* SPDX-License-Identifier: Apache-2.0
 * The products of nv_mma: fp16 or bf16, 16 numbers deep (mma.sync m16n8k16). Included by cl/engines/nv_mma.cl.
 */
/* Four matrices of eight rows by 16 bytes: 16 rows of a left operand, or two right ones of eight rows, 32 bytes deep. */
typedef struct {
    uint x[4];
} operand;

FN void load_operand(operand *y, uint from) { ptx_load_matrices(y->x, from); }

/* Columns j to j + 1 of d, of every row tile m: d[m] += a[m] b. */
#define MULTIPLY(d, j, a, b)                                                                                                   \
    UNROLL for (int m_ = 0; m_ < M_TILES; m_++)                                                                                \
    {                                                                                                                          \
        ptx_mma((d)[m_][j], (a)[m_].x, (b).x[0], (b).x[1]);                                                                    \
        ptx_mma((d)[m_][(j) + 1], (a)[m_].x, (b).x[2], (b).x[3]);                                                              \
    }

/* V is read transposed: 16 keys, then the same eight columns on. */
#define VALUE_KEYS 16
#define VALUES_AT(item) ((uint)((item) % 16 * V_STRIDE + (item) / 16 * 16))
FN void load_values(operand *y, uint from) { ptx_load_matrices_transposed(y->x, from); }

/* The weights of keys 16 * n on. */
FN void weights_operand(operand *y, float (*s)[4], int n)
{
    UNROLL for (int i = 0; i < 4; i++) { y->x[i] = ptx_pack(s[2 * n + i / 2][i % 2 * 2], s[2 * n + i / 2][i % 2 * 2 + 1]); }
}
