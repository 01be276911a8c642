/* SPDX-License-Identifier: Apache-2.0
 * Packs K and V as operands of the matrix tiles. Included once, by cl/engines/cpu/cpu_amx.cl.
 */

/* Copies rows c ... c + 31 of K's block, with zeros past the head and past the last key. */
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

/* One step of a transposition of x, as interleave_halves does it, but in registers. */
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

/* Transposes vectors of pairs of keys to vectors of columns. */
FN void amx_store_values(uint16 *to, elem *x)
{
    elem y[LANES];
    ROLLED for (int pass = 0; pass < 2; pass++) /* all in registers, with half as much code */
    {
        amx_interleave(y, x);
        amx_interleave(x, y);
    }
    UNROLL for (int i = 0; i < LANES; i++) { to[i] = as_uint16(x[i]); }
}

/* Loads a whole vector of columns of 32 keys that all take part. */
FN void amx_load_whole_values(uint16 *to, __global const ushort *row, long step)
{
    elem x[LANES];
    UNROLL for (int i = 0; i < LANES; i++)
    {
        x[i] = pair_of_values(vload16(0, row), vload16(0, row + step));
        row += 2 * step;
    }
    amx_store_values(to, x);
}

/* Loads columns of any other keys. */
FN void amx_load_some_values(const engine *e, uint16 *to, __global const ushort *row, const int *live, int d)
{
    elem x[LANES];
    ROLLED for (int i = 0; i < LANES; i++)
    {
        const ushort16 none = (ushort16)(0);
        const ushort16 low = live[2 * i] ? some_values(row, d) : none;
        const ushort16 high = live[2 * i + 1] ? some_values(row + e->v_seq, d) : none;
        x[i] = pair_of_values(low, high);
        row += 2 * e->v_seq;
    }
    transpose_vectors(x);
    ROLLED for (int i = 0; i < LANES; i++) { to[i] = as_uint16(x[i]); }
}

/* Loads V of the block, transposed, in pairs of keys. */
FN void amx_load_values(engine *e, int key0)
{
    for (int b = 0; b < e->columns; b += 32) {
        __global const ushort *const row = e->v_data + (key0 + b) * e->v_seq;
        uint16 *const to = e->v + b / 32 * O_WIDTH;
        int live[32], all = 1, d = 0;
        for (int i = 0; i < 32; i++) {
            live[i] = value_takes_part(e, b + i);
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
