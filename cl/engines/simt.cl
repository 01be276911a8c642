/* SPDX-License-Identifier: Apache-2.0
 * simt: a work-group owns a tile; K and V stream through local memory, products are register micro-tiles of fp32 FMA.
 *
 *        ITEMS_X work-items across (x), ITEMS_Y down (y); neighbours are one below the other, two by two, then comes the next
 * x. Work-item (x, y) holds
 *
 *        rows      y + ITEMS_Y * r                            r < ROWS_PER_ITEM   (two rows of one warp lie in distinct banks)
 *        S columns x * COLS_PER_ITEM + c                      c < COLS_PER_ITEM
 *        O columns (x + ITEMS_X * j) * V_VECTOR + i           i < V_VECTOR, j < O_VECTORS
 *
 *        local memory   [ Q, whole ] [ P ] [ parts ] [ slot ] [ slot ]   all in float4, rows padded to an odd number of them
 *
 * A key block is a stream of chunks: K_CHUNKS times DEPTH_CHUNK columns of K (with those of Q, unless Q is resident), then
 * V_CHUNKS times VALUE_CHUNK rows of V. With two slots the next chunk, of this or the next block, is on its way while one is
 * multiplied, and a chunk costs one barrier; with one slot it costs two.
 *
 * Tiles of few rows are another matter: cl/engines/simt_few.cl.
 */
#include "cl/engines/simt_base.cl"

#ifdef FEW_ROWS
#include "cl/engines/simt_few.cl"
#else

#define ITEMS_X (BLOCK_N / COLS_PER_ITEM)
#define ITEMS_Y (WORK_GROUP / ITEMS_X)
#if BLOCK_M != ITEMS_Y * ROWS_PER_ITEM || ITEMS_Y % 2 != 0 || TEAM != WORK_GROUP
#error "simt: the tile is not what the work-items cover"
#endif

#define K_CHUNKS ((HEAD_DIM + DEPTH_CHUNK - 1) / DEPTH_CHUNK)
#define V_CHUNKS (BLOCK_N / VALUE_CHUNK)
#define CHUNKS (K_CHUNKS + V_CHUNKS)
#define O_VECTORS ((HEAD_DIM_V + ITEMS_X * V_VECTOR - 1) / (ITEMS_X * V_VECTOR))
#define V_COLS (O_VECTORS * ITEMS_X * V_VECTOR)

/* In float4. */
#define Q_STRIDE ((Q_RESIDENT ? K_CHUNKS : 1) * (DEPTH_CHUNK / 4) + 1)
#define K_STRIDE (DEPTH_CHUNK / 4 + 1)
#define V_STRIDE (V_COLS / 4 + 1)
#define P_STRIDE (BLOCK_N / 4 + 1)
#define Q_RESIDENT_SIZE (Q_RESIDENT ? BLOCK_M * Q_STRIDE : 0)
#define P_SIZE (BLOCK_M * P_STRIDE)
#define K_SIZE (BLOCK_N * K_STRIDE)
#define QK_SIZE (K_SIZE + (Q_RESIDENT ? 0 : BLOCK_M * Q_STRIDE))
#define V_SIZE (VALUE_CHUNK * V_STRIDE)
#define SLOT_SIZE (QK_SIZE > V_SIZE ? QK_SIZE : V_SIZE)
/* Work-items of a row that lie in one warp. Where the others lie in a second one, the two meet in local memory. */
#define WARP_X (ITEMS_X > 16 ? 16 : ITEMS_X)
#define PARTS_SIZE (ITEMS_X > WARP_X ? BLOCK_M / 2 : 0)
#define LOCAL_SIZE (Q_RESIDENT_SIZE + P_SIZE + PARTS_SIZE + SLOTS * SLOT_SIZE)
/* A flag a key, where an explicit mask or bias may hide one from every row. */
#define SEEN_SIZE (SCORE_OPTIONS ? BLOCK_N : 1)
#if LOCAL_SIZE * 16 + SEEN_SIZE * 4 != LOCAL_BYTES
#error "simt: the host half counts local memory differently"
#endif

#if V_VECTOR == 4
typedef float4 v_vector;
#elif V_VECTOR == 2
typedef float2 v_vector;
#else
typedef float v_vector;
#endif
#if COLS_PER_ITEM % 4 == 0
#define P_VECTOR 4
#elif COLS_PER_ITEM % 2 == 0
#define P_VECTOR 2
#else
#define P_VECTOR 1
#endif

#define S_ROWS ROWS_PER_ITEM
#define S_COLS COLS_PER_ITEM
#define O_COLS (O_VECTORS * V_VECTOR)
#define FOR_ROWS(r) UNROLL_REGISTERS for (int r = 0; r < S_ROWS; r++)
#define FOR_S_COLS(c) UNROLL_REGISTERS for (int c = 0; c < S_COLS; c++)
#define FOR_O_COLS(c) UNROLL_REGISTERS for (int c = 0; c < O_COLS; c++)
#define FOR_O_VECTORS(j) UNROLL_REGISTERS for (int j = 0; j < O_VECTORS; j++)
#define O_AT(e, r, c) (((float *)&(e)->o[r][(c) / V_VECTOR])[(c) % V_VECTOR])
#define S_GET(e, r, c) (e)->s[r][c]
#define S_SET(e, r, c, x) (e)->s[r][c] = (x)
#define O_GET(e, r, c) O_AT(e, r, c)
#define O_SET(e, r, c, x) O_AT(e, r, c) = (x)
#define ENGINE_ROW(e, r) ((e)->y + ITEMS_Y * (r))
#define ENGINE_S_COL(e, c) ((e)->x * S_COLS + (c))
#define ENGINE_O_COL(e, c) (((e)->x + ITEMS_X * ((c) / V_VECTOR)) * V_VECTOR + (c) % V_VECTOR)
#define ENGINE_OWNS_ROWS(e) ((e)->x == 0)
#define ENGINE_LOCAL(e)                                                                                                        \
    __local float4 simt_local[LOCAL_SIZE];                                                                                     \
    __local int simt_seen[SEEN_SIZE];                                                                                          \
    (e).local_memory = simt_local;                                                                                             \
    (e).seen = simt_seen;

typedef struct {
    __local float4 *local_memory;
    __local int *seen;
    matrix q, k, v;
    int x, y;
    int turn; /* which slot holds chunk 0 */
    float s[S_ROWS][S_COLS];
    v_vector o[S_ROWS][O_VECTORS];
} engine;

#define Q_PLACE(e) ((e)->local_memory)
#define P_PLACE(e) ((e)->local_memory + Q_RESIDENT_SIZE)
#define PARTS_PLACE(e) ((__local float *)((e)->local_memory + Q_RESIDENT_SIZE + P_SIZE))
#define SLOTS_BEGIN (Q_RESIDENT_SIZE + P_SIZE + PARTS_SIZE)
#define SLOT_PLACE(e, chunk) ((e)->local_memory + SLOTS_BEGIN + (((chunk) + (e)->turn) & (SLOTS - 1)) * SLOT_SIZE)

#include "cl/engines/simt_stage.cl"

/* Starts on its way: chunk `chunk` of the key block at key0. Rows that no row of the tile sees arrive as 0. */
FN void chunk_stage(engine *e, const tile *t, int key0, int chunk, __local float4 *slot)
{
    if (chunk < K_CHUNKS) {
        const int col0 = chunk * DEPTH_CHUNK;
        stage(slot, &e->k, K_TYPE, S_COLS, BLOCK_N, DEPTH_CHUNK, K_STRIDE, HEAD_DIM, key0, t->key_begin, t->key_end, col0);
        if (!Q_RESIDENT) {
            stage(slot + K_SIZE, &e->q, Q_TYPE, 1, BLOCK_M, DEPTH_CHUNK, Q_STRIDE, HEAD_DIM, t->row0, 0, t->rows, col0);
        }
    } else {
        const int row0 = key0 + (chunk - K_CHUNKS) * VALUE_CHUNK;
        stage(slot, &e->v, V_TYPE, 1, VALUE_CHUNK, V_COLS, V_STRIDE, HEAD_DIM_V, row0, t->key_begin, t->key_end, 0);
    }
}

/* On return, chunk `chunk` is there for everyone. */
FN void chunk_await(engine *e, const tile *t, int key0, int chunk)
{
#if SLOTS == 2
    STAGED_WAIT();
    barrier(CLK_LOCAL_MEM_FENCE);
    const int next = (chunk + 1) % CHUNKS, next_key0 = next == 0 ? tile_next_block(t, key0) : key0;
    if (next_key0 + (next > K_CHUNKS ? (next - K_CHUNKS) * VALUE_CHUNK : 0) < t->key_end) {
        chunk_stage(e, t, next_key0, next, SLOT_PLACE(e, chunk + 1));
    }
#else
    barrier(CLK_LOCAL_MEM_FENCE);
    chunk_stage(e, t, key0, chunk, SLOT_PLACE(e, chunk));
    STAGED_WAIT();
    barrier(CLK_LOCAL_MEM_FENCE);
#endif
}

FN void engine_begin(engine *e, const tile *t, const launch_args *a, __global const void *q, __global const void *k,
                     __global const void *v)
{
    const int item = (int)get_local_id(0);
    const int key0 = tile_first_block(t);
    /* NVIDIA's local memory hands 16 bytes to two neighbours at once where both read the same: so every work-item shares its
     * operand of the columns with one neighbour (item ^ 1) and that of the rows with the other (item ^ 2). */
    e->x = item / 2 % ITEMS_X;
    e->y = item / (2 * ITEMS_X) * 2 + item % 2;
    e->turn = 0;
    matrix_set(&e->q, q, tile_q_offset(t, a->q), a->q, t->pack, Q_TYPE);
    matrix_set(&e->k, k, tile_kv_offset(t, a->k), a->k, 1, K_TYPE);
    matrix_set(&e->v, v, tile_kv_offset(t, a->v), a->v, 1, V_TYPE);
    if (key0 < t->key_end) {
        if (Q_RESIDENT) {
            stage(Q_PLACE(e), &e->q, Q_TYPE, 1, BLOCK_M, K_CHUNKS * DEPTH_CHUNK, Q_STRIDE, HEAD_DIM, t->row0, 0, t->rows, 0);
        }
        if (SLOTS == 2) {
            chunk_stage(e, t, key0, 0, SLOT_PLACE(e, 0));
        }
    }
}

/* s += Q chunk * K chunk^T */
FN void product_qk(engine *e, __local const float4 *q, __local const float4 *k)
{
    q += e->y * Q_STRIDE;
    k += e->x * K_STRIDE;
    UNROLL_FEW
    for (int d = 0; d < DEPTH_CHUNK / 4; d++) {
        float4 b[S_COLS];
        FOR_S_COLS(c) { b[c] = k[c * ITEMS_X * K_STRIDE + d]; }
        FOR_ROWS(r)
        {
            const float4 a = q[r * ITEMS_Y * Q_STRIDE + d];
            FOR_S_COLS(c) { e->s[r][c] = MULTIPLY_ADD(a.x, b[c].x, e->s[r][c]); }
            FOR_S_COLS(c) { e->s[r][c] = MULTIPLY_ADD(a.y, b[c].y, e->s[r][c]); }
            FOR_S_COLS(c) { e->s[r][c] = MULTIPLY_ADD(a.z, b[c].z, e->s[r][c]); }
            FOR_S_COLS(c) { e->s[r][c] = MULTIPLY_ADD(a.w, b[c].w, e->s[r][c]); }
        }
    }
}

FN void engine_qk(engine *e, const tile *t, int key0, float factor)
{
    FOR_ROWS(r)
    {
        FOR_S_COLS(c) { e->s[r][c] = 0.0f; }
    }
    for (int chunk = 0; chunk < K_CHUNKS; chunk++) {
        chunk_await(e, t, key0, chunk);
        __local const float4 *slot = SLOT_PLACE(e, chunk);
        product_qk(e, Q_RESIDENT ? Q_PLACE(e) + chunk * (DEPTH_CHUNK / 4) : slot + K_SIZE, slot);
    }
    FOR_ROWS(r)
    {
        FOR_S_COLS(c) { e->s[r][c] *= factor; }
    }
}

FN void store_p(const engine *e)
{
    __local float *p = (__local float *)P_PLACE(e) + e->y * P_STRIDE * 4 + e->x * S_COLS;
    FOR_ROWS(r)
    {
        __local float *row = p + r * ITEMS_Y * P_STRIDE * 4;
        UNROLL_REGISTERS
        for (int c = 0; c < S_COLS; c += P_VECTOR) {
#if P_VECTOR == 4
            *(__local float4 *)(row + c) = (float4)(e->s[r][c], e->s[r][c + 1], e->s[r][c + 2], e->s[r][c + 3]);
#elif P_VECTOR == 2
            *(__local float2 *)(row + c) = (float2)(e->s[r][c], e->s[r][c + 1]);
#else
            row[c] = e->s[r][c];
#endif
        }
    }
}

/* o += P's columns of the chunk * V chunk */
FN void product_pv(engine *e, __local const float4 *p, __local const float4 *values)
{
    __local const v_vector *v = (__local const v_vector *)values + e->x;
    p += e->y * P_STRIDE;
    UNROLL_FEW
    for (int n = 0; n < VALUE_CHUNK / 4; n++) {
        v_vector b[4][O_VECTORS];
        UNROLL_REGISTERS
        for (int i = 0; i < 4; i++) {
            FOR_O_VECTORS(j) { b[i][j] = v[(4 * n + i) * (V_STRIDE * 4 / V_VECTOR) + j * ITEMS_X]; }
        }
        FOR_ROWS(r)
        {
            const float4 a = p[r * ITEMS_Y * P_STRIDE + n];
            FOR_O_VECTORS(j) { e->o[r][j] = MULTIPLY_ADD((v_vector)(a.x), b[0][j], e->o[r][j]); }
            FOR_O_VECTORS(j) { e->o[r][j] = MULTIPLY_ADD((v_vector)(a.y), b[1][j], e->o[r][j]); }
            FOR_O_VECTORS(j) { e->o[r][j] = MULTIPLY_ADD((v_vector)(a.z), b[2][j], e->o[r][j]); }
            FOR_O_VECTORS(j) { e->o[r][j] = MULTIPLY_ADD((v_vector)(a.w), b[3][j], e->o[r][j]); }
        }
    }
}

/* 0 * NaN is NaN: V of keys that weigh nothing in every row of the tile must be 0, whatever stands there. Keys past the ends
 * arrive as 0; which ones a mask or a bias hides is known only now. */
FN void mark_seen(engine *e)
{
    const int item = (int)get_local_id(0);
    for (int i = item; i < BLOCK_N; i += WORK_GROUP) {
        e->seen[i] = 0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    FOR_S_COLS(c)
    {
        int seen = 0;
        FOR_ROWS(r) { seen |= e->s[r][c] != 0.0f; }
        if (seen) {
            atomic_or(&e->seen[ENGINE_S_COL(e, c)], 1);
        }
    }
}
FN void clear_unseen(engine *e, int first_key, __local float4 *values)
{
    for (int i = (int)get_local_id(0); i < V_SIZE; i += WORK_GROUP) {
        if (!e->seen[first_key + i / V_STRIDE]) {
            values[i] = (float4)(0.0f);
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
}

FN void engine_pv(engine *e, const tile *t, int key0, const elem *alpha)
{
    if (SCORE_OPTIONS) {
        mark_seen(e);
    }
    store_p(e);
    FOR_ROWS(r)
    {
        FOR_O_VECTORS(j) { e->o[r][j] *= alpha[r]; }
    }
    /* Chunks behind the last key weigh nothing, and no block comes behind them. */
    for (int chunk = 0; chunk < V_CHUNKS && key0 + chunk * VALUE_CHUNK < t->key_end; chunk++) {
        chunk_await(e, t, key0, K_CHUNKS + chunk);
        if (SCORE_OPTIONS) {
            clear_unseen(e, chunk * VALUE_CHUNK, SLOT_PLACE(e, K_CHUNKS + chunk));
        }
        product_pv(e, P_PLACE(e) + chunk * (VALUE_CHUNK / 4), SLOT_PLACE(e, K_CHUNKS + chunk));
    }
    e->turn ^= CHUNKS & (SLOTS - 1);
}

#ifdef WARP_ASM
/* Every warp's part of a row, where a row lies in two of them; in place of x, the other one's. */
#if ITEMS_X > WARP_X
FN void parts_exchange(engine *e, elem *x)
{
    FOR_ROWS(r)
    {
        if (e->x % WARP_X == 0) {
            PARTS_PLACE(e)[ENGINE_ROW(e, r) * 2 + e->x / WARP_X] = x[r];
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    FOR_ROWS(r) { x[r] = PARTS_PLACE(e)[ENGINE_ROW(e, r) * 2 + (e->x / WARP_X ^ 1)]; }
}
#endif
FN void engine_fold_max(engine *e, elem *x)
{
    UNROLL_REGISTERS
    for (int distance = 1; distance < WARP_X; distance *= 2) {
        FOR_ROWS(r)
        {
            const float y = from_neighbour(x[r], distance * 2);
            x[r] = LARGER(x[r], y);
        }
    }
#if ITEMS_X > WARP_X
    elem other[S_ROWS];
    FOR_ROWS(r) { other[r] = x[r]; }
    parts_exchange(e, other);
    FOR_ROWS(r) { x[r] = LARGER(x[r], other[r]); }
#endif
}
FN void engine_fold_sum(engine *e, elem *x)
{
    UNROLL_REGISTERS
    for (int distance = 1; distance < WARP_X; distance *= 2) {
        FOR_ROWS(r) { x[r] += from_neighbour(x[r], distance * 2); }
    }
#if ITEMS_X > WARP_X
    elem other[S_ROWS];
    FOR_ROWS(r) { other[r] = x[r]; }
    barrier(CLK_LOCAL_MEM_FENCE);
    parts_exchange(e, other);
    FOR_ROWS(r) { x[r] += other[r]; }
#endif
}
#else
/* Every work-item of a row shows its value in P's place, which is free: the others are past the product that read it. */
FN void values_show(engine *e, const elem *x)
{
    FOR_ROWS(r) { ((__local float *)P_PLACE(e))[ENGINE_ROW(e, r) * ITEMS_X + e->x] = x[r]; }
    barrier(CLK_LOCAL_MEM_FENCE);
}
FN void engine_fold_max(engine *e, elem *x)
{
    values_show(e, x);
    FOR_ROWS(r)
    {
        for (int i = 0; i < ITEMS_X / 4; i++) {
            const float4 y = P_PLACE(e)[ENGINE_ROW(e, r) * (ITEMS_X / 4) + i];
            const float u = LARGER(y.x, y.y), w = LARGER(y.z, y.w), z = LARGER(u, w);
            x[r] = LARGER(x[r], z);
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
}
FN void engine_fold_sum(engine *e, elem *x)
{
    barrier(CLK_LOCAL_MEM_FENCE);
    values_show(e, x);
    FOR_ROWS(r)
    {
        x[r] = 0.0f;
        for (int i = 0; i < ITEMS_X / 4; i++) {
            const float4 y = P_PLACE(e)[ENGINE_ROW(e, r) * (ITEMS_X / 4) + i];
            x[r] += (y.x + y.y) + (y.z + y.w);
        }
    }
}
#endif
#endif
