/* SPDX-License-Identifier: Apache-2.0
 * Operands of the tiles from Q, K, V and the weights. Included once, by cl/engines/cpu_amx.cl.
 */

/* 32 elements at any address. */
typedef uint16 __attribute__((aligned(2))) any_words;
FN elem amx_load_words(__global const ushort *p) { return as_elem(*(__global const any_words *)p); }

/* Q of the tile in pairs, zeros past the head. Rows past the last one repeat it; they are not stored. */
FN void amx_load_q(engine *e, const tile *t, const launch_args *a, __global const ushort *q)
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
                    x[i] = amx_load_words(q + at[i] + d);
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

/* Rows c ... c + 31 of K's block, with zeros past the head and past the last key. */
FN void amx_stage_keys(engine *e, __global const ushort *rows, int c)
{
    for (int i = c; i < c + 32; i++) {
        ushort *const to = (ushort *)e->staged + i * 2 * Q_PAIRS;
        __global const ushort *const from = rows + i * e->k_seq;
        const int width = i < e->columns ? HEAD_DIM : 0;
        int d = 0;
        for (; d + 16 <= width; d += 16) {
            vstore16(vload16(0, from + d), 0, to + d);
        }
        for (; d < width; d++) {
            to[d] = from[d];
        }
        for (; d < 2 * Q_PAIRS; d++) {
            to[d] = 0;
        }
    }
}

/* Weights to bf16, in pairs of keys, zeros to the end of 32 keys. Weights lie in 0 ... 1: halves are rounded up. A row with NaN
 * among them has NaN for its sum, whatever becomes of it here. */
FN void amx_pack_weights(engine *e)
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

/* Whether V of a key takes part: some row sees it, or might. What a mask or a bias hides from every row weighs nothing. */
FN int amx_takes_part(const engine *e, int c)
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

/* x transposed in part, as interleave_halves does it, in registers. */
FN void amx_interleave(elem *y, const elem *x)
{
    UNROLL for (int i = 0; i < LANES / 2; i++)
    {
        y[2 * i].even = x[i].lo;
        y[2 * i].odd = x[i + LANES / 2].lo;
        y[2 * i + 1].even = x[i].hi;
        y[2 * i + 1].odd = x[i + LANES / 2].hi;
    }
}

/* Vectors of pairs of keys, columns across, to vectors of columns. */
FN void amx_store_values(uint16 *to, elem *x)
{
    elem y[LANES];
    amx_interleave(y, x);
    amx_interleave(x, y);
    amx_interleave(y, x);
    amx_interleave(x, y);
    UNROLL for (int i = 0; i < LANES; i++) { to[i] = as_uint16(x[i]); }
}

FN elem amx_pair(ushort16 low, ushort16 high) { return as_elem(convert_uint16(low) | (convert_uint16(high) << 16)); }

/* 16 columns from d on of a row of V, zeros past the head. */
FN ushort16 amx_value(__global const ushort *row, int d)
{
    ushort16 x = (ushort16)(0);
    for (int i = 0; i < min(16, HEAD_DIM_V - d); i++) {
        ((ushort *)&x)[i] = row[d + i];
    }
    return x;
}

/* 32 keys that all take part, a whole vector of columns. */
FN void amx_load_whole_values(uint16 *to, __global const ushort *row, long step)
{
    elem x[LANES];
    UNROLL for (int i = 0; i < LANES; i++)
    {
        x[i] = amx_pair(vload16(0, row), vload16(0, row + step));
        row += 2 * step;
    }
    amx_store_values(to, x);
}

/* Any others. */
FN void amx_load_some_values(const engine *e, uint16 *to, __global const ushort *row, const int *live, int d)
{
    elem x[LANES];
    ROLLED for (int i = 0; i < LANES; i++)
    {
        const ushort16 none = (ushort16)(0);
        const ushort16 low = live[2 * i] ? amx_value(row, d) : none;
        const ushort16 high = live[2 * i + 1] ? amx_value(row + e->v_seq, d) : none;
        x[i] = amx_pair(low, high);
        row += 2 * e->v_seq;
    }
    transpose_vectors(x);
    ROLLED for (int i = 0; i < LANES; i++) { to[i] = as_uint16(x[i]); }
}

/* V of the block, transposed, in pairs of keys. */
FN void amx_load_values(engine *e, int key0)
{
    for (int b = 0; b < e->columns; b += 32) {
        __global const ushort *const row = e->v_data + (key0 + b) * e->v_seq;
        uint16 *const to = e->v + b / 32 * O_WIDTH;
        int live[32], all = 1, d = 0;
        for (int i = 0; i < 32; i++) {
            live[i] = amx_takes_part(e, b + i);
            all &= live[i];
        }
        if (all) {
            for (; d + 16 <= HEAD_DIM_V; d += 16) {
                amx_load_whole_values(to + d, row + d, e->v_seq);
            }
        }
        for (; d < O_WIDTH; d += 16) {
            amx_load_some_values(e, to + d, row, live, d);
        }
    }
}
