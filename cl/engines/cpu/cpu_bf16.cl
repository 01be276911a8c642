/* SPDX-License-Identifier: Apache-2.0
 * cpu_bf16: bf16 on x86 processors with AVX512-BF16. vdpbf16ps adds two products to each of 16 sums. The layout is that of
 * cl/engines/cpu/cpu_amx.cl. The loops are those of cl/engines/cpu/cpu.cl, over pairs:
 *
 *         S[key][rows] += pair of K[key] * pairs of Q[rows]         K in place: a pair is a word of its row
 *         O[e][rows] += pair of V[e] * pairs of P[rows]             V in pairs of keys, packed once a block
 *
 * Host: VECTORS, KEYS (times VECTORS sums stay in registers). HEAD_DIM is even. Elements of a row are contiguous.
 */
#define LANES 16
#include "cl/engines/cpu/cpu_rows.cl"

#if BLOCK_M != 16 * VECTORS || BLOCK_N % 32 != 0 || BLOCK_N % KEYS != 0 || HEAD_DIM % 2 != 0
#error "cpu_bf16: BLOCK_M must be 16 * VECTORS, BLOCK_N a multiple of 32 and of KEYS, HEAD_DIM even"
#endif

#define S_GET(e, r, c) (e)->s[(r)*BLOCK_N + (c)]
#define S_SET(e, r, c, x) (e)->s[(r)*BLOCK_N + (c)] = (x)

#define Q_PAIRS ((HEAD_DIM + 31) / 32 * 16)
#define O_WIDTH ((HEAD_DIM_V + 15) / 16 * 16)
#define O_AT(c, r) ((c)*VECTORS + (r))
#define COLUMNS 4

typedef struct {
    uint16 q[VECTORS * Q_PAIRS];          /* [rows][pair of d] */
    uint16 p[VECTORS * BLOCK_N / 2];      /* [rows][pair of keys] */
    uint16 v[BLOCK_N / 2 * O_WIDTH / 16]; /* [pair of keys][column] */
    elem s[VECTORS * BLOCK_N];            /* [rows][key] */
    elem o[VECTORS * O_WIDTH];            /* [column][rows] */
    elem largest[VECTORS];
    int columns, begin; /* keys of this tile, and the first key visible to some row */
    __global const ushort *k, *v_data;
    long k_seq, v_seq;
} engine;

#include "cl/engines/cpu/cpu_vector.cl"
#include "cl/engines/cpu/cpu_pairs.cl"

FN void engine_begin(engine *e, const tile *t, const launch_args *a, __global const void *q, __global const void *k,
                     __global const void *v)
{
    pairs_begin(e, t, a, q, k, v);
}

/* sum += word * y, where `word` is one pair for all lanes. No builtin for this is the same in all compilers. */
#define ADD_PAIRS(sum, word, y) __asm__("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"((uint16)(word)), "v"(y))

FN void engine_qk(engine *e, const tile *t, int key0, float factor)
{
    elem largest[VECTORS];
    UNROLL for (int j = 0; j < VECTORS; j++) { largest[j] = (elem)(-INFINITY); }
    e->columns = min(BLOCK_N, t->key_end - key0);
    e->begin = max(t->key_begin - key0, 0);
    for (int c = 0; c < e->columns; c += KEYS) {
        __global const ushort *k[KEYS];
        elem sum[KEYS * VECTORS];
        /* Past the last key, the last key repeats: such scores are never read. */
        UNROLL for (int i = 0; i < KEYS; i++) { k[i] = e->k + (key0 + min(c + i, e->columns - 1)) * e->k_seq; }
        UNROLL for (int i = 0; i < KEYS * VECTORS; i++) { sum[i] = (elem)(0.0f); }
        for (int d = 0; d < HEAD_DIM / 2; d++) {
            UNROLL for (int i = 0; i < KEYS; i++)
            {
                const uint word = as_uint(vload2(d, k[i]));
                UNROLL for (int j = 0; j < VECTORS; j++) { ADD_PAIRS(sum[i * VECTORS + j], word, e->q[j * Q_PAIRS + d]); }
            }
        }
        UNROLL for (int i = 0; i < KEYS; i++)
        {
            UNROLL for (int j = 0; j < VECTORS; j++)
            {
                const elem score = sum[i * VECTORS + j] * factor;
                largest[j] = LARGER(largest[j], score);
                S_SET(e, j, c + i, score);
            }
        }
    }
    UNROLL for (int j = 0; j < VECTORS; j++) { e->largest[j] = largest[j]; }
}

/* Loads V of the block in pairs of keys. */
FN void bf16_load_values(engine *e, int key0)
{
    const ushort16 none = (ushort16)(0);
    for (int c = 0; c < e->columns; c += 2) {
        const int low = value_takes_part(e, c), high = value_takes_part(e, c + 1);
        __global const ushort *const row = e->v_data + (key0 + c) * e->v_seq;
        uint16 *const to = e->v + c / 2 * (O_WIDTH / 16);
        int d = 0;
        if (low && high) {
            for (; d + 16 <= HEAD_DIM_V; d += 16) {
                to[d / 16] = as_uint16(pair_of_values(vload16(0, row + d), vload16(0, row + e->v_seq + d)));
            }
        }
        for (; d < HEAD_DIM_V; d += 16) {
            to[d / 16] =
                as_uint16(pair_of_values(low ? some_values(row, d) : none, high ? some_values(row + e->v_seq, d) : none));
        }
    }
}

FN void engine_pv(engine *e, const tile *t, int key0, const elem *alpha)
{
    const int pairs = (e->columns + 1) / 2;
    pairs_pack_weights(e);
    bf16_load_values(e, key0);
    for (int c = 0; c < HEAD_DIM_V; c += COLUMNS) {
        elem sum[COLUMNS * VECTORS];
        UNROLL for (int i = 0; i < COLUMNS; i++)
        {
            UNROLL for (int j = 0; j < VECTORS; j++) { sum[i * VECTORS + j] = e->o[O_AT(c + i, j)] * alpha[j]; }
        }
        const uint *v = (const uint *)e->v + c;
        for (int n = 0; n < pairs; n++) {
            UNROLL for (int i = 0; i < COLUMNS; i++)
            {
                UNROLL for (int j = 0; j < VECTORS; j++) { ADD_PAIRS(sum[i * VECTORS + j], v[i], e->p[j * (BLOCK_N / 2) + n]); }
            }
            v += O_WIDTH;
        }
        UNROLL for (int i = 0; i < COLUMNS; i++)
        {
            UNROLL for (int j = 0; j < VECTORS; j++) { e->o[O_AT(c + i, j)] = sum[i * VECTORS + j]; }
        }
    }
}
