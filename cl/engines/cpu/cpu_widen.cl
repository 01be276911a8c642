/* SPDX-License-Identifier: Apache-2.0
 * K and V of the cpu engine, widened to fp32 into a buffer that stays in the first-level cache: KEYS rows of K, then LANES
 * columns of V at a time. Any types, any strides. Included once, by cl/engines/cpu/cpu.cl.
 */
#if LANES % COLUMNS != 0
#error "cpu: LANES must be a multiple of COLUMNS"
#endif

/* Makes k[] point at keys c ... c + KEYS - 1 of the tile that starts at key0. Past the last key, the last key repeats: such
 * scores are never read. Returns the step from one element of a key to the next. */
FN long cpu_take_keys(engine *e, const float **k, int key0, int c)
{
    UNROLL for (int i = 0; i < KEYS; i++) { k[i] = (const float *)e->wide + i * WHOLE_LANES(HEAD_DIM); }
    for (int i = 0; i < KEYS; i++) {
        elem *const to = e->wide + i * (WHOLE_LANES(HEAD_DIM) / LANES);
        const long row = e->k_row0 + (key0 + min(c + i, e->columns - 1)) * e->k_seq;
        int d = 0;
        if (e->k_dim == 1) {
            for (; d + LANES <= HEAD_DIM; d += LANES) {
                to[d / LANES] = LOAD_K_VECTOR(e->k, row + d);
            }
        }
        for (; d < HEAD_DIM; d++) {
            ((float *)to)[d] = LOAD_K(e->k, row + d * e->k_dim);
        }
    }
    return 1;
}

/* Loads columns d ... d + LANES - 1 of V, one vector for each key, with zeros past the last column. */
FN void cpu_widen_columns(engine *e, int key0, int begin, int end, int d)
{
    const int width = min(LANES, HEAD_DIM_V - d);
    long at = e->v_row0 + (key0 + begin) * e->v_seq + d * e->v_dim;
    if (e->v_dim == 1 && width == LANES) {
        for (int c = begin; c < end; c++) {
            e->wide[c] = LOAD_V_VECTOR(e->v, at);
            at += e->v_seq;
        }
    } else {
        for (int c = begin; c < end; c++) {
            e->wide[c] = (elem)(0.0f);
            for (int i = 0; i < width; i++) {
                ((float *)e->wide)[c * LANES + i] = LOAD_V(e->v, at + i * e->v_dim);
            }
            at += e->v_seq;
        }
    }
}

FN void cpu_add_values(engine *e, int key0, int begin, int end, const elem *alpha)
{
    for (int d = 0; d < HEAD_DIM_V; d += LANES) {
        cpu_widen_columns(e, key0, begin, end, d);
        for (int c = 0; c < min(LANES, HEAD_DIM_V - d); c += COLUMNS) {
            const float *v[COLUMNS];
            UNROLL for (int i = 0; i < COLUMNS; i++) { v[i] = (const float *)(e->wide + begin) + c + i; }
            cpu_add_columns(e, v, LANES, d + c, COLUMNS, begin, end, alpha);
        }
    }
}
