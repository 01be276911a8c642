/* SPDX-License-Identifier: Apache-2.0
 * The products of nv_tf32x3: fp32, 8 numbers deep (mma.sync m16n8k8 of tf32). Included by cl/engines/nv_mma.cl.
 *
 * A tensor core takes the upper 19 bits of an fp32, 11 of them significant. Each number is cut into those and a rest of 13
 * bits, of which the tensor core takes 11 again, and of the four products of the parts the three large ones are added:
 *
 *        x y = big(x) big(y) + big(x) rest(y) + rest(x) big(y) + about 2^-22 |x y|
 */
typedef struct {
    uint big[4], rest[4];
} operand;

/* Cut, not rounded: the largest numbers stay finite, and both parts have the sign of the whole. */
FN void cut(operand *y, int i, uint x)
{
    y->big[i] = x & 0xFFFFE000u;
    y->rest[i] = as_uint(as_float(x) - as_float(y->big[i]));
}

FN void load_operand(operand *y, uint from)
{
    uint x[4];
    ptx_load_matrices(x, from);
    UNROLL for (int i = 0; i < 4; i++) { cut(y, i, x[i]); }
}

/* Columns j to j + 1 of d, of every row tile m: d[m] += a[m] b, small products first. Products into one sum wait for each
 * other, so other sums lie between. */
#define MULTIPLY_PART(d, j, a, left, b, right)                                                                                 \
    UNROLL for (int m_ = 0; m_ < M_TILES; m_++)                                                                                \
    {                                                                                                                          \
        ptx_mma_tf32((d)[m_][j], (a)[m_].left, (b).right[0], (b).right[1]);                                                    \
        ptx_mma_tf32((d)[m_][(j) + 1], (a)[m_].left, (b).right[2], (b).right[3]);                                              \
    }
#define MULTIPLY(d, j, a, b)                                                                                                   \
    MULTIPLY_PART(d, j, a, rest, b, big)                                                                                       \
    MULTIPLY_PART(d, j, a, big, b, rest)                                                                                       \
    MULTIPLY_PART(d, j, a, big, b, big)

/* Work-item i holds of a left operand columns i % 4 and i % 4 + 4, of S 2 (i % 4) and the next: the product takes keys in this
 * order, from V too. */
#define VALUE_KEYS 8
#define VALUES_AT(item) ((uint)((item) % 4 * 2 * V_STRIDE + (item) / 4 * 4))
FN void load_values(operand *y, uint from)
{
    UNROLL for (int i = 0; i < 4; i++) { cut(y, i, ptx_load(from + i % 2 * V_STRIDE + i / 2 * 32)); }
}

/* The weights of keys 8 * n on. */
FN void weights_operand(operand *y, float (*s)[4], int n)
{
    UNROLL for (int i = 0; i < 4; i++) { cut(y, i, as_uint(s[n][i % 2 * 2 + i / 2])); }
}
