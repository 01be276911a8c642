/* SPDX-License-Identifier: Apache-2.0
 * What an engine whose lanes are queries does with whole vectors: transposition of Q and O, on their way in and out. Included
 * once, by an engine that defined O_AT(column, row).
 */
/* What runs once a tile stays a loop: unrolled and vectorised it took as long to compile as all the rest. */
#ifdef __clang__
#define ROLLED _Pragma("clang loop vectorize(disable) interleave(disable) unroll(disable)")
#else
#define ROLLED
#endif

#define WIDTH LANES
#include "cl/engines/cpu/cpu_load.cl"
#include "cl/engines/cpu/cpu_math.cl"

/* y = x transposed in part: log2(LANES) of these steps make the whole transposition. */
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

/* LANES vectors of LANES elements: element j of x[i] changes place with element i of x[j]. */
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

/* Rows r * LANES ... r * LANES + LANES - 1 of the tile's output. */
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
