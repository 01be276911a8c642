/* SPDX-License-Identifier: Apache-2.0
 * cpu: a lane is a query. A work-item owns BLOCK_M = LANES * VECTORS rows; Q, scores and output lie transposed in private
 * memory, so both products are one small kernel, a broadcast element of K or V times VECTORS vectors of rows:
 *
 *        S[key][rows] += K[key][d] * Q[d][rows]              O[e][rows] += V[key][e] * P[key][rows]
 *
 * and nothing ever crosses lanes. K and V are read in place (KV_IN_PLACE) or, when they are narrower than fp32 or their inner
 * stride is not 1, widened a tile at a time. No local memory, no barrier.
 *
 * Host: LANES, VECTORS; KEYS and COLUMNS of V that the products take at once (VECTORS times as many sums stay in registers);
 * KV_IN_PLACE.
 *
 * V of a key that no row of the tile sees is not read, so nothing in it (NaN included) can reach the output.
 */
#define EXP2(x) cpu_exp2(x)
#include "cl/elem.cl"

#if BLOCK_M != LANES * VECTORS || BLOCK_N % KEYS != 0
#error "cpu: BLOCK_M must be LANES * VECTORS, and BLOCK_N a multiple of KEYS"
#endif

#define S_ROWS VECTORS
#define S_COLS BLOCK_N
#define O_COLS HEAD_DIM_V
#define FOR_ROWS(r) for (int r = 0; r < VECTORS; r++)
#define FOR_S_COLS(c) for (int c = 0; c < e->columns; c++)
#define FOR_O_COLS(c) for (int c = 0; c < HEAD_DIM_V; c++)
#define S_GET(e, r, c) (e)->s[(c)*VECTORS + (r)]
#define S_SET(e, r, c, x) (e)->s[(c)*VECTORS + (r)] = (x)
#define O_GET(e, r, c) (e)->o[(c)*VECTORS + (r)]
#define O_SET(e, r, c, x) (e)->o[(c)*VECTORS + (r)] = (x)
#define ENGINE_ROW(e, r) (LANE_NUMBERS + (r)*LANES)
#define ENGINE_S_COL(e, c) (c)
#define ENGINE_O_COL(e, c) (c)
#define ENGINE_OWNS_ROWS(e) 1
#define ENGINE_LOCAL(e)
#define ENGINE_ROW_MAX(e, r) (e)->largest[r]
#define ENGINE_STORE_ROW(e, t, a, r, o_data) cpu_store_rows(e, t, a, r, o_data)

#if KV_IN_PLACE
#define KV_SPACE __global
#else
#define KV_SPACE
/* Elements from one widened row to the next: whole vectors, and one more, since a power of two would crowd few sets of the
 * cache. */
#define K_STEP ((HEAD_DIM + LANES - 1) / LANES * LANES + LANES)
#define V_STEP ((HEAD_DIM_V + LANES - 1) / LANES * LANES + LANES)
#define WIDE_STEP (K_STEP > V_STEP ? K_STEP : V_STEP)
#endif

typedef struct {
    elem q[HEAD_DIM * VECTORS];
    elem s[BLOCK_N * VECTORS];
    elem o[HEAD_DIM_V * VECTORS];
    elem largest[VECTORS];
#if !KV_IN_PLACE
    elem wide[BLOCK_N * WIDE_STEP / LANES]; /* the tile of K, then that of V, widened */
#endif
    int columns; /* keys of this tile: BLOCK_N, less in the last one */
    __global const void *k, *v;
    long k_row0, k_seq, k_dim;
    long v_row0, v_seq, v_dim;
} engine;

#include "cl/engines/cpu_vector.cl"

/* Rows read side by side hide their order from the hardware's prefetcher; those of the next product are asked for here. */
#ifdef __has_builtin
#if __has_builtin(__builtin_prefetch)
#define PREFETCH(p) __builtin_prefetch((const void *)(size_t)(p), 0, 2)
#endif
#endif
#ifndef PREFETCH
#define PREFETCH(p) (void)(p)
#endif
#define LINE_FLOATS 16
#define PREFETCH_KEYS ((BLOCK_N * COLUMNS + HEAD_DIM_V - 1) / HEAD_DIM_V)

FN void cpu_prefetch_row(__global const float *row, const int width)
{
    UNROLL for (int d = 0; d < width; d += LINE_FLOATS) { PREFETCH(row + d); }
}

FN void engine_begin(engine *e, const tile *t, const launch_args *a, __global const void *q, __global const void *k,
                     __global const void *v)
{
    e->k = k;
    e->k_row0 = tile_kv_offset(t, a->k);
    e->k_seq = a->k.seq;
    e->k_dim = a->k.dim;
    e->v = v;
    e->v_row0 = tile_kv_offset(t, a->v);
    e->v_seq = a->v.seq;
    e->v_dim = a->v.dim;
    cpu_load_q(e, t, a, q);
}

/* Scores of the KEYS keys that k[] points at, into rows `first` and on of S. */
FN void cpu_scores(engine *e, KV_SPACE const float *const *k, int first, float factor, elem *largest)
{
    elem sum[KEYS * VECTORS];
    UNROLL for (int i = 0; i < KEYS * VECTORS; i++) { sum[i] = (elem)(0.0f); }
    for (int d = 0; d < HEAD_DIM; d++) {
        elem q[VECTORS];
        UNROLL for (int j = 0; j < VECTORS; j++) { q[j] = e->q[d * VECTORS + j]; }
        UNROLL for (int i = 0; i < KEYS; i++)
        {
            const elem x = (elem)(k[i][d]);
            UNROLL for (int j = 0; j < VECTORS; j++) { sum[i * VECTORS + j] = MULTIPLY_ADD(x, q[j], sum[i * VECTORS + j]); }
        }
    }
    UNROLL for (int i = 0; i < KEYS; i++)
    {
        UNROLL for (int j = 0; j < VECTORS; j++)
        {
            const elem score = sum[i * VECTORS + j] * factor;
            largest[j] = LARGER(largest[j], score);
            e->s[(first + i) * VECTORS + j] = score;
        }
    }
}

FN void engine_qk(engine *e, const tile *t, int key0, float factor)
{
    elem largest[VECTORS];
    UNROLL for (int j = 0; j < VECTORS; j++) { largest[j] = (elem)(-INFINITY); }
    const int last = min(BLOCK_N, t->key_end - key0) - 1;
    e->columns = last + 1;
#if !KV_IN_PLACE
    cpu_widen_k(e, key0, last + 1);
#endif
    for (int c = 0; c <= last; c += KEYS) {
        KV_SPACE const float *k[KEYS];
        UNROLL for (int i = 0; i < KEYS; i++)
        {
#if KV_IN_PLACE
            /* Past the last key it is taken again, and masked later. */
            k[i] = (__global const float *)e->k + e->k_row0 + (key0 + min(c + i, last)) * e->k_seq;
#else
            k[i] = (const float *)e->wide + min(c + i, last) * K_STEP;
#endif
        }
#if KV_IN_PLACE
        UNROLL for (int i = 0; i < KEYS; i++)
        {
            cpu_prefetch_row((__global const float *)e->v + e->v_row0 + (key0 + min(c + i, last)) * e->v_seq, HEAD_DIM_V);
        }
#endif
        cpu_scores(e, k, c, factor, largest);
    }
    UNROLL for (int j = 0; j < VECTORS; j++) { e->largest[j] = largest[j]; }
}

/* Columns first ... first + columns - 1 of O; `columns` is a constant at most COLUMNS. */
FN void cpu_output(engine *e, KV_SPACE const float *v, long v_seq, int begin, int end, int first, const int columns,
                   const elem *alpha)
{
    elem sum[COLUMNS * VECTORS];
    UNROLL for (int i = 0; i < columns; i++)
    {
        UNROLL for (int j = 0; j < VECTORS; j++) { sum[i * VECTORS + j] = e->o[(first + i) * VECTORS + j] * alpha[j]; }
    }
    const elem *p = e->s + begin * VECTORS;
    v += begin * v_seq + first;
    for (int c = begin; c < end; c++) {
        elem weight[VECTORS];
        UNROLL for (int j = 0; j < VECTORS; j++) { weight[j] = p[j]; }
        UNROLL for (int i = 0; i < columns; i++)
        {
            const elem x = (elem)(v[i]);
            UNROLL for (int j = 0; j < VECTORS; j++)
            {
                sum[i * VECTORS + j] = MULTIPLY_ADD(x, weight[j], sum[i * VECTORS + j]);
            }
        }
        p += VECTORS;
        v += v_seq;
    }
    UNROLL for (int i = 0; i < columns; i++)
    {
        UNROLL for (int j = 0; j < VECTORS; j++) { e->o[(first + i) * VECTORS + j] = sum[i * VECTORS + j]; }
    }
}

FN void engine_pv(engine *e, const tile *t, int key0, const elem *alpha)
{
    const int begin = max(t->key_begin - key0, 0), end = e->columns;
#if KV_IN_PLACE
    __global const float *v = (__global const float *)e->v + e->v_row0 + key0 * e->v_seq;
    const long v_seq = e->v_seq;
#else
    cpu_widen_v(e, key0, begin, end);
    const float *v = (const float *)e->wide;
    const long v_seq = V_STEP;
#endif
#if KV_IN_PLACE
    __global const float *next = (__global const float *)e->k + e->k_row0 + (key0 + BLOCK_N) * e->k_seq;
#endif
    int d = 0;
    for (; d + COLUMNS <= HEAD_DIM_V; d += COLUMNS) {
#if KV_IN_PLACE
        for (int i = 0; i < PREFETCH_KEYS; i++) {
            cpu_prefetch_row(next, HEAD_DIM);
            next += e->k_seq;
        }
#endif
        cpu_output(e, v, v_seq, begin, end, d, COLUMNS, alpha);
    }
#if HEAD_DIM_V % COLUMNS != 0
    cpu_output(e, v, v_seq, begin, end, d, HEAD_DIM_V % COLUMNS, alpha);
#endif
}

FN void engine_fold_max(engine *e, elem *x) { (void)e, (void)x; }
FN void engine_fold_sum(engine *e, elem *x) { (void)e, (void)x; }
