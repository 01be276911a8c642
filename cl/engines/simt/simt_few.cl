/* SPDX-License-Identifier: Apache-2.0
 * simt with few rows. Only reading K and V takes time, so they go directly from memory to registers. Included by
 * cl/engines/simt/simt.cl.
 *
 * A work-item holds one piece of a key's row: 8 columns. K_LANES adjacent work-items hold a key of K, V_LANES a key of V. A
 * group reads WORK_GROUP / K_LANES keys at once, K_STEPS times a block. Each piece is multiplied by all rows of Q, which every
 * work-item holds in registers for its columns.
 *
 *         S    pieces of a product are added through local memory. Work-item (x, y) of ITEMS_X x ITEMS_Y then holds
 *              rows y + ITEMS_Y * r, keys x + ITEMS_X * c
 *         O    a work-item sums all rows in its columns over the keys that it reads. After the loop these sums are added
 *              through local memory, and (x, y) holds rows y + ITEMS_Y * r, columns x + ITEMS_X * c
 *
 * V of a block is in flight while K is multiplied by Q, and K of the next block while P is multiplied by V. With RING_SLOTS
 * (devices that copy to local memory without registers) two blocks of both are in flight. Each work-item has its own slots
 * there, so reading them needs no barrier. Two barriers a block.
 */
#define ITEMS_X 32
#define ITEMS_Y (WORK_GROUP / ITEMS_X)
#if BLOCK_M != ITEMS_Y * ROWS_PER_ITEM || BLOCK_N != ITEMS_X * COLS_PER_ITEM || TEAM != WORK_GROUP || HEAD_DIM > 256 ||        \
    HEAD_DIM_V > 256
#error "simt: the tile is not what the work-items cover"
#endif
#define LANES_FOR(width) ((width) <= 32 ? 4 : (width) <= 64 ? 8 : (width) <= 128 ? 16 : 32)
/* Q is loaded by 16 bytes only where few instructions matter more than short code. */
#define WIDE_Q (RING_SLOTS != 0)
#define UNROLL_SOME _Pragma("unroll 2")
#define K_LANES LANES_FOR(HEAD_DIM)
#define V_LANES LANES_FOR(HEAD_DIM_V)
#define K_AT_ONCE (WORK_GROUP / K_LANES)
#define V_AT_ONCE (WORK_GROUP / V_LANES)
#define K_STEPS (BLOCK_N / K_AT_ONCE)
#define V_STEPS (BLOCK_N / V_AT_ONCE)
#define V_COLS (V_LANES * 8)
/* Stride of the pieces of a product for one key: an odd number of float4. */
#define PIECES_STRIDE ((K_LANES / 4 | 1) * 4)

#define S_ROWS ROWS_PER_ITEM
#define S_COLS COLS_PER_ITEM
#define O_COLS ((HEAD_DIM_V + ITEMS_X - 1) / ITEMS_X)
#define FOR_ROWS(r) UNROLL_REGISTERS for (int r = 0; r < S_ROWS; r++)
#define FOR_S_COLS(c) UNROLL_REGISTERS for (int c = 0; c < S_COLS; c++)
#define FOR_O_COLS(c) UNROLL_REGISTERS for (int c = 0; c < O_COLS; c++)
#define FOR_ALL_ROWS(r) UNROLL_REGISTERS for (int r = 0; r < BLOCK_M; r++)
#define FOR_PIECE(i) UNROLL_REGISTERS for (int i = 0; i < 8; i++)
#define S_GET(e, r, c) (e)->s[r][c]
#define S_SET(e, r, c, x) (e)->s[r][c] = (x)
#define O_GET(e, r, c) (e)->o[r][c]
#define O_SET(e, r, c, x) (e)->o[r][c] = (x)
#define ENGINE_ROW(e, r) ((e)->y + ITEMS_Y * (r))
#define ENGINE_S_COL(e, c) ((e)->x + ITEMS_X * (c))
#define ENGINE_O_COL(e, c) ((e)->x + ITEMS_X * (c))
#define ENGINE_OWNS_ROWS(e) ((e)->x == 0)

/* 8 elements in their order in memory. The second half of fp32 comes from the second half of the row, so that adjacent
 * work-items read adjacent bytes. */
#if K_TYPE == FP32
#define K_QUADS 2
#else
#define K_QUADS 1
#endif
#if V_TYPE == FP32
#define V_QUADS 2
#else
#define V_QUADS 1
#endif
#define PIECE_COL(quads, lanes, lane, i) ((quads) == 2 ? (i) / 4 * (lanes)*4 + (lane)*4 + (i) % 4 : (lane)*8 + (i))

/* Sizes in floats. Sums of O reuse the place of the pieces of products. */
#define PIECES_SIZE (BLOCK_M * BLOCK_N * PIECES_STRIDE)
#define SUMS_SIZE (V_AT_ONCE * BLOCK_M * V_COLS)
#define SHARED_SIZE (PIECES_SIZE > SUMS_SIZE ? PIECES_SIZE : SUMS_SIZE)
#define P_SIZE (BLOCK_N * BLOCK_M)
#define FOLD_SIZE (BLOCK_M * ITEMS_X)
#define ALPHA_SIZE ((BLOCK_M + 3) / 4 * 4)
/* In units of 16 bytes a work-item. */
#define RING_SIZE (RING_SLOTS * (K_STEPS * K_QUADS + V_STEPS * V_QUADS))
#if (SHARED_SIZE + P_SIZE + FOLD_SIZE + ALPHA_SIZE) * 4 + RING_SIZE * WORK_GROUP * 16 != LOCAL_BYTES
#error "simt: the host half counts local memory differently"
#endif
#define ENGINE_LOCAL(e)                                                                                                        \
    __local float4 simt_local[LOCAL_BYTES / 16];                                                                               \
    (e).shared = (__local float *)simt_local;
#define P_PLACE(e) ((e)->shared + SHARED_SIZE)
#define FOLD_PLACE(e) (P_PLACE(e) + P_SIZE)
#define ALPHA_PLACE(e) (FOLD_PLACE(e) + FOLD_SIZE)
#define RING_PLACE(e) ((__local uint4 *)(ALPHA_PLACE(e) + ALPHA_SIZE) + get_local_id(0))

typedef struct {
    __local float *shared;
    matrix k, v;
    int x, y;
#if RING_SLOTS
    int turn; /* the slot of this block */
#else
    uint4 k_raw[K_STEPS * K_QUADS], v_raw[V_STEPS * V_QUADS];
#endif
    float q[BLOCK_M][8], sum[BLOCK_M][8];
    float s[S_ROWS][S_COLS], o[S_ROWS][O_COLS];
} engine;

#include "cl/engines/simt/simt_few_load.cl"

#if RING_SLOTS
#define K_RAW(e) (RING_PLACE(e) + (e)->turn * (K_STEPS * K_QUADS) * WORK_GROUP)
#define V_RAW(e) (RING_PLACE(e) + (RING_SLOTS * K_STEPS * K_QUADS + (e)->turn * (V_STEPS * V_QUADS)) * WORK_GROUP)
#else
#define K_RAW(e) (e)->k_raw
#define V_RAW(e) (e)->v_raw
#endif
FN void fetch_k(engine *e, const tile *t, int key0)
{
    if (key0 < t->key_end) {
        fetch(K_RAW(e), &e->k, K_TYPE, K_QUADS, K_LANES, K_STEPS, HEAD_DIM, t, key0);
    }
}
FN void fetch_v(engine *e, const tile *t, int key0)
{
    if (key0 < t->key_end) {
        fetch(V_RAW(e), &e->v, V_TYPE, V_QUADS, V_LANES, V_STEPS, HEAD_DIM_V, t, key0);
    }
}
/* Each fetch of K or V is a group of copies: K, V, K, V ... of one block after the other. Waits until all groups but the last
 * three have arrived. */
#ifdef COPY_ASM
#define END_TURN() __asm__ volatile("cp.async.commit_group;" : : : "memory")
#define AWAIT_TURN() __asm__ volatile("cp.async.wait_group 3;" : : : "memory")
#else
#define END_TURN()
#define AWAIT_TURN()
#endif

FN void matrix_set(matrix *m, __global const void *data, long at, const tensor_view view, int type)
{
    const size_t size = type == FP32 ? 4 : 2;
    m->data = data;
    m->at = at;
    m->row_step = view.seq;
    m->col_step = view.dim;
    m->head_step = 0;
    m->pack = 1;
    /* For loads of 16 bytes. The address is tested as a number, since a call may start at any element of its buffer. */
    m->aligned = view.dim == 1 && (((size_t)data + (size_t)at * size) & 15) == 0 && ((size_t)view.seq * size & 15) == 0;
}

/* Whether every load of the rows of Q can take 16 bytes. */
FN int q_is_aligned(const tile *t, const launch_args *a, __global const void *q)
{
#if Q_TYPE == K_TYPE && HEAD_DIM * K_QUADS % 8 == 0
    const int size = 2 * K_QUADS, per_load = 16 / size;
    return a->q.dim == 1 && (((size_t)q + (size_t)(tile_q_offset(t, a->q) * size)) & 15) == 0 &&
           ((a->q.head | a->q.seq) & (per_load - 1)) == 0;
#else
    return 0;
#endif
}

FN void load_q(engine *e, const tile *t, const launch_args *a, __global const void *q)
{
    const int lane = (int)get_local_id(0) % K_LANES;
    if (WIDE_Q && q_is_aligned(t, a, q)) {
        matrix m = {q, tile_row_offset(t, a->q, t->row0), 0, 1, 0, 1, 1};
        int in_pack = t->row0 % t->pack;
        FOR_ALL_ROWS(r)
        {
            uint4 quad[2];
            UNROLL_REGISTERS
            for (int i = 0; i < K_QUADS; i++) {
                const int col = PIECE_COL(K_QUADS, K_LANES, lane, i * 4);
                quad[i] = t->row0 + r < t->rows && col < HEAD_DIM ? *quad_address(&m, Q_TYPE, m.at + col) : (uint4)(0);
            }
            unpack_words(Q_TYPE, quad[0], quad[K_QUADS - 1], e->q[r]);
            /* The next row belongs to the next head, or to the next query of the first head. */
            const int wraps = ++in_pack == t->pack;
            m.at += wraps ? a->q.seq - (t->pack - 1) * a->q.head : a->q.head;
            in_pack = wraps ? 0 : in_pack;
        }
        return;
    }
    FOR_ALL_ROWS(r)
    {
        const int row = t->row0 + r;
        const long at = tile_row_offset(t, a->q, min(row, t->rows - 1));
        FOR_PIECE(i)
        {
            const int col = PIECE_COL(K_QUADS, K_LANES, lane, i);
            e->q[r][i] = row < t->rows && col < HEAD_DIM ? LOAD_Q(q, at + col * a->q.dim) : 0.0f;
        }
    }
}

FN void engine_begin(engine *e, const tile *t, const launch_args *a, __global const void *q, __global const void *k,
                     __global const void *v)
{
    const int item = (int)get_local_id(0);
    const int key0 = tile_first_block(t);
    e->x = item % ITEMS_X;
    e->y = item / ITEMS_X;
    matrix_set(&e->k, k, tile_kv_offset(t, a->k), a->k, K_TYPE);
    matrix_set(&e->v, v, tile_kv_offset(t, a->v), a->v, V_TYPE);
#if RING_SLOTS
    ROLLED
    for (int i = 0, key = key0; i < 2; i++, key = tile_next_block(t, key)) {
        e->turn = i;
        fetch_k(e, t, key);
        END_TURN();
        fetch_v(e, t, key);
        END_TURN();
    }
    e->turn = 0;
#else
    fetch_k(e, t, key0);
#endif
    if (key0 < t->key_end) {
        load_q(e, t, a, q);
    }
    FOR_ALL_ROWS(r)
    {
        FOR_PIECE(i) { e->sum[r][i] = 0.0f; }
    }
}

/* Multiplies every piece of K by all rows of Q. */
FN void product_qk(engine *e)
{
    const int lane = (int)get_local_id(0) % K_LANES, first = (int)get_local_id(0) / K_LANES;
    __local float *place = e->shared + first * PIECES_STRIDE + lane;
    UNROLL_PIECES
    for (int step = 0; step < K_STEPS; step++) {
        float b[8];
        unpack(K_TYPE, K_RAW(e) + step * K_QUADS * RAW_STEP, b);
        FOR_ALL_ROWS(r)
        {
            float x = e->q[r][0] * b[0];
            UNROLL_REGISTERS
            for (int i = 1; i < 8; i++) {
                x = MULTIPLY_ADD(e->q[r][i], b[i], x);
            }
            place[(r * BLOCK_N + step * K_AT_ONCE) * PIECES_STRIDE] = x;
        }
    }
}

FN float pieces_sum(const engine *e, int row, int key)
{
    __local const float4 *x = (__local const float4 *)(e->shared + (row * BLOCK_N + key) * PIECES_STRIDE);
    float4 sum = x[0];
    UNROLL_REGISTERS
    for (int i = 1; i < K_LANES / 4; i++) {
        sum += x[i];
    }
    return (sum.x + sum.y) + (sum.z + sum.w);
}

FN void engine_qk(engine *e, const tile *t, int key0, float factor)
{
    const int next = tile_next_block(t, key0);
#if RING_SLOTS
    AWAIT_TURN();
    product_qk(e);
    fetch_k(e, t, tile_next_block(t, next));
    END_TURN();
#else
    fetch_v(e, t, key0);
    product_qk(e);
    fetch_k(e, t, next);
#endif
    barrier(CLK_LOCAL_MEM_FENCE);
    FOR_ROWS(r)
    {
        FOR_S_COLS(c) { e->s[r][c] = pieces_sum(e, ENGINE_ROW(e, r), ENGINE_S_COL(e, c)) * factor; }
    }
}

/* Writes P and alpha to local memory, for all work-items, and rescales O and the sums. */
FN void show_weights(engine *e, const elem *alpha)
{
    FOR_ROWS(r)
    {
        FOR_S_COLS(c) { P_PLACE(e)[ENGINE_S_COL(e, c) * BLOCK_M + ENGINE_ROW(e, r)] = e->s[r][c]; }
        if (e->x == 0) {
            ALPHA_PLACE(e)[ENGINE_ROW(e, r)] = alpha[r];
        }
        FOR_O_COLS(c) { e->o[r][c] *= alpha[r]; }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    FOR_ALL_ROWS(r)
    {
        const float factor = ALPHA_PLACE(e)[r];
        FOR_PIECE(i) { e->sum[r][i] *= factor; }
    }
}

FN void load_weights(const engine *e, int key, float *weight)
{
    __local const float *p = P_PLACE(e) + key * BLOCK_M;
#if BLOCK_M % 4 == 0
    UNROLL_REGISTERS
    for (int r = 0; r < BLOCK_M; r += 4) {
        const float4 x = *(__local const float4 *)(p + r);
        weight[r] = x.x, weight[r + 1] = x.y, weight[r + 2] = x.z, weight[r + 3] = x.w;
    }
#else
    FOR_ALL_ROWS(r) { weight[r] = p[r]; }
#endif
}

FN void engine_pv(engine *e, const tile *t, int key0, const elem *alpha)
{
    const int first = (int)get_local_id(0) / V_LANES;
    show_weights(e, alpha);
#if RING_SLOTS
    AWAIT_TURN();
#endif
    UNROLL_PIECES
    for (int step = 0; step < V_STEPS; step++) {
        float b[8], weight[BLOCK_M];
        int seen = 0;
        unpack(V_TYPE, V_RAW(e) + step * V_QUADS * RAW_STEP, b);
        load_weights(e, first + step * V_AT_ONCE, weight);
        FOR_ALL_ROWS(r) { seen |= weight[r] != 0.0f; }
        /* 0 * NaN is NaN, so V of a key that is masked for every row must be 0. */
        FOR_PIECE(i) { b[i] = !SCORE_OPTIONS || seen ? b[i] : 0.0f; }
        FOR_ALL_ROWS(r)
        {
            FOR_PIECE(i) { e->sum[r][i] = MULTIPLY_ADD(weight[r], b[i], e->sum[r][i]); }
        }
    }
#if RING_SLOTS
    fetch_v(e, t, tile_next_block(t, tile_next_block(t, key0)));
    END_TURN();
    e->turn ^= 1;
#endif
}

#ifdef WARP_ASM
FN void engine_fold_max(engine *e, elem *x)
{
    UNROLL_REGISTERS
    for (int distance = 1; distance < ITEMS_X; distance *= 2) {
        FOR_ROWS(r)
        {
            const float y = from_neighbour(x[r], distance);
            x[r] = LARGER(x[r], y);
        }
    }
}
FN void fold_sum(engine *e, elem *x)
{
    UNROLL_REGISTERS
    for (int distance = 1; distance < ITEMS_X; distance *= 2) {
        FOR_ROWS(r) { x[r] += from_neighbour(x[r], distance); }
    }
}
#else
FN void values_show(engine *e, const elem *x)
{
    FOR_ROWS(r) { FOLD_PLACE(e)[ENGINE_ROW(e, r) * ITEMS_X + e->x] = x[r]; }
    barrier(CLK_LOCAL_MEM_FENCE);
}
FN void engine_fold_max(engine *e, elem *x)
{
    values_show(e, x);
    FOR_ROWS(r)
    {
        for (int i = 0; i < ITEMS_X; i++) {
            const float y = FOLD_PLACE(e)[ENGINE_ROW(e, r) * ITEMS_X + i];
            x[r] = LARGER(x[r], y);
        }
    }
}
FN void fold_sum(engine *e, elem *x)
{
    values_show(e, x);
    FOR_ROWS(r)
    {
        x[r] = 0.0f;
        for (int i = 0; i < ITEMS_X; i++) {
            x[r] += FOLD_PLACE(e)[ENGINE_ROW(e, r) * ITEMS_X + i];
        }
    }
}
#endif

/* Called once, after the loop, so it completes O too. */
FN void engine_fold_sum(engine *e, elem *x)
{
    const int lane = (int)get_local_id(0) % V_LANES, first = (int)get_local_id(0) / V_LANES;
    FOR_ALL_ROWS(r)
    {
        FOR_PIECE(i) { e->shared[(first * BLOCK_M + r) * V_COLS + PIECE_COL(V_QUADS, V_LANES, lane, i)] = e->sum[r][i]; }
    }
    fold_sum(e, x);
    barrier(CLK_LOCAL_MEM_FENCE);
    FOR_ROWS(r)
    {
        FOR_O_COLS(c)
        {
            float sum = e->o[r][c];
            for (int i = 0; i < V_AT_ONCE; i++) {
                sum += e->shared[(i * BLOCK_M + ENGINE_ROW(e, r)) * V_COLS + ENGINE_O_COL(e, c)];
            }
            e->o[r][c] = sum;
        }
    }
}
