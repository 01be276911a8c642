/* SPDX-License-Identifier: Apache-2.0
 * Code shared by engines whose instructions multiply pairs of bf16: Q in pairs of its columns, weights in pairs of keys, and
 * the test of which values take part. Included once, by an engine whose struct has q, s, p, o, k, k_seq, v_data and v_seq as
 * in cl/engines/cpu/cpu_amx.cl, with Q_PAIRS and O_WIDTH.
 */
/* 32 elements at any address. */
typedef uint16 __attribute__((aligned(2))) any_words;
FN elem load_words(__global const ushort *p) { return as_elem(*(__global const any_words *)p); }

/* Loads Q of the tile in pairs, with zeros past the head. Rows past the last repeat the last row; they are not stored. */
FN void pairs_load_q(engine *e, const tile *t, const launch_args *a, __global const ushort *q)
{
    ROLLED for (int j = 0; j < VECTORS; j++)
    {
        long at[LANES];
        ROLLED for (int i = 0; i < LANES; i++) { at[i] = tile_row_offset(t, a->q, min(t->row0 + j * LANES + i, t->rows - 1)); }
        ROLLED for (int d = 0; d < 2 * Q_PAIRS; d += 32)
        {
            elem x[LANES];
            ROLLED for (int i = 0; i < LANES; i++)
            {
                if (a->q.dim == 1 && d + 32 <= HEAD_DIM) {
                    x[i] = load_words(q + at[i] + d);
                } else {
                    ROLLED for (int n = 0; n < 32; n++)
                    {
                        ((ushort *)&x[i])[n] = d + n < HEAD_DIM ? q[at[i] + (d + n) * a->q.dim] : (ushort)0;
                    }
                }
            }
            transpose_vectors(x);
            ROLLED for (int i = 0; i < LANES; i++) { e->q[j * Q_PAIRS + d / 2 + i] = as_uint16(x[i]); }
        }
    }
}

FN void pairs_begin(engine *e, const tile *t, const launch_args *a, __global const void *q, __global const void *k,
                    __global const void *v)
{
    e->k = (__global const ushort *)k + tile_kv_offset(t, a->k);
    e->k_seq = a->k.seq;
    e->v_data = (__global const ushort *)v + tile_kv_offset(t, a->v);
    e->v_seq = a->v.seq;
    pairs_load_q(e, t, a, (__global const ushort *)q);
    for (int i = 0; i < VECTORS * O_WIDTH; i++) {
        e->o[i] = (elem)(0.0f);
    }
}

/* Packs weights as bf16 in pairs of keys, with zeros to the end of 32 keys. Weights are in 0 ... 1, and ties round up. In a row
 * with NaN, the sum is NaN, so its weights do not matter here. */
FN void pairs_pack_weights(engine *e)
{
    FOR_ROWS(r)
    {
        elem *const s = e->s + r * BLOCK_N;
        uint16 *const p = e->p + r * (BLOCK_N / 2);
        const int whole = (e->columns + 31) / 32 * 32;
        for (int c = e->columns; c < whole; c++) {
            s[c] = (elem)(0.0f);
        }
        for (int c = 0; c < whole; c += 2) {
            p[c / 2] = ((as_uint16(s[c]) + 0x8000u) >> 16) | ((as_uint16(s[c + 1]) + 0x8000u) & 0xffff0000u);
        }
    }
}

/* Whether V of a key takes part: the key is visible to some row, or may be. A key that a mask or a bias masks for every row
 * weighs nothing. */
FN int value_takes_part(const engine *e, int c)
{
    int weighs = 1;
#if SCORE_OPTIONS
    weighs = 0;
    for (int r = 0; r < VECTORS && !weighs; r++) {
        weighs = any_row(S_GET(e, r, min(c, e->columns - 1)) != (elem)(0.0f));
    }
#endif
    return c >= e->begin && c < e->columns && weighs;
}

FN elem pair_of_values(ushort16 low, ushort16 high) { return as_elem(convert_uint16(low) | (convert_uint16(high) << 16)); }

/* 16 columns from d on of a row of V, with zeros past the head. */
FN ushort16 some_values(__global const ushort *row, int d)
{
    ushort16 x = (ushort16)(0);
    for (int i = 0; i < min(16, HEAD_DIM_V - d); i++) {
        ((ushort *)&x)[i] = row[d + i];
    }
    return x;
}
