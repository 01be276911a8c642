/* SPDX-License-Identifier: Apache-2.0
 * simt: a work-group owns a tile. K and V stream through local memory. Products are register micro-tiles of fp32 FMA.
 *
 *         ITEMS_X work-items across (x), ITEMS_Y down (y). Adjacent work-items form pairs: two values of y, then the next x.
 *         Work-item (x, y) holds
 *
 *         rows      (y + ITEMS_Y * j) * ROW_VECTOR + i         i < ROW_VECTOR, in all ROWS_PER_ITEM
 *         S columns (x + ITEMS_X * j) * COL_VECTOR + i         i < COL_VECTOR, in all COLS_PER_ITEM
 *         O columns (x + ITEMS_X * j) * V_VECTOR + i           i < V_VECTOR, j < O_VECTORS
 *
 *         local memory   [ Q, whole ] [ P ] [ parts ] [ slot ] [ slot ]   all in float4
 *
 * Local memory holds Q and K column by column, and V and P key by key, so both products are outer products. For each column of
 * K, or key of V, a work-item reads the values of its rows and of its columns as vectors, and multiplies each row by each
 * column. With the terms of a dot product in one vector, NVIDIA's two register banks would serve both operands and the sum
 * from one bank half of the time. K_BY_ROWS: K is key by key too, so that 16 bytes are four of its columns.
 *
 * A key block is a stream of chunks: K_CHUNKS chunks of DEPTH_CHUNK columns of K (with those of Q, unless Q is resident), then
 * V_CHUNKS chunks of VALUE_CHUNK rows of V. With two slots, the next chunk, of this or the next block, is copied while the
 * current one is multiplied. A chunk then costs one barrier, or none where each slot has its own barriers. With one slot it
 * costs two (cl/engines/simt/simt_turns.cl).
 *
 * Tiles of few rows have their own code: cl/engines/simt/simt_few.cl.
 */
#include "cl/engines/simt/simt_base.cl"

#ifdef FEW_ROWS
#include "cl/engines/simt/simt_few.cl"
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

/* Strides in float4, one more than needed, so that adjacent work-items along the other axis read distinct banks. */
#define ROWS_STRIDE (BLOCK_M / 4 + 1)
#define KEYS_STRIDE (BLOCK_N / 4 + 1)
#define V_STRIDE (V_COLS / 4 + 1)
#define K_STRIDE (DEPTH_CHUNK / 4 + 1)
#define Q_RESIDENT_SIZE (Q_RESIDENT ? K_CHUNKS * DEPTH_CHUNK * ROWS_STRIDE : 0)
#define P_SIZE (BLOCK_N * ROWS_STRIDE)
#define K_SIZE (K_BY_ROWS ? BLOCK_N * K_STRIDE : DEPTH_CHUNK * KEYS_STRIDE)
#define QK_SIZE (K_SIZE + (Q_RESIDENT ? 0 : DEPTH_CHUNK * ROWS_STRIDE))
#define V_SIZE (VALUE_CHUNK * V_STRIDE)
#define SLOT_SIZE (QK_SIZE > V_SIZE ? QK_SIZE : V_SIZE)
/* Work-items of a row in one warp. Where a row spans two warps, they exchange values through local memory. */
#define WARP_X (ITEMS_X > 16 ? 16 : ITEMS_X)
#define PARTS_SIZE (ITEMS_X > WARP_X ? BLOCK_M / 2 : 0)
#define LOCAL_SIZE (Q_RESIDENT_SIZE + P_SIZE + PARTS_SIZE + SLOTS * SLOT_SIZE)
/* One flag a key, where an explicit mask or bias can mask a key for every row. */
#define SEEN_SIZE (SCORE_OPTIONS ? BLOCK_N : 1)
#if LOCAL_SIZE * 16 + SEEN_SIZE * 4 + SLOT_BARRIERS * 32 != LOCAL_BYTES
#error "simt: the host half counts local memory differently"
#endif

#define VECTOR_FOR(count) ((count) % 4 == 0 ? 4 : (count) % 2 == 0 ? 2 : 1)
#define ROW_VECTOR VECTOR_FOR(ROWS_PER_ITEM)
#define COL_VECTOR (K_BY_ROWS ? 1 : VECTOR_FOR(COLS_PER_ITEM))

#define S_ROWS ROWS_PER_ITEM
#define S_COLS COLS_PER_ITEM
#define O_COLS (O_VECTORS * V_VECTOR)
#define FOR_ROWS(r) UNROLL_REGISTERS for (int r = 0; r < S_ROWS; r++)
#define FOR_S_COLS(c) UNROLL_REGISTERS for (int c = 0; c < S_COLS; c++)
#define FOR_O_COLS(c) UNROLL_REGISTERS for (int c = 0; c < O_COLS; c++)
#define S_GET(e, r, c) (e)->s[r][c]
#define S_SET(e, r, c, x) (e)->s[r][c] = (x)
#define O_GET(e, r, c) (e)->o[r][c]
#define O_SET(e, r, c, x) (e)->o[r][c] = (x)
#define ENGINE_ROW(e, r) (((e)->y + ITEMS_Y * ((r) / ROW_VECTOR)) * ROW_VECTOR + (r) % ROW_VECTOR)
#define ENGINE_S_COL(e, c) (((e)->x + ITEMS_X * ((c) / COL_VECTOR)) * COL_VECTOR + (c) % COL_VECTOR)
#define ENGINE_O_COL(e, c) (((e)->x + ITEMS_X * ((c) / V_VECTOR)) * V_VECTOR + (c) % V_VECTOR)
#define ENGINE_OWNS_ROWS(e) ((e)->x == 0)
#define ENGINE_LOCAL(e)                                                                                                        \
    __local float4 simt_local[LOCAL_SIZE];                                                                                     \
    __local int simt_seen[SEEN_SIZE];                                                                                          \
    (e).local_memory = simt_local;                                                                                             \
    (e).seen = simt_seen;                                                                                                      \
    LOCAL_BARRIERS(e)
#if SLOT_BARRIERS
#define LOCAL_BARRIERS(e)                                                                                                      \
    __local ulong simt_barriers[4];                                                                                            \
    (e).barriers = simt_barriers;
#else
#define LOCAL_BARRIERS(e)
#endif

typedef struct {
    __local float4 *local_memory;
    __local int *seen;
    matrix q, k, v;
    int x, y;
    int turn; /* the slot of chunk 0 */
#if SLOT_BARRIERS
    __local ulong *barriers;
    int chunk_number; /* number of the current chunk among all chunks of the tile */
#endif
    float s[S_ROWS][S_COLS];
    float o[S_ROWS][O_COLS];
} engine;

#define Q_PLACE(e) ((e)->local_memory)
#define P_PLACE(e) ((e)->local_memory + Q_RESIDENT_SIZE)
#define PARTS_PLACE(e) ((__local float *)((e)->local_memory + Q_RESIDENT_SIZE + P_SIZE))
#define SLOTS_BEGIN (Q_RESIDENT_SIZE + P_SIZE + PARTS_SIZE)
#define SLOT_PLACE(e, chunk) ((e)->local_memory + SLOTS_BEGIN + (((chunk) + (e)->turn) & (SLOTS - 1)) * SLOT_SIZE)

#include "cl/engines/simt/simt_stage.cl"

FN void matrix_set(matrix *m, __global const void *data, long at, const tensor_view view, int pack, int type)
{
    const size_t size = type == FP32 ? 4 : 2;
    m->data = data;
    m->at = at;
    m->row_step = view.seq;
    m->col_step = view.dim;
    m->head_step = view.head;
    m->pack = pack;
    /* The address is tested as a number, since a call may start at any element of its buffer. */
    m->aligned = (((size_t)data + (size_t)at * size) & (4 * size - 1)) == 0;
}

FN void stage_q(engine *e, const tile *t, __local float4 *to, int cols, int col0)
{
    stage_elements((__local float *)to, &e->q, Q_TYPE, BLOCK_M, cols, 1, ROWS_STRIDE * 4, HEAD_DIM, t->row0, 0, t->rows, col0,
                   0);
}

/* Starts copying chunk `chunk` of the key block at key0. Keys that are masked for every row of the tile become 0. */
FN void chunk_stage(engine *e, const tile *t, int key0, int chunk, __local float4 *slot)
{
    if (chunk < K_CHUNKS) {
        const int col0 = chunk * DEPTH_CHUNK;
        stage_k((__local float *)slot, &e->k, K_TYPE, BLOCK_N, DEPTH_CHUNK, K_BY_ROWS ? K_STRIDE * 4 : 1,
                K_BY_ROWS ? 1 : KEYS_STRIDE * 4, HEAD_DIM, key0, t->key_begin, t->key_end, col0);
        if (!Q_RESIDENT) {
            stage_q(e, t, slot + K_SIZE, DEPTH_CHUNK, col0);
        }
    } else {
        const int row0 = key0 + (chunk - K_CHUNKS) * VALUE_CHUNK;
        stage_v((__local float *)slot, &e->v, V_TYPE, VALUE_CHUNK, V_COLS, V_STRIDE * 4, 1, HEAD_DIM_V, row0, t->key_begin,
                t->key_end, 0);
    }
}

#include "cl/engines/simt/simt_turns.cl"

FN void engine_begin(engine *e, const tile *t, const launch_args *a, __global const void *q, __global const void *k,
                     __global const void *v)
{
    const int item = (int)get_local_id(0);
    const int key0 = tile_first_block(t);
    /* NVIDIA's local memory serves two adjacent work-items with one access of 16 bytes if both read the same. So each work-item
     * shares its column operand with one of them (item ^ 1) and its row operand with another (item ^ 2). */
    e->x = item / 2 % ITEMS_X;
    e->y = item / (2 * ITEMS_X) * 2 + item % 2;
    e->turn = 0;
    matrix_set(&e->q, q, tile_q_offset(t, a->q), a->q, t->pack, Q_TYPE);
    matrix_set(&e->k, k, tile_kv_offset(t, a->k), a->k, 1, K_TYPE);
    matrix_set(&e->v, v, tile_kv_offset(t, a->v), a->v, 1, V_TYPE);
    if (key0 < t->key_end) {
        if (Q_RESIDENT) {
            stage_q(e, t, Q_PLACE(e), K_CHUNKS * DEPTH_CHUNK, 0);
        }
        if (SLOTS == 2) {
            chunk_stage(e, t, key0, 0, SLOT_PLACE(e, 0));
        }
        turns_begin(e);
    }
}

/* Reads x[0] ... x[count - 1]: vectors of `vector` floats, `step` vectors apart. */
FN void read_vectors(float *x, __local const float *from, int count, int vector, int step)
{
    UNROLL_REGISTERS
    for (int i = 0; i < count; i += vector) {
        __local const float *at = from + i * step;
        if (vector == 4) {
            const float4 y = *(__local const float4 *)at;
            x[i] = y.x, x[i + 1] = y.y, x[i + 2] = y.z, x[i + 3] = y.w;
        } else if (vector == 2) {
            const float2 y = *(__local const float2 *)at;
            x[i] = y.x, x[i + 1] = y.y;
        } else {
            x[i] = *at;
        }
    }
}

/* Alternates the direction along the columns, so that one operand stays the same from one product to the next. */
#define THERE_AND_BACK(r, i, count) ((r) % 2 ? (count)-1 - (i) : (i))

/* sum[r][c] += a[r] * b[c], `count` times. Many columns are done eight at a time, since registers are scarce. */
#define COLS_AT_ONCE(cols) ((cols) % 8 == 0 ? 8 : (cols))
#define OUTER_PRODUCTS(sum, cols, count, a_from, a_vector, a_stride, b_from, b_vector, b_stride)                               \
    UNROLL_STEPS                                                                                                               \
    for (int n = 0; n < (count); n++) {                                                                                        \
        float a[S_ROWS];                                                                                                       \
        read_vectors(a, (a_from) + n * (a_stride)*4, S_ROWS, a_vector, ITEMS_Y);                                               \
        UNROLL_REGISTERS                                                                                                       \
        for (int c0 = 0; c0 < (cols); c0 += COLS_AT_ONCE(cols)) {                                                              \
            float b[COLS_AT_ONCE(cols)];                                                                                       \
            read_vectors(b, (b_from) + n * (b_stride)*4 + c0 * ITEMS_X, COLS_AT_ONCE(cols), b_vector, ITEMS_X);                \
            FOR_ROWS(r)                                                                                                        \
            {                                                                                                                  \
                UNROLL_REGISTERS                                                                                               \
                for (int i = 0; i < COLS_AT_ONCE(cols); i++) {                                                                 \
                    const int c = THERE_AND_BACK(r, i, COLS_AT_ONCE(cols));                                                    \
                    sum[r][c0 + c] = MULTIPLY_ADD(a[r], b[c], sum[r][c0 + c]);                                                 \
                }                                                                                                              \
            }                                                                                                                  \
        }                                                                                                                      \
    }

#if K_BY_ROWS
/* s += Q chunk * K chunk^T, four columns of K at a time: 16 bytes of each key's row. */
FN void product_qk(engine *e, __local const float *q, __local const float *k)
{
    q += e->y * ROW_VECTOR;
    k += e->x * K_STRIDE * 4;
    UNROLL_QUADS
    for (int n = 0; n < DEPTH_CHUNK / CHUNK_PARTS; n += 4) {
        float b[S_COLS][4];
        FOR_S_COLS(c) { read_vectors(b[c], k + c * ITEMS_X * K_STRIDE * 4 + n, 4, 4, 1); }
        UNROLL_REGISTERS
        for (int i = 0; i < 4; i++) {
            float a[S_ROWS];
            read_vectors(a, q + (n + i) * ROWS_STRIDE * 4, S_ROWS, ROW_VECTOR, ITEMS_Y);
            FOR_S_COLS(c)
            {
                FOR_ROWS(j)
                {
                    const int r = THERE_AND_BACK(c, j, S_ROWS);
                    e->s[r][c] = MULTIPLY_ADD(a[r], b[c][i], e->s[r][c]);
                }
            }
        }
    }
}
#else
/* s += Q chunk * K chunk^T */
FN void product_qk(engine *e, __local const float *q, __local const float *k)
{
    q += e->y * ROW_VECTOR;
    k += e->x * COL_VECTOR;
    OUTER_PRODUCTS(e->s, S_COLS, DEPTH_CHUNK / CHUNK_PARTS, q, ROW_VECTOR, ROWS_STRIDE, k, COL_VECTOR, KEYS_STRIDE)
}
#endif

FN void engine_qk(engine *e, const tile *t, int key0, float factor)
{
    FOR_ROWS(r)
    {
        FOR_S_COLS(c) { e->s[r][c] = 0.0f; }
    }
    for (int chunk = 0; chunk < K_CHUNKS; chunk++) {
        chunk_await(e, t, key0, chunk);
        __local const float4 *k = SLOT_PLACE(e, chunk);
        __local const float4 *q = Q_RESIDENT ? Q_PLACE(e) + chunk * DEPTH_CHUNK * ROWS_STRIDE : k + K_SIZE;
        ROLLED
        for (int part = 0; part < CHUNK_PARTS; part++) {
            if (part > 0) {
                chunk_ahead(e, t, key0, chunk);
            }
            product_qk(e, (__local const float *)q, (__local const float *)k);
            q += DEPTH_CHUNK / CHUNK_PARTS * ROWS_STRIDE;
            k += K_BY_ROWS ? DEPTH_CHUNK / CHUNK_PARTS / 4 : DEPTH_CHUNK / CHUNK_PARTS * KEYS_STRIDE;
        }
        chunk_done(e);
    }
    FOR_ROWS(r)
    {
        FOR_S_COLS(c) { e->s[r][c] *= factor; }
    }
}

FN void store_p(const engine *e)
{
    FOR_S_COLS(c)
    {
        __local float *p = (__local float *)P_PLACE(e) + ENGINE_S_COL(e, c) * ROWS_STRIDE * 4;
        UNROLL_REGISTERS
        for (int r = 0; r < S_ROWS; r += ROW_VECTOR) {
            __local float *at = p + ENGINE_ROW(e, r);
#if ROWS_PER_ITEM % 4 == 0
            *(__local float4 *)at = (float4)(e->s[r][c], e->s[r + 1][c], e->s[r + 2][c], e->s[r + 3][c]);
#elif ROWS_PER_ITEM % 2 == 0
            *(__local float2 *)at = (float2)(e->s[r][c], e->s[r + 1][c]);
#else
            *at = e->s[r][c];
#endif
        }
    }
}

/* o += P of the chunk's keys * V chunk */
FN void product_pv(engine *e, __local const float *p, __local const float *v)
{
    p += e->y * ROW_VECTOR;
    v += e->x * V_VECTOR;
    OUTER_PRODUCTS(e->o, O_COLS, VALUE_CHUNK / CHUNK_PARTS, p, ROW_VECTOR, ROWS_STRIDE, v, V_VECTOR, V_STRIDE)
}

/* 0 * NaN is NaN, so V of keys with weight 0 in every row of the tile must be 0. Keys outside the tile's range arrive as 0. The
 * keys that a mask or a bias masks are known only now. */
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
    warp_together();
    FOR_ROWS(r)
    {
        FOR_O_COLS(c) { e->o[r][c] *= alpha[r]; }
    }
    /* Chunks past the last key weigh nothing, and no block follows them. */
    for (int chunk = 0; chunk < V_CHUNKS && key0 + chunk * VALUE_CHUNK < t->key_end; chunk++) {
        chunk_await(e, t, key0, K_CHUNKS + chunk);
        if (SCORE_OPTIONS) {
            clear_unseen(e, chunk * VALUE_CHUNK, SLOT_PLACE(e, K_CHUNKS + chunk));
        }
        __local const float4 *p = P_PLACE(e) + chunk * VALUE_CHUNK * ROWS_STRIDE, *v = SLOT_PLACE(e, K_CHUNKS + chunk);
        ROLLED
        for (int part = 0; part < CHUNK_PARTS; part++) {
            if (part > 0) {
                chunk_ahead(e, t, key0, K_CHUNKS + chunk);
            }
            product_pv(e, (__local const float *)p, (__local const float *)v);
            p += VALUE_CHUNK / CHUNK_PARTS * ROWS_STRIDE;
            v += VALUE_CHUNK / CHUNK_PARTS * V_STRIDE;
        }
        chunk_done(e);
    }
    e->turn ^= CHUNKS & (SLOTS - 1);
}

#ifdef WARP_ASM
/* Exchanges the parts of a row between the two warps that hold it. x becomes the other warp's value. */
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
/* Each work-item of a row writes its value to the place of P, which is free: all are past the product that read it. */
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
