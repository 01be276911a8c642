/* SPDX-License-Identifier: Apache-2.0
 * cpu_amx: bf16 on x86 processors with matrix tiles (AMX). tdpbf16ps adds 16 x 16 sums of 32 products each. As in
 * cl/engines/cpu/cpu.cl a lane is a query, so softmax never crosses lanes. A and B are the instruction's operands, 16 rows of
 * 64 bytes:
 *
 *         S[key][rows] = K[key][d] * Q[d][rows]
 *                 A: K, in place where possible           B: Q, in pairs of d, packed once a tile
 *         O[e][rows] += V[e][key] * P[key][rows]
 *                 A: V, transposed once a block           B: P, in pairs of keys
 *
 * All operands are in private memory, in groups of 16 rows of the tile. A step has two operands of each kind and four sums in
 * registers. Weights are rounded to bf16 for the second product; the sum of a row is not.
 *
 * Host: VECTORS, an even number. Elements of a row of K and of V are contiguous.
 */
#define LANES 16
#include "cl/engines/cpu/cpu_rows.cl"

#if BLOCK_M != 16 * VECTORS || VECTORS % 2 != 0 || BLOCK_N % 32 != 0
#error "cpu_amx: BLOCK_M must be 16 * VECTORS, VECTORS even, BLOCK_N a multiple of 32"
#endif

#define S_GET(e, r, c) (e)->s[(r)*BLOCK_N + (c)]
#define S_SET(e, r, c, x) (e)->s[(r)*BLOCK_N + (c)] = (x)
#define ENGINE_END(e) amx_end()

/* Pairs of elements of a head, and columns of O, rounded up to whole steps. */
#define Q_PAIRS ((HEAD_DIM + 31) / 32 * 16)
#define O_WIDTH ((HEAD_DIM_V + 31) / 32 * 32)
#define O_AT(c, r) ((r)*O_WIDTH + (c))
/* Keys that stay in the first-level cache, with Q of 32 rows and their scores, while all rows are multiplied by them. */
#define NEAR_KEYS (HEAD_DIM > 64 ? 64 : BLOCK_N)
#define K_IN_PLACE (HEAD_DIM % 32 == 0)

typedef struct {
    uint16 q[VECTORS * Q_PAIRS];           /* [rows][pair of d] */
    uint16 p[VECTORS * BLOCK_N / 2];       /* [rows][pair of keys] */
    uint16 v[BLOCK_N / 32 * O_WIDTH];      /* [32 keys][column]: a lane is a pair of keys */
    uint16 staged[BLOCK_N * Q_PAIRS / 16]; /* rows of K that cannot be read in place */
    elem s[VECTORS * BLOCK_N];             /* [rows][key] */
    elem o[VECTORS * O_WIDTH];             /* [rows][column] */
    elem largest[VECTORS];
    int columns; /* keys of this tile: BLOCK_N, fewer in the last block */
    int begin;   /* the first key visible to some row of the tile */
    __global const ushort *k, *v_data;
    long k_seq, v_seq;
} engine;

#include "cl/engines/cpu/cpu_vector.cl"
#include "cl/engines/cpu/cpu_pairs.cl"
#include "cl/engines/cpu/cpu_amx_tiles.cl"
#include "cl/engines/cpu/cpu_amx_load.cl"

FN void engine_begin(engine *e, const tile *t, const launch_args *a, __global const void *q, __global const void *k,
                     __global const void *v)
{
    pairs_begin(e, t, a, q, k, v);
    amx_begin();
}

/* Multiplies by `factor` the scores of two vectors of rows and keys begin ... end - 1 of the tile, and updates the largest
 * score of each row. */
FN void amx_scale_scores(engine *e, int r0, int begin, int end, float factor)
{
    for (int r = r0; r < r0 + 2; r++) {
        elem largest = begin == 0 ? (elem)(-INFINITY) : e->largest[r];
        for (int c = begin; c < end; c++) {
            const elem score = S_GET(e, r, c) * factor;
            largest = LARGER(largest, score);
            S_SET(e, r, c, score);
        }
        e->largest[r] = largest;
    }
}

/* Multiplies 32 keys from column c of the tile on, which start at `first`, by 32 rows. */
FN void amx_multiply_keys(engine *e, size_t first, long step, int r, int c)
{
    TILE_ZERO_SUMS
    for (int d = 0; d < Q_PAIRS; d += 16) {
        TILE_LOAD("tmm4", first + d * 4, step);
        TILE_LOAD("tmm5", first + 16 * step + d * 4, step);
        TILE_LOAD("tmm6", (size_t)(e->q + r * Q_PAIRS + d), 64L);
        TILE_LOAD("tmm7", (size_t)(e->q + (r + 1) * Q_PAIRS + d), 64L);
        TILE_PRODUCTS
    }
    TILE_STORE("tmm0", (size_t)(e->s + r * BLOCK_N + c), 64L);
    TILE_STORE("tmm1", (size_t)(e->s + (r + 1) * BLOCK_N + c), 64L);
    TILE_STORE("tmm2", (size_t)(e->s + r * BLOCK_N + c + 16), 64L);
    TILE_STORE("tmm3", (size_t)(e->s + (r + 1) * BLOCK_N + c + 16), 64L);
}

FN void engine_qk(engine *e, const tile *t, int key0, float factor)
{
    __global const ushort *const rows = e->k + key0 * e->k_seq;
    e->columns = min(BLOCK_N, t->key_end - key0);
    e->begin = max(t->key_begin - key0, 0);
    const int in_place = K_IN_PLACE ? e->columns / 32 * 32 : 0;
    for (int c = in_place; c < e->columns; c += 32) {
        amx_stage_keys(e, rows, c);
    }
    for (int c0 = 0; c0 < e->columns; c0 += NEAR_KEYS) {
        const int end = min(c0 + NEAR_KEYS, e->columns);
        for (int r = 0; r < VECTORS; r += 2) {
            for (int c = c0; c < end; c += 32) {
                if (c < in_place) {
                    amx_multiply_keys(e, (size_t)(rows + c * e->k_seq), e->k_seq * 2, r, c);
                } else {
                    amx_multiply_keys(e, (size_t)(e->staged + c * (Q_PAIRS / 16)), Q_PAIRS * 4L, r, c);
                }
            }
            amx_scale_scores(e, r, c0, end, factor);
        }
    }
}

/* Rescales the columns of O of rows whose maximum has grown. */
FN void amx_rescale(engine *e, const elem *alpha)
{
    FOR_ROWS(r)
    {
        const elem factor = alpha[r];
        if (any_row(factor != (elem)(1.0f))) {
            for (int i = 0; i < O_WIDTH; i++) {
                e->o[r * O_WIDTH + i] *= factor;
            }
        }
    }
}

FN void engine_pv(engine *e, const tile *t, int key0, const elem *alpha)
{
    const int blocks = (e->columns + 31) / 32;
    pairs_pack_weights(e);
    amx_load_values(e, key0);
    amx_rescale(e, alpha);
    for (int c = 0; c < O_WIDTH; c += 32) {
        for (int r = 0; r < VECTORS; r += 2) {
            TILE_LOAD("tmm0", (size_t)(e->o + r * O_WIDTH + c), 64L);
            TILE_LOAD("tmm1", (size_t)(e->o + (r + 1) * O_WIDTH + c), 64L);
            TILE_LOAD("tmm2", (size_t)(e->o + r * O_WIDTH + c + 16), 64L);
            TILE_LOAD("tmm3", (size_t)(e->o + (r + 1) * O_WIDTH + c + 16), 64L);
            for (int b = 0; b < blocks; b++) {
                TILE_LOAD("tmm4", (size_t)(e->v + b * O_WIDTH + c), 64L);
                TILE_LOAD("tmm5", (size_t)(e->v + b * O_WIDTH + c + 16), 64L);
                TILE_LOAD("tmm6", (size_t)(e->p + r * (BLOCK_N / 2) + b * 16), 64L);
                TILE_LOAD("tmm7", (size_t)(e->p + (r + 1) * (BLOCK_N / 2) + b * 16), 64L);
                TILE_PRODUCTS
            }
            TILE_STORE("tmm0", (size_t)(e->o + r * O_WIDTH + c), 64L);
            TILE_STORE("tmm1", (size_t)(e->o + (r + 1) * O_WIDTH + c), 64L);
            TILE_STORE("tmm2", (size_t)(e->o + r * O_WIDTH + c + 16), 64L);
            TILE_STORE("tmm3", (size_t)(e->o + (r + 1) * O_WIDTH + c + 16), 64L);
        }
    }
}
