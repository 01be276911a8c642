/* SPDX-License-Identifier: Apache-2.0
 * Whole vectors in engines whose lanes are queries: transposition of Q when it is loaded and of O when it is stored. Included
 * once, by an engine that defined O_AT(column, row).
 */
/* Code that runs once a tile stays a loop. Unrolled and vectorized, it took as long to compile as all the rest. */
#ifdef __clang__
#define ROLLED _Pragma("clang loop vectorize(disable) interleave(disable) unroll(disable)")
#else
#define ROLLED
#endif

#define WIDTH LANES
#include "cl/engines/cpu/cpu_load.cl"
#include "cl/engines/cpu/cpu_math.cl"

/* y = one step of a transposition of x; log2(LANES) such steps transpose it. */
FN void interleave_halves(elem *y, const elem *x)
{
    ROLLED for (int i = 0; i < LANES / 2; i++)
    {
        y[2 * i].even = x[i].lo;
        y[2 * i].odd = x[i + LANES / 2].lo;
        y[2 * i + 1].even = x[i].hi;
        y[2 * i + 1].odd = x[i + LANES / 2].hi;
    }
}

/* Transposes LANES vectors of LANES elements: element j of x[i] and element i of x[j] change places. */
FN void transpose_vectors(elem *x)
{
    elem y[LANES];
    interleave_halves(y, x);
    interleave_halves(x, y);
#if LANES == 4
    return;
#elif LANES == 8
    interleave_halves(y, x);
    ROLLED for (int i = 0; i < LANES; i++) { x[i] = y[i]; }
#else
    interleave_halves(y, x);
    interleave_halves(x, y);
#endif
}

/* Stores rows r * LANES ... r * LANES + LANES - 1 of the tile's output. */
FN void cpu_store_rows(engine *e, const tile *t, const launch_args *a, int r, __global void *o)
{
    const int row0 = t->row0 + r * LANES, rows = min(LANES, t->rows - row0);
    long at[LANES];
    ROLLED for (int i = 0; i < rows; i++) { at[i] = tile_row_offset(t, a->o, row0 + i); }
    int d = 0;
    if (a->o.dim == 1) {
        for (; d + LANES <= HEAD_DIM_V; d += LANES) {
            elem x[LANES];
            ROLLED for (int i = 0; i < LANES; i++) { x[i] = e->o[O_AT(d + i, r)]; }
            transpose_vectors(x);
            ROLLED for (int i = 0; i < rows; i++) { STORE_O_VECTOR(x[i], o, at[i] + d); }
        }
    }
    ROLLED for (; d < HEAD_DIM_V; d++)
    {
        ROLLED for (int i = 0; i < rows; i++)
        {
            STORE_O(((const float *)e->o)[O_AT(d, r) * LANES + i], o, at[i] + d * a->o.dim);
        }
    }
}

/* No row is shared between work-items. */
FN void engine_fold_max(engine *e, elem *x) { (void)e, (void)x; }
FN void engine_fold_sum(engine *e, elem *x) { (void)e, (void)x; }
