/* SPDX-License-Identifier: Apache-2.0
 * reference: a work-item owns one row. Plain loops, any strides, no local memory, no barrier, any work-group size.
 *
 *         S  1 x BLOCK_N  in private memory         O  1 x HEAD_DIM_V  in private memory
 *
 * V of a key that is masked for this row is never added, so no value there (NaN included) can reach the output.
 */
#define LANES 1
#define EXP2(x) exp2(x)
#define NATURAL_SCORES
#include "cl/elem.cl"

#define S_ROWS 1
#define S_COLS BLOCK_N
#define O_COLS HEAD_DIM_V
#define FOR_ROWS(r) for (int r = 0; r < 1; r++)
#define FOR_S_COLS(c) for (int c = 0; c < BLOCK_N; c++)
#define FOR_O_COLS(c) for (int c = 0; c < HEAD_DIM_V; c++)
#define S_GET(e, r, c) (e)->s[c]
#define S_SET(e, r, c, x) (e)->s[c] = (x)
#define O_GET(e, r, c) (e)->o[c]
#define O_SET(e, r, c, x) (e)->o[c] = (x)
#define ENGINE_ROW(e, r) 0
#define ENGINE_S_COL(e, c) (c)
#define ENGINE_O_COL(e, c) (c)
#define ENGINE_OWNS_ROWS(e) 1
#define ENGINE_LOCAL(e)

typedef struct {
    __global const void *q, *k, *v;
    long q_row, q_dim;
    long k_row0, k_seq, k_dim;
    long v_row0, v_seq, v_dim;
    float s[BLOCK_N];
    float o[HEAD_DIM_V];
} engine;

FN void engine_begin(engine *e, const tile *t, const launch_args *a, __global const void *q, __global const void *k,
                     __global const void *v)
{
    e->q = q;
    e->q_row = tile_row_offset(t, a->q, t->row0);
    e->q_dim = a->q.dim;
    e->k = k;
    e->k_row0 = tile_kv_offset(t, a->k);
    e->k_seq = a->k.seq;
    e->k_dim = a->k.dim;
    e->v = v;
    e->v_row0 = tile_kv_offset(t, a->v);
    e->v_seq = a->v.seq;
    e->v_dim = a->v.dim;
}

FN void engine_qk(engine *e, const tile *t, int key0, float factor)
{
    for (int c = 0; c < BLOCK_N; c++) {
        float sum = 0.0f;
        if (key0 + c < t->key_end) {
            const long row = e->k_row0 + (key0 + c) * e->k_seq;
            for (int d = 0; d < HEAD_DIM; d++) {
                sum = MULTIPLY_ADD(LOAD_Q(e->q, e->q_row + d * e->q_dim), LOAD_K(e->k, row + d * e->k_dim), sum);
            }
        }
        e->s[c] = sum * factor;
    }
}

FN void engine_pv(engine *e, const tile *t, int key0, const elem *alpha)
{
    for (int d = 0; d < HEAD_DIM_V; d++) {
        e->o[d] *= alpha[0];
    }
    for (int c = 0; c < BLOCK_N; c++) {
        const float p = e->s[c];
        /* p is 0 for a masked key. NaN must pass through, hence no `p > 0`. */
        if (p != 0.0f) {
            const long row = e->v_row0 + (key0 + c) * e->v_seq;
            for (int d = 0; d < HEAD_DIM_V; d++) {
                e->o[d] = MULTIPLY_ADD(p, LOAD_V(e->v, row + d * e->v_dim), e->o[d]);
            }
        }
    }
}

FN void engine_fold_max(engine *e, elem *x) { (void)e, (void)x; }
FN void engine_fold_sum(engine *e, elem *x) { (void)e, (void)x; }
