/* SPDX-License-Identifier: Apache-2.0
 * nv_mma and nv_tf32x3: tensor cores of NVIDIA GPUs from sm_80 on, through mma.sync. Inputs are fp16 or bf16, or fp32 as three
 * products of its parts. Sums are fp32.
 *
 *         ROW_WARPS warps, each with 16 * M_TILES rows of the tile. Work-item i of a warp, g = i / 4 and c = i % 4 * 2, holds
 *
 *         rows      16 * m + g (even elems) and 16 * m + g + 8 (odd elems)      m < M_TILES
 *         columns   8 * j + c and 8 * j + c + 1, of S and of O alike
 *
 *         With few rows, KEY_WARPS warps share them. Each has its own keys of a block, its own maximum, sum and O. They are
 *         added up after the loop (copies and waits: cl/engines/nvidia/mma/nv_mma_few.cl).
 *
 *         local memory   [ Q ] [ K ] x SLOTS [ V ] x SLOTS        rows padded by 16 bytes: eight rows are in distinct banks
 *
 * P never leaves the registers: a work-item's part of S, packed, is its operand of the second product. Copies to local memory
 * overlap with the products. With two slots they are a whole block ahead. With one slot, K is copied during P V, and V during
 * Q K. There is no barrier and no branch between softmax and the second product, so that exponentials and products interleave.
 * The products are in cl/engines/nvidia/mma/nv_mma_products.cl (fp16, bf16) and nv_tf32x3.cl (fp32).
 */
#define LANES 1
#include "cl/engines/nvidia/nv_ptx.cl"
#define EXP2(x) ptx_exp2(x)
/* max.f32 itself ignores a NaN. */
#define LARGER(a, b) fmax(a, b)
#define STORE_FLOAT_WHEN(c, to, x) ptx_store_float_when(c, to, x)
#define CLAMP(x, limit) ptx_clamp(x, limit)
#define CLAMP_BELOW(x, limit) ptx_clamp_below(x, limit)
#include "cl/elem.cl"
#ifdef MERGE_INSIDE
#include "cl/engines/nvidia/nv_groups.cl"
#endif

#define WARPS (WORK_GROUP / 32)
#define ROW_WARPS (WARPS / KEY_WARPS)
#define WARP_KEYS (BLOCK_N / KEY_WARPS)
#define M_TILES (BLOCK_M / (16 * ROW_WARPS))
#if BLOCK_M != 16 * ROW_WARPS * M_TILES || WARP_KEYS % 16 != 0 || TEAM != WORK_GROUP || (KEY_WARPS > 1 && ROW_WARPS > 1)
#error "nv_mma: the tile is not what the warps cover"
#endif
#define DIM ((HEAD_DIM + 15) / 16 * 16)
#define DIM_V ((HEAD_DIM_V + 15) / 16 * 16)
#define S_TILES (WARP_KEYS / 8)
#define O_TILES (DIM_V / 8)

#if K_TYPE == FP32
#define ELEM_BYTES 4
#else
#define ELEM_BYTES 2
#endif
#define PIECE (16 / ELEM_BYTES) /* elements of one copy */

/* In bytes. */
#define QK_STRIDE (DIM * ELEM_BYTES + 16)
#define V_STRIDE (DIM_V * ELEM_BYTES + 16)
#define Q_SIZE (BLOCK_M * QK_STRIDE)
#define K_SIZE (BLOCK_N * QK_STRIDE)
#define V_SIZE (BLOCK_N * V_STRIDE)
/* Mask and bias are staged for cl/score_pairs.cl. Not with few rows, nor with three products for each product. */
#if SCORE_OPTIONS && KEY_WARPS == 1 && K_TYPE != FP32
#define NV_PAIRS
#define ENGINE_SEEN(e, r) ((e)->sees[r])
#endif
#ifdef NV_PAIRS
#define SEEN_SIZE 0
/* The bias of a block. Rows are padded: eight rows are in distinct banks. */
#define BIAS_WIDTH (BIAS_TYPE == 0 ? 0 : BIAS_TYPE == FP32 ? 4 : 2)
#define BIAS_STRIDE ((BLOCK_N + 8) * BIAS_WIDTH)
#define BIAS_SIZE (BLOCK_M * BIAS_STRIDE)
#define NV_LATE_OPTIONS
#define NV_MAY_BE_LATE(e) ((e)->plain)
#else
/* The keys of a block visible to a warp, one byte each. Only where options can mask keys and warps share keys. */
#define SEEN_SIZE (SCORE_OPTIONS && KEY_WARPS == 1 ? WARPS * BLOCK_N : 0)
#define BIAS_SIZE 0
#endif
#define LOCAL_SIZE (Q_SIZE + SLOTS * (K_SIZE + V_SIZE) + SEEN_SIZE + BIAS_SIZE)
#if LOCAL_SIZE != LOCAL_BYTES
#error "nv_mma: the host half counts local memory differently"
#endif

#define S_ROWS (2 * M_TILES)
#define S_COLS (2 * S_TILES)
#define O_COLS (2 * O_TILES)
#define FOR_ROWS(r) UNROLL for (int r = 0; r < S_ROWS; r++)
#define FOR_S_COLS(c) UNROLL for (int c = 0; c < S_COLS; c++)
#define FOR_O_COLS(c) UNROLL for (int c = 0; c < O_COLS; c++)
#define S_GET(e, r, c) (e)->s[(r) / 2][(c) / 2][(r) % 2 * 2 + (c) % 2]
#define S_SET(e, r, c, x) S_GET(e, r, c) = (x)
#define O_GET(e, r, c) (e)->o[(r) / 2][(c) / 2][(r) % 2 * 2 + (c) % 2]
#define O_SET(e, r, c, x) O_GET(e, r, c) = (x)
#define ENGINE_ROW(e, r) (ptx_here((e)->row) + (r) / 2 * 16 + (r) % 2 * 8)
#define ENGINE_S_COL(e, c) (FIRST_OF_WARP(e) + (e)->col + (c) / 2 * 8 + (c) % 2)
#define ENGINE_O_COL(e, c) ((e)->col + (c) / 2 * 8 + (c) % 2)
#if WARP_KEYS % 32 == 0 && BLOCK_N * M_TILES <= 128 /* larger tiles have no registers left for it */
#define ENGINE_RUN 8                                /* 32 keys, eight for each of the four work-items of a row */
#elif BLOCK_N == 48 && KEY_WARPS == 1
#define ENGINE_RUN 4
#endif
/* Fully visible blocks have a separate loop. Not in the larger code of few rows, of three products for each product, or of
 * options, except a mask that a pass has classified. */
#if (!SCORE_OPTIONS || (SCORE_OPTIONS == OPTION_MASK && PREPASS)) && KEY_WARPS == 1 && K_TYPE != FP32
#define ENGINE_OPEN_END(e, t, key0, factor) open_end(e, t, key0, factor)
#define ENGINE_SLACK(e) ((e)->slack)
#endif
#define ENGINE_OWNS_ROWS(e) ((e)->col == 0)
#define ENGINE_LOCAL(e)                                                                                                        \
    __local uint4 nv_local[LOCAL_SIZE / 16];                                                                                   \
    (e).local_memory = local_address(nv_local);                                                                                \
    (e).parts = (__local float *)nv_local;                                                                                     \
    (e).seen = (__local uchar *)nv_local + (LOCAL_SIZE - SEEN_SIZE);

#include "cl/engines/nvidia/mma/nv_mma_stage.cl"

typedef struct {
    uint local_memory;
    __local float *parts; /* the same, after the loop */
    __local uchar *seen;
    nv_matrix k, v;
    int row, col, warp;
    float late;            /* the factor of S that is not yet applied */
    float slack;           /* ENGINE_SLACK with that factor */
    uint q_at, k_at, v_at; /* where this work-item's part of an operand is: in Q, in a slot of K, in a slot of V */
    int turn;
#if KEY_WARPS > 1
    int ahead; /* the block that is fetched next */
#endif
    int hides; /* an option can mask a key for every row */
#ifdef NV_PAIRS
    int plain;                                 /* no option changes a visible score */
    int takes_pieces;                          /* the mask of the block was read in pieces */
    uint2 pieces[S_ROWS][(BLOCK_N + 31) / 32]; /* MASK_PIECES */
    uint sees[S_ROWS];                         /* ENGINE_SEEN */
#endif
#if K_TYPE == FP32
    uint zero; /* 0, but the assembler does not know it */
#endif
    float s[M_TILES][S_TILES][4];
    float o[M_TILES][O_TILES][4];
} engine;

#include "cl/engines/nvidia/nv_rows.cl"
#if K_TYPE == FP32
#include "cl/engines/nvidia/mma/nv_tf32x3.cl"
#else
#include "cl/engines/nvidia/mma/nv_mma_products.cl"
#endif

#if KEY_WARPS > 1
/* First of a block's keys for this warp. */
#define FIRST_OF_WARP(e) ((e)->warp * WARP_KEYS)
#else
#define FIRST_OF_WARP(e) 0
#endif
#ifdef NV_PAIRS
#include "cl/engines/nvidia/mma/nv_mma_options.cl"
#endif

#define K_PLACE(e, slot) ((e)->local_memory + Q_SIZE + (slot)*K_SIZE)
#define V_PLACE(e, slot) ((e)->local_memory + Q_SIZE + SLOTS * K_SIZE + (slot)*V_SIZE)

#if KEY_WARPS > 1
#include "cl/engines/nvidia/mma/nv_mma_few.cl"
#else
/* Rows of K and V that are masked for every row of the tile become 0. Each call ends one group of copies, even an empty one,
 * since groups are counted. */
FN void copy_k(engine *e, const tile *t, int key0, int slot)
{
    if (key0 < t->key_end) {
        stage(K_PLACE(e, slot), &e->k, BLOCK_N, DIM, QK_STRIDE, HEAD_DIM, key0, t->key_begin, t->key_end);
    }
}
FN void stage_k(engine *e, const tile *t, int key0, int slot)
{
    copy_k(e, t, key0, slot);
    PTX_COPY_COMMIT();
}
FN void stage_v(engine *e, const tile *t, int key0, int slot)
{
    if (key0 < t->key_end) {
        stage(V_PLACE(e, slot), &e->v, BLOCK_N, DIM_V, V_STRIDE, HEAD_DIM_V, key0, t->key_begin, t->key_end);
    }
    PTX_COPY_COMMIT();
}
FN void fetch_first(engine *e, const tile *t, int key0, const nv_matrix *rows_of_q)
{
    if (key0 < t->key_end) {
        /* K first: it takes longer to arrive, and the addresses of Q's rows take time to compute. */
        copy_k(e, t, key0, 0);
        stage_any(e->local_memory, rows_of_q, BLOCK_M, DIM, QK_STRIDE, HEAD_DIM, t->row0, 0, t->rows);
        PTX_COPY_COMMIT();
        if (SLOTS == 2) {
            stage_v(e, t, key0, 0);
        }
    }
}
#endif

FN void engine_begin(engine *e, const tile *t, const launch_args *a, __global const void *q, __global const void *k,
                     __global const void *v)
{
    const int item = (int)get_local_id(0) % 32, warp = (int)get_local_id(0) / 32;
    const int key0 = tile_first_block(t);
    nv_matrix rows_of_q;
    const int row0 = KEY_WARPS > 1 ? 0 : warp * 16 * M_TILES;
    e->warp = warp;
    e->row = row0 + item / 4;
    e->col = item % 4 * 2;
    /* Q: rows 0-15, then the same rows 16 bytes further. K: eight rows twice, the second time 16 bytes further; then the next
     * eight rows. */
    e->q_at = e->local_memory + (uint)((row0 + item % 16) * QK_STRIDE + item / 16 * 16);
    e->k_at = (uint)((FIRST_OF_WARP(e) + item / 16 * 8 + item % 8) * QK_STRIDE + item / 8 % 2 * 16);
    e->v_at = (uint)(FIRST_OF_WARP(e) * V_STRIDE) + VALUES_AT(item);
    e->late = 1.0f; /* a row with no visible key has no product to set it */
    e->turn = 0;
#if K_TYPE == FP32
    e->zero = a->heads_q < 0;
#endif
    e->hides = has_mask(a) || has_bias(a);
#ifdef NV_PAIRS
    e->plain = !has_softcap(a) && !has_slopes(a) && !has_bias(a);
#endif
    nv_matrix_set(&rows_of_q, q, tile_q_offset(t, a->q), a->q, t->pack);
    nv_matrix_set(&e->k, k, tile_kv_offset(t, a->k), a->k, 1);
    nv_matrix_set(&e->v, v, tile_kv_offset(t, a->v), a->v, 1);
    fetch_first(e, t, key0, &rows_of_q);
}

#if KEY_WARPS == 1
/* With two slots, one barrier a block: K and V have arrived, and the slots for the next block are free. With one slot, V is
 * copied during the first product, and the next K during softmax and the second product. */
FN void begin_block(void)
{
    PTX_COPY_WAIT(0);
    barrier(CLK_LOCAL_MEM_FENCE);
}
FN void start_qk(engine *e, const tile *t, int key0)
{
    if (SLOTS == 2) {
        copy_k(e, t, tile_next_block(t, key0), e->turn ^ 1);
        stage_v(e, t, tile_next_block(t, key0), e->turn ^ 1);
    } else {
        stage_v(e, t, key0, 0);
    }
    product_qk(e, K_PLACE(e, e->turn) + e->k_at);
}
FN void end_qk(engine *e, const tile *t, int key0, float factor)
{
    if (SLOTS == 1) {
        begin_block(); /* V has arrived, K is no longer read */
        stage_k(e, t, tile_next_block(t, key0), 0);
    }
    scale_scores(e, factor);
}

#ifdef NV_PAIRS
#define ENGINE_QK(e, t, a, b, key0, class, factor) qk_with_options(e, t, a, b, key0, class, factor)
FN void qk_with_options(engine *e, const tile *t, const launch_args *a, const option_data *b, int key0, int class, float factor)
{
    begin_block();
    fetch_options(e, t, a, b, key0, class);
    start_qk(e, t, key0);
    take_options(e);
    end_qk(e, t, key0, factor);
}
#else
FN void engine_qk(engine *e, const tile *t, int key0, float factor)
{
    begin_block();
    start_qk(e, t, key0);
    end_qk(e, t, key0, factor);
}
#endif

#ifdef ENGINE_OPEN_END
#include "cl/engines/nvidia/mma/nv_mma_open.cl"
#endif

#if SCORE_OPTIONS && !defined(NV_PAIRS)
/* Clears the rows of V whose keys a mask or a bias masks for every row of the tile: 0 times NaN would be NaN. */
FN void clear_unseen(engine *e, uint values)
{
    const int item = (int)get_local_id(0) % 32;
    FOR_S_COLS(c)
    {
        int weighs = 0;
        FOR_ROWS(r) { weighs |= S_GET(e, r, c) != 0.0f; }
        const uint vote = ptx_ballot(weighs);
        /* Work-items with the same i % 4 hold the same column. */
        if (item < 4) {
            e->seen[e->warp * BLOCK_N + ENGINE_S_COL(e, c)] = (uchar)((vote & (0x11111111u << item)) != 0u);
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = (int)get_local_id(0); i < BLOCK_N * (DIM_V / PIECE); i += WORK_GROUP) {
        const int key = i / (DIM_V / PIECE);
        int seen = 0;
        for (int w = 0; w < WARPS; w++) {
            seen |= e->seen[w * BLOCK_N + key];
        }
        if (!seen) {
            ptx_store(values + (uint)(key * V_STRIDE + i % (DIM_V / PIECE) * 16), (uint4)(0u));
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
}
#endif

FN void engine_pv(engine *e, const tile *t, int key0, const elem *alpha)
{
    const uint from = V_PLACE(e, e->turn) + e->v_at;
    (void)t, (void)key0;
#ifdef NV_PAIRS
    const uint unseen = unseen_by_warp(e);
    rescale_o(e, alpha);
    if (ptx_ballot(unseen != 0u)) {
        add_product_pv(e, from, unseen);
    } else {
        add_product_pv(e, from, 0);
    }
#else
#if SCORE_OPTIONS
    if (e->hides) {
        clear_unseen(e, V_PLACE(e, e->turn));
    }
#endif
    product_pv(e, from, alpha);
#endif
    e->turn ^= SLOTS - 1;
}
#endif
