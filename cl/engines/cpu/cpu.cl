/* SPDX-License-Identifier: Apache-2.0
 * cpu: a lane is a query. A work-item owns BLOCK_M = LANES * VECTORS rows. Q, scores and output are transposed in private
 * memory. So both products are the same small kernel: a broadcast element of K or V times VECTORS vectors of rows:
 *
 *         S[key][rows] += K[key][d] * Q[d][rows]              O[e][rows] += V[key][e] * P[key][rows]
 *
 * No operation crosses lanes. K and V in fp32 are read in place, at any strides (KV_IN_PLACE 1). Narrower types are widened a
 * few rows or columns at a time. No local memory, no barrier.
 *
 * Host: LANES, VECTORS; KEYS and COLUMNS of V that a product computes at once (VECTORS times as many sums stay in registers);
 * KV_IN_PLACE.
 *
 * V of a key that is masked for every row of the tile is not read, so no value there (NaN included) can reach the output.
 */
#include "cl/engines/cpu/cpu_rows.cl"

#if BLOCK_M != LANES * VECTORS || BLOCK_N % KEYS != 0
#error "cpu: BLOCK_M must be LANES * VECTORS, and BLOCK_N a multiple of KEYS"
#endif

#define S_GET(e, r, c) (e)->s[(c)*VECTORS + (r)]
#define S_SET(e, r, c, x) (e)->s[(c)*VECTORS + (r)] = (x)
#define O_AT(c, r) ((c)*VECTORS + (r))

/* The memory that products read K and V from. */
#if KV_IN_PLACE
#define KV_SPACE __global
#else
#define KV_SPACE
#endif

#define WHOLE_LANES(width) (((width) + LANES - 1) / LANES * LANES)

#define WIDE_KEYS (WHOLE_LANES(HEAD_DIM) / LANES * KEYS)
#define WIDE_ELEMS (WIDE_KEYS > BLOCK_N ? WIDE_KEYS : BLOCK_N)

typedef struct {
    elem q[HEAD_DIM * VECTORS];
    elem s[BLOCK_N * VECTORS];
    elem o[WHOLE_LANES(HEAD_DIM_V) * VECTORS];
    elem largest[VECTORS];
#if !KV_IN_PLACE
    elem wide[WIDE_ELEMS];
#endif
    int columns; /* keys of this tile: BLOCK_N, fewer in the last block */
    int far;     /* K and V of a head do not fit in a core's cache */
    __global const void *k, *v;
    long k_row0, k_seq, k_dim;
    long v_row0, v_seq, v_dim;
} engine;

#include "cl/engines/cpu/cpu_vector.cl"

/* Loads Q of the tile, transposed. Rows past the last repeat the last row; they are not stored. */
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

#define FAR_BYTES (1 << 20)

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
    e->far = (long)t->kv_length * (HEAD_DIM + HEAD_DIM_V) * 4 > FAR_BYTES;
    cpu_load_q(e, t, a, q);
#if HEAD_DIM_V % LANES != 0
    /* Clears the columns that fill the last vector. */
    for (int i = HEAD_DIM_V * VECTORS; i < WHOLE_LANES(HEAD_DIM_V) * VECTORS; i++) {
        e->o[i] = (elem)(0.0f);
    }
#endif
}

/* sum[i][rows] += x[i][n * step] * y[n][rows] for n < count, for both products. `terms`, at most KEYS or COLUMNS, is a
 * constant. */
FN void cpu_product(elem *sum, KV_SPACE const float *const *x, long step, const elem *y, int count, const int terms)
{
    long at = 0;
    for (int n = 0; n < count; n++) {
        elem rows[VECTORS];
        UNROLL for (int j = 0; j < VECTORS; j++) { rows[j] = y[j]; }
        UNROLL for (int i = 0; i < terms; i++)
        {
            const elem z = (elem)(x[i][at]);
            UNROLL for (int j = 0; j < VECTORS; j++) { sum[i * VECTORS + j] = MULTIPLY_ADD(z, rows[j], sum[i * VECTORS + j]); }
        }
        y += VECTORS;
        at += step;
    }
}

/* Adds keys begin ... end - 1 of the tile to columns d ... d + terms - 1 of O. */
FN void cpu_add_columns(engine *e, KV_SPACE const float *const *v, long step, int d, const int terms, int begin, int end,
                        const elem *alpha)
{
    elem sum[COLUMNS * VECTORS];
    UNROLL for (int i = 0; i < terms; i++)
    {
        UNROLL for (int j = 0; j < VECTORS; j++) { sum[i * VECTORS + j] = e->o[(d + i) * VECTORS + j] * alpha[j]; }
    }
    cpu_product(sum, v, step, e->s + begin * VECTORS, end - begin, terms);
    UNROLL for (int i = 0; i < terms; i++)
    {
        UNROLL for (int j = 0; j < VECTORS; j++) { e->o[(d + i) * VECTORS + j] = sum[i * VECTORS + j]; }
    }
}

#if KV_IN_PLACE
#include "cl/engines/cpu/cpu_place.cl"
#else
#include "cl/engines/cpu/cpu_widen.cl"
#endif

FN void engine_qk(engine *e, const tile *t, int key0, float factor)
{
    elem largest[VECTORS];
    UNROLL for (int j = 0; j < VECTORS; j++) { largest[j] = (elem)(-INFINITY); }
    e->columns = min(BLOCK_N, t->key_end - key0);
    for (int c = 0; c < e->columns; c += KEYS) {
        KV_SPACE const float *k[KEYS];
        elem sum[KEYS * VECTORS];
        const long step = cpu_take_keys(e, k, key0, c);
        UNROLL for (int i = 0; i < KEYS * VECTORS; i++) { sum[i] = (elem)(0.0f); }
        cpu_product(sum, k, step, e->q, HEAD_DIM, KEYS);
        UNROLL for (int i = 0; i < KEYS; i++)
        {
            UNROLL for (int j = 0; j < VECTORS; j++)
            {
                const elem score = sum[i * VECTORS + j] * factor;
                largest[j] = LARGER(largest[j], score);
                e->s[(c + i) * VECTORS + j] = score;
            }
        }
    }
    UNROLL for (int j = 0; j < VECTORS; j++) { e->largest[j] = largest[j]; }
}

#if SCORE_OPTIONS
/* Whether key `c` of the tile may be added: its weight is not 0 in some row, or its V is finite, so that 0 times V is 0. */
FN int cpu_is_harmless(const engine *e, int key0, int c)
{
    elem weight = (elem)(0.0f);
    for (int j = 0; j < VECTORS; j++) {
        weight = PICK(e->s[c * VECTORS + j] != (elem)(0.0f), (elem)(1.0f), weight);
    }
    int harmless = 1;
    if (!any_row(weight != (elem)(0.0f))) {
        const long at = e->v_row0 + (key0 + c) * e->v_seq;
        for (int d = 0; d < HEAD_DIM_V; d++) {
            harmless &= fabs(LOAD_V(e->v, at + d * e->v_dim)) <= LARGEST;
        }
    }
    return harmless;
}

/* Adds runs of keys. The runs are separated by keys that a mask or a bias masks for every row and whose V is not finite. */
FN void engine_pv(engine *e, const tile *t, int key0, const elem *alpha)
{
    elem factor[VECTORS];
    int begin = max(t->key_begin - key0, 0);
    for (int j = 0; j < VECTORS; j++) {
        factor[j] = alpha[j];
    }
    do {
        int end = begin;
        while (end < e->columns && cpu_is_harmless(e, key0, end)) {
            end++;
        }
        cpu_add_values(e, key0, begin, end, factor);
        for (int j = 0; j < VECTORS; j++) {
            factor[j] = (elem)(1.0f);
        }
        begin = end + 1;
    } while (begin < e->columns);
}
#else
FN void engine_pv(engine *e, const tile *t, int key0, const elem *alpha)
{
    cpu_add_values(e, key0, max(t->key_begin - key0, 0), e->columns, alpha);
}
#endif
