/* SPDX-License-Identifier: Apache-2.0
 * cpu_decode: few rows, as in decoding. Lanes of queries would stay empty, and memory limits the speed. So lanes are elements
 * of the head, and a work-item owns the LANES (1, 4 or 8) rows that share keys:
 *
 *         S: WIDTH / LANES keys at a time, one vector of partial sums for each key and row. WIDTH such vectors add up to one
 *            vector, whose lane i is row i % LANES of key i / LANES: the layout that softmax takes.
 *         O: a vector of columns of V at a time, times a broadcast weight for each row.
 *
 * K and V, of any type, are read in place, each element once. While K or V is processed, the next block of the other is
 * prefetched. Where a head is not a multiple of WIDTH, its last vector starts early. For K, elements that are also in the
 * vector before count once. For O, columns in both vectors are taken from the last.
 *
 * Host: LANES, WIDTH. Elements of a row of K and of V are contiguous, at least WIDTH of them.
 */
#define EXP2(x) cpu_exp2(x)
#define EXP_DIFFERENCE(x) cpu_exp(x)
#define NATURAL_SCORES
#define TANH(x) cpu_tanh(x)
#include "cl/elem.cl"

#if BLOCK_M != LANES || BLOCK_N % WIDTH != 0 || WIDTH % LANES != 0 || HEAD_DIM < WIDTH || HEAD_DIM_V < WIDTH
#error "cpu_decode: BLOCK_M must be LANES, BLOCK_N a multiple of WIDTH, WIDTH one of LANES, heads at least WIDTH"
#endif

#define S_ROWS 1
#define S_COLS BLOCK_N
#define O_COLS HEAD_DIM_V
#define FOR_ROWS(r) for (int r = 0; r < 1; r++)
#define FOR_S_COLS(c) for (int c = 0; c < e->columns; c++)
#define FOR_O_COLS(c) for (int c = 0; c < HEAD_DIM_V; c++)
#define S_GET(e, r, c) ((elem *)(e)->s)[c]
#define S_SET(e, r, c, x) ((elem *)(e)->s)[c] = (x)
#define O_GET(e, r, c) decode_column(e, c)
#define O_SET(e, r, c, x) decode_set_column(e, c, x)
#define ENGINE_ROW(e, r) LANE_NUMBERS
#define ENGINE_S_COL(e, c) (c)
#define ENGINE_O_COL(e, c) (c)
#define ENGINE_OWNS_ROWS(e) 1
#define ENGINE_LOCAL(e)
#define ENGINE_APART
#define ENGINE_ROW_MAX(e, r) (e)->largest
#define ENGINE_PARTIAL_ROW(e, r, lane, out) decode_copy_row(e, lane, out)

#define KEYS (WIDTH / LANES)
#define Q_VECTORS ((HEAD_DIM + WIDTH - 1) / WIDTH)
#define O_VECTORS ((HEAD_DIM_V + WIDTH - 1) / WIDTH)
/* Vectors of O whose sums are in registers at once. */
#define TAKEN (WIDTH / LANES > 8 ? 8 : WIDTH / LANES)

#include "cl/engines/cpu/cpu_load.cl"
#include "cl/engines/cpu/cpu_math.cl"

#if LANES == 8
#define LANE_NUMBERS ((int8)(0, 1, 2, 3, 4, 5, 6, 7))
#elif LANES == 4
#define LANE_NUMBERS ((int4)(0, 1, 2, 3))
#else
#define LANE_NUMBERS 0
#endif

#define SIZE_OF(type) ((type) == FP32 ? 4 : 2)

typedef struct {
    wide q[Q_VECTORS * LANES];       /* [vector][row] */
    wide s[BLOCK_N * LANES / WIDTH]; /* [key][row] */
    wide o[LANES * O_VECTORS];       /* [row][vector] */
    elem largest;
    int columns; /* keys of this tile: BLOCK_N, fewer in the last block */
    __global const void *k, *v;
    long k_row0, k_seq, v_row0, v_seq;
} engine;

/* The position of column c in a row of O. */
FN int decode_place(int c) { return c < (O_VECTORS - 1) * WIDTH ? c : c + O_VECTORS * WIDTH - HEAD_DIM_V; }

FN elem decode_column(const engine *e, int c)
{
    elem x;
    UNROLL for (int r = 0; r < LANES; r++) { LANE(x, r) = ((const float *)e->o)[r * O_VECTORS * WIDTH + decode_place(c)]; }
    return x;
}
FN void decode_set_column(engine *e, int c, elem x)
{
    UNROLL for (int r = 0; r < LANES; r++) { ((float *)e->o)[r * O_VECTORS * WIDTH + decode_place(c)] = LANE(x, r); }
}
FN void decode_copy_row(const engine *e, int row, __global float *out)
{
    const float *const o = (const float *)e->o + row * O_VECTORS * WIDTH;
    for (int c = 0; c < HEAD_DIM_V; c++) {
        out[c] = o[decode_place(c)];
    }
}

/* Rows past the last repeat the last row; they are not stored. */
FN void engine_begin(engine *e, const tile *t, const launch_args *a, __global const void *q, __global const void *k,
                     __global const void *v)
{
    e->k = k;
    e->k_row0 = tile_kv_offset(t, a->k);
    e->k_seq = a->k.seq;
    e->v = v;
    e->v_row0 = tile_kv_offset(t, a->v);
    e->v_seq = a->v.seq;
    for (int r = 0; r < LANES; r++) {
        const long row = tile_row_offset(t, a->q, min(t->row0 + r, t->rows - 1));
        for (int i = 0; i < Q_VECTORS * WIDTH; i++) {
            const int d = min(i / WIDTH * WIDTH, HEAD_DIM - WIDTH) + i % WIDTH;
            ((float *)e->q)[(i / WIDTH * LANES + r) * WIDTH + i % WIDTH] = LOAD_Q(q, row + d * a->q.dim);
        }
    }
    for (int i = 0; i < LANES * O_VECTORS; i++) {
        e->o[i] = (wide)(0.0f);
    }
}

/* Prefetches a row of K or V into the cache. */
#define DECODE_FETCH(p, row, type, width) prefetch_row((__global const char *)(p) + (row)*SIZE_OF(type), (width)*SIZE_OF(type))

/* From 2n vectors to n: sums of adjacent lanes, of the first vector of a pair in the low half, of the second in the high half.
 * Not a function: compilers do not unroll loops with a parameter as limit early enough to keep x in registers. */
#define DECODE_ADD_PAIRS(y, x, n)                                                                                              \
    UNROLL for (int i = 0; i < (n); i++)                                                                                       \
    {                                                                                                                          \
        y[i] = (wide)(x[2 * i].even, x[2 * i + 1].even) + (wide)(x[2 * i].odd, x[2 * i + 1].odd);                              \
    }

/* From WIDTH vectors to one: lane i is the sum of all lanes of x[i]. */
FN wide decode_add_lanes(const wide *x)
{
    wide a[2], b;
#if WIDTH == 4
    DECODE_ADD_PAIRS(a, x, 2)
#else
    wide c[4];
#if WIDTH == 8
    DECODE_ADD_PAIRS(c, x, 4)
#else
    wide d[8];
    DECODE_ADD_PAIRS(d, x, 8)
    DECODE_ADD_PAIRS(c, d, 4)
#endif
    DECODE_ADD_PAIRS(a, c, 2)
#endif
    b = (wide)(a[0].even, a[1].even) + (wide)(a[0].odd, a[1].odd);
    return b;
}

/* sum[key][row] += the vector of K at element d of each key, times that of Q. The first `skipped` lanes do not count. */
FN void decode_add_products(const engine *e, wide *sum, const long *at, int d, const wide *q, const int skipped)
{
    UNROLL for (int i = 0; i < KEYS; i++)
    {
        wide k = LOAD_K_VECTOR(e->k, at[i] + d);
        if (skipped) {
            UNROLL for (int j = 0; j < skipped; j++) { ((float *)&k)[j] = 0.0f; }
        }
        UNROLL for (int r = 0; r < LANES; r++) { sum[i * LANES + r] = MULTIPLY_ADD(k, q[r], sum[i * LANES + r]); }
    }
}

FN void engine_qk(engine *e, const tile *t, int key0, float factor)
{
    wide largest = (wide)(-INFINITY);
    e->columns = min(BLOCK_N, t->key_end - key0);
    for (int c = 0; c < e->columns; c += KEYS) {
        wide sum[WIDTH];
        long at[KEYS];
        /* Past the last key, the last key repeats: such scores are never read. */
        UNROLL for (int i = 0; i < KEYS; i++) { at[i] = e->k_row0 + (key0 + min(c + i, e->columns - 1)) * e->k_seq; }
        for (int i = 0; i < KEYS; i++) {
            DECODE_FETCH(e->v, e->v_row0 + (key0 + c + i) * e->v_seq, V_TYPE, HEAD_DIM_V);
        }
        UNROLL for (int i = 0; i < WIDTH; i++) { sum[i] = (wide)(0.0f); }
        for (int n = 0; n < HEAD_DIM / WIDTH; n++) {
            decode_add_products(e, sum, at, n * WIDTH, e->q + n * LANES, 0);
        }
#if HEAD_DIM % WIDTH != 0
        decode_add_products(e, sum, at, HEAD_DIM - WIDTH, e->q + HEAD_DIM / WIDTH * LANES, WIDTH - HEAD_DIM % WIDTH);
#endif
        const wide score = decode_add_lanes(sum) * factor;
        e->s[c / KEYS] = score;
        largest = select(largest, score, score > largest);
    }
    e->largest = (elem)(-INFINITY);
    for (int i = 0; i < WIDTH; i += LANES) {
        const elem x = *(elem *)((float *)&largest + i);
        e->largest = LARGER(e->largest, x);
    }
}

/* Adds keys begin ... end - 1 of the block to vectors n ... n + taken - 1 of O. */
FN void decode_add_columns(engine *e, int key0, int begin, int end, int n, const int taken, const elem *alpha)
{
    wide sum[LANES * TAKEN];
    long at[TAKEN];
    UNROLL for (int i = 0; i < taken; i++)
    {
        at[i] = e->v_row0 + (key0 + begin) * e->v_seq + min((n + i) * WIDTH, HEAD_DIM_V - WIDTH);
        UNROLL for (int r = 0; r < LANES; r++) { sum[r * TAKEN + i] = e->o[r * O_VECTORS + n + i] * ((const float *)alpha)[r]; }
    }
    for (int c = begin; c < end; c++) {
        wide v[TAKEN];
        if (n == 0) {
            DECODE_FETCH(e->k, e->k_row0 + (key0 + BLOCK_N + c) * e->k_seq, K_TYPE, HEAD_DIM);
        }
        UNROLL for (int i = 0; i < taken; i++)
        {
            v[i] = LOAD_V_VECTOR(e->v, at[i]);
            at[i] += e->v_seq;
        }
        UNROLL for (int r = 0; r < LANES; r++)
        {
            const wide p = (wide)(((const float *)e->s)[c * LANES + r]);
            UNROLL for (int i = 0; i < taken; i++) { sum[r * TAKEN + i] = MULTIPLY_ADD(p, v[i], sum[r * TAKEN + i]); }
        }
    }
    UNROLL for (int i = 0; i < taken; i++)
    {
        UNROLL for (int r = 0; r < LANES; r++) { e->o[r * O_VECTORS + n + i] = sum[r * TAKEN + i]; }
    }
}

FN void decode_add_values(engine *e, int key0, int begin, int end, const elem *alpha)
{
    int n = 0;
    for (; n + TAKEN <= O_VECTORS; n += TAKEN) {
        decode_add_columns(e, key0, begin, end, n, TAKEN, alpha);
    }
#if O_VECTORS % TAKEN != 0
    decode_add_columns(e, key0, begin, end, n, O_VECTORS % TAKEN, alpha);
#endif
}

#if SCORE_OPTIONS
/* Adds runs of keys. The runs are separated by keys with weight 0 in every row, which a mask or a bias masks: their V may be
 * NaN. */
FN void engine_pv(engine *e, const tile *t, int key0, const elem *alpha)
{
    const elem one = (elem)(1.0f), *factor = alpha;
    int begin = max(t->key_begin - key0, 0);
    do {
        int end = begin;
        while (end < e->columns && any_row(S_GET(e, 0, end) != (elem)(0.0f))) {
            end++;
        }
        decode_add_values(e, key0, begin, end, factor);
        factor = &one;
        begin = end + 1;
    } while (begin < e->columns);
}
#else
FN void engine_pv(engine *e, const tile *t, int key0, const elem *alpha)
{
    decode_add_values(e, key0, max(t->key_begin - key0, 0), e->columns, alpha);
}
#endif

FN void engine_fold_max(engine *e, elem *x) { (void)e, (void)x; }
FN void engine_fold_sum(engine *e, elem *x) { (void)e, (void)x; }
