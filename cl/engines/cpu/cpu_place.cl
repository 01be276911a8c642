/* SPDX-License-Identifier: Apache-2.0
 * K and V of the cpu engine, read in place: fp32, any strides. Included once, by cl/engines/cpu/cpu.cl.
 *
 * The hardware prefetcher does not detect the order of KEYS rows read in parallel. Where K and V do not fit in the cache, rows
 * of the next product are prefetched here. Where they fit, prefetching costs 3%.
 */
/* Makes k[] point at keys c ... c + KEYS - 1 of the tile that starts at key0. Past the last key, the last key repeats: such
 * scores are never read. Returns the step from one element of a key to the next. */
FN long cpu_take_keys(engine *e, __global const float **k, int key0, int c)
{
    __global const float *const first = (__global const float *)e->k + e->k_row0;
    UNROLL for (int i = 0; i < KEYS; i++) { k[i] = first + (key0 + min(c + i, e->columns - 1)) * e->k_seq; }
    if (e->far) {
        __global const float *v = (__global const float *)e->v + e->v_row0 + (key0 + c) * e->v_seq;
        for (int i = 0; i < KEYS; i++) {
            prefetch_row((__global const char *)v, HEAD_DIM_V * 4);
            v += e->v_seq;
        }
    }
    return e->k_dim;
}

FN void cpu_add_values(engine *e, int key0, int begin, int end, const elem *alpha)
{
    __global const float *const first = (__global const float *)e->v + e->v_row0 + (key0 + begin) * e->v_seq;
    __global const float *next = (__global const float *)e->k + e->k_row0 + (key0 + BLOCK_N) * e->k_seq;
    __global const float *v[COLUMNS];
    int d = 0;
    for (; d + COLUMNS <= HEAD_DIM_V; d += COLUMNS) {
        UNROLL for (int i = 0; i < COLUMNS; i++) { v[i] = first + (d + i) * e->v_dim; }
        if (e->far) {
            for (int i = 0; i < BLOCK_N * COLUMNS / HEAD_DIM_V; i++) {
                prefetch_row((__global const char *)next, HEAD_DIM * 4);
                next += e->k_seq;
            }
        }
        cpu_add_columns(e, v, e->v_seq, d, COLUMNS, begin, end, alpha);
    }
#if HEAD_DIM_V % COLUMNS != 0
    UNROLL for (int i = 0; i < HEAD_DIM_V % COLUMNS; i++) { v[i] = first + (d + i) * e->v_dim; }
    cpu_add_columns(e, v, e->v_seq, d, HEAD_DIM_V % COLUMNS, begin, end, alpha);
#endif
}
