/* SPDX-License-Identifier: Apache-2.0
 * What the cpu engines do with whole vectors: exp2, tanh, loads and stores, transposition of Q and O. Included once, by an
 * engine.
 */
/* What runs once a tile stays a loop: unrolled and vectorised it took as long to compile as all the rest. */
#ifdef __clang__
#define ROLLED _Pragma("clang loop vectorize(disable) interleave(disable) unroll(disable)")
#else
#define ROLLED
#endif

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)

/* LANES elements from element `i` on, at no alignment but the element's. */
FN elem load_fp32_vector(__global const void *p, long i) { return JOIN(vload, LANES)(0, (__global const float *)p + i); }
FN elem load_fp16_vector(__global const void *p, long i) { return JOIN(vload_half, LANES)(0, (__global const half *)p + i); }
FN elem load_bf16_vector(__global const void *p, long i)
{
    return as_elem(JOIN(convert_uint, LANES)(JOIN(vload, LANES)(0, (__global const ushort *)p + i)) << 16);
}
FN void store_fp32_vector(elem x, __global void *p, long i) { JOIN(vstore, LANES)(x, 0, (__global float *)p + i); }
FN void store_fp16_vector(elem x, __global void *p, long i)
{
    JOIN(JOIN(vstore_half, LANES), _rte)(x, 0, (__global half *)p + i);
}
/* As bf16_of in cl/base.cl. */
FN void store_bf16_vector(elem x, __global void *p, long i)
{
    const JOIN(uint, LANES) u = JOIN(as_uint, LANES)(x);
    const JOIN(uint, LANES) bits =
        select((u + 0x7fffu + ((u >> 16) & 1u)) >> 16, (u >> 16) | 0x40u, (u & 0x7fffffffu) > 0x7f800000u);
    JOIN(vstore, LANES)(JOIN(convert_ushort, LANES)(bits), 0, (__global ushort *)p + i);
}

/* load_fp32_vector beside load_fp32, and so on. */
#define LOAD_Q_VECTOR JOIN(LOAD_Q, _vector)
#define LOAD_K_VECTOR JOIN(LOAD_K, _vector)
#define LOAD_V_VECTOR JOIN(LOAD_V, _vector)
#define STORE_O_VECTOR JOIN(STORE_O, _vector)

/* 2^x for x up to 127: x = n + f with n the nearest integer, found by adding 1.5 * 2^23 + 127, whose low bits then hold the
 * exponent of 2^n; 2^f by a polynomial that is 1 at 0, within 9.2e-8 before rounding. At most 2.1 ulp off with fma, 2.3
 * without. Exactly 0 below -126, -inf included, so that no result is subnormal; the comparison lets NaN through. */
FN elem cpu_exp2(elem x)
{
    const elem t = x + (elem)(12583039.0f), f = x - (t - (elem)(12583039.0f));
    elem p = MULTIPLY_ADD((elem)(1.32647285e-3f), f, (elem)(9.67151299e-3f));
    p = MULTIPLY_ADD(p, f, (elem)(5.55073358e-2f));
    p = MULTIPLY_ADD(p, f, (elem)(2.40222424e-1f));
    p = MULTIPLY_ADD(p, f, (elem)(6.93147004e-1f));
    p = MULTIPLY_ADD(p, f, (elem)(1.0f));
    return PICK(x < (elem)(-126.0f), (elem)(0.0f), p * as_elem(as_index(t) << 23));
}

/* Below 0.55 a polynomial (4e-9 off before rounding), above it 1 - 2 / (e^2x + 1), which is 1 from 10 on. NaN passes. */
FN elem cpu_tanh(elem x)
{
    const elem size = as_elem(as_index(x) & 0x7fffffff), z = x * x;
    elem p = MULTIPLY_ADD((elem)(-6.61022775e-3f), z, (elem)(2.13093888e-2f));
    p = MULTIPLY_ADD(p, z, (elem)(-5.39094284e-2f));
    p = MULTIPLY_ADD(p, z, (elem)(1.33331135e-1f));
    p = MULTIPLY_ADD(p, z, (elem)(-3.33333313e-1f));
    p = MULTIPLY_ADD(p * z, size, size);
    const elem e = cpu_exp2(PICK(size > (elem)(10.0f), (elem)(10.0f), size) * (elem)(2.0f * LOG2_E));
    const elem y = PICK(size < (elem)(0.55f), p, (elem)(1.0f) - (elem)(2.0f) / (e + (elem)(1.0f)));
    return as_elem(as_index(y) | (as_index(x) & (index)(int)0x80000000u));
}

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

/* Q of the tile, transposed. Rows past the last one repeat it; they are not stored. */
FN void cpu_load_q(engine *e, const tile *t, const launch_args *a, __global const void *q)
{
    ROLLED for (int j = 0; j < VECTORS; j++)
    {
        long at[LANES];
        ROLLED for (int i = 0; i < LANES; i++) { at[i] = tile_row_offset(t, a->q, min(t->row0 + j * LANES + i, t->rows - 1)); }
        int d = 0;
        if (a->q.dim == 1) {
            for (; d + LANES <= HEAD_DIM; d += LANES) {
                elem x[LANES];
                ROLLED for (int i = 0; i < LANES; i++) { x[i] = LOAD_Q_VECTOR(q, at[i] + d); }
                transpose_vectors(x);
                ROLLED for (int i = 0; i < LANES; i++) { e->q[(d + i) * VECTORS + j] = x[i]; }
            }
        }
        ROLLED for (; d < HEAD_DIM; d++)
        {
            ROLLED for (int i = 0; i < LANES; i++)
            {
                ((float *)e->q)[(d * VECTORS + j) * LANES + i] = LOAD_Q(q, at[i] + d * a->q.dim);
            }
        }
    }
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
            ROLLED for (int i = 0; i < LANES; i++) { x[i] = e->o[(d + i) * VECTORS + r]; }
            transpose_vectors(x);
            ROLLED for (int i = 0; i < rows; i++) { STORE_O_VECTOR(x[i], o, at[i] + d); }
        }
    }
    ROLLED for (; d < HEAD_DIM_V; d++)
    {
        ROLLED for (int i = 0; i < rows; i++)
        {
            STORE_O(((const float *)e->o)[(d * VECTORS + r) * LANES + i], o, at[i] + d * a->o.dim);
        }
    }
}
