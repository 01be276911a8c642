/* SPDX-License-Identifier: Apache-2.0
 * nv_wgmma: Hopper's warp-group products (wgmma), fed by the Tensor Memory Accelerator. fp16 or bf16, sums in fp32.
 *
 *         work-group = 1 warp-group (128 work-items) that loads + CONSUMERS warp-groups with 64 rows of the tile each
 *
 *         rows      64 * w + 16 * (i / 32) + i % 32 / 4, and that + 8       of work-item i of consumer w
 *         columns   8 * j + i % 4 * 2, and that + 1                         of S and of O alike
 *
 *         local memory   [ Q ] x Q_PLACES [ K ] x KV_SLOTS [ V ] x KV_SLOTS [ barriers ] [ tile ] x 4
 *
 * A matrix is stored in panels of 64 columns. A row of a panel takes 128 bytes; the 16-byte piece p of row r is at position
 * p ^ (r % 8). The accelerator writes this layout and the products read it. The loop is in
 * cl/engines/nvidia/wgmma/nv_wgmma_attention.cl. The kernel is built in two steps (src/ptx.h): an instruction after the
 * mark //@ exists only in the second.
 */
#define LANES 1
#include "cl/engines/nvidia/nv_ptx.cl"
#define EXP2(x) ptx_exp2(x)
/* max.f32 itself ignores a NaN. */
#define LARGER(a, b) fmax(a, b)
#define CLAMP(x, limit) ptx_clamp(x, limit)
#define CLAMP_BELOW(x, limit) ptx_clamp_below(x, limit)
#define STORE_FLOAT_WHEN(c, to, x) ptx_store_float_when(c, to, x)
#include "cl/elem.cl"

#define CONSUMERS (WORK_GROUP / 128 - 1)
#if BLOCK_M != 64 * CONSUMERS || BLOCK_N % 16 != 0 || TEAM != WORK_GROUP
#error "nv_wgmma: the tile is not what the warp-groups cover"
#endif
#define DIM ((HEAD_DIM + 15) / 16 * 16)
#define DIM_V ((HEAD_DIM_V + 15) / 16 * 16)
#define PANELS ((HEAD_DIM + 63) / 64)
#define PANELS_V ((HEAD_DIM_V + 63) / 64)

/* In bytes. */
#define Q_PANEL (BLOCK_M * 128)
#define KV_PANEL (BLOCK_N * 128)
#define Q_SIZE (PANELS * Q_PANEL)
#define K_SIZE (PANELS * KV_PANEL)
#define V_SIZE (PANELS_V * KV_PANEL)
#define BARRIERS_SIZE (16 + 64 * KV_SLOTS) /* six for each slot, and six */
/* Four tiles: one whose output is stored, up to two being computed, and one claimed ahead. And a note for each slot of K. */
#define TILES_SIZE (480 + 16 * KV_SLOTS)
/* For the blocks in all slots: the keys masked for every row of a warp, four words each, and the keys whose V is not finite,
 * four words. */
#define UNSEEN_SIZE (MAY_HIDE ? KV_SLOTS * (CONSUMERS * 64 + 16) : 0)
/* The bias of a block, 16 rows a warp. Rows are padded: eight rows are in distinct banks. */
#define BIAS_WIDTH (BIAS_TYPE == 0 ? 0 : BIAS_TYPE == FP32 ? 4 : 2)
#define BIAS_STRIDE ((BLOCK_N + 8) * BIAS_WIDTH)
#define BIAS_SIZE (BLOCK_M * BIAS_STRIDE)
/* Panels start at multiples of 1024 bytes, local memory only at multiples of 16. */
#define LOCAL_SIZE                                                                                                             \
    (1024 + Q_PLACES * Q_SIZE + KV_SLOTS * (K_SIZE + V_SIZE) + BARRIERS_SIZE + TILES_SIZE + UNSEEN_SIZE + BIAS_SIZE)
#if LOCAL_SIZE != LOCAL_BYTES
#error "nv_wgmma: the host half counts local memory differently"
#endif

#define S_ROWS 2
#define S_COLS (BLOCK_N / 4)
#define O_COLS (DIM_V / 4)
#define FOR_ROWS(r) UNROLL for (int r = 0; r < S_ROWS; r++)
#define FOR_S_COLS(c) UNROLL for (int c = 0; c < S_COLS; c++)
#define FOR_O_COLS(c) UNROLL for (int c = 0; c < O_COLS; c++)
#define S_GET(e, r, c) (e)->s[(c) / 2 * 4 + (r)*2 + (c) % 2]
#define S_SET(e, r, c, x) S_GET(e, r, c) = (x)
#define O_GET(e, r, c) (e)->o[(c) / 2 * 4 + (r)*2 + (c) % 2]
#define O_SET(e, r, c, x) O_GET(e, r, c) = (x)
#define ENGINE_ROW(e, r) (ptx_here((e)->row) + (r)*8)
#define ENGINE_S_COL(e, c) ((e)->col + (c) / 2 * 8 + (c) % 2)
#define ENGINE_O_COL(e, c) ((e)->col + (c) / 2 * 8 + (c) % 2)
#if HIDES_BY_BITS || SCORE_OPTIONS
#define ENGINE_SEEN(e, r) ((e)->seen[r]) /* bit c: column c */
#elif BLOCK_N % 32 == 0
#define ENGINE_RUN 8 /* 32 keys, eight for each of the four work-items of a row */
#endif
#define ENGINE_OWNS_ROWS(e) ((e)->col == 0)
#define ENGINE_ALL(c) (ptx_ballot(c) == 0xffffffffu)
#define ENGINE_LOCAL(e)                                                                                                        \
    __local uint4 nv_local[LOCAL_SIZE / 16];                                                                                   \
    (e).unseen = (__local uint *)((__local uchar *)nv_local + LOCAL_SIZE - UNSEEN_SIZE);                                       \
    (e).tiles = (__local shared_tile *)((__local uchar *)nv_local + LOCAL_SIZE - UNSEEN_SIZE - TILES_SIZE);                    \
    (e).local_memory = (local_address(nv_local) + 1023u) & ~1023u;

/* The kinds of a tile, from the loader to the consumers. */
#define TILE_NONE 0   /* there are no more tiles */
#define TILE_ABSENT 1 /* the sequence is too short to have it */
#define TILE_EMPTY 2  /* no key is visible to its rows */
#define TILE_SEES 3
typedef struct {
    int kind;
    tile t;
} shared_tile;
/* The block of keys in a slot, where a mask or a bias skips some blocks. */
typedef struct {
    int key0, next, class;
    int hides; /* for the slot of V: what mask and bias can mask in its block; VALUES_END after the last block */
} shared_block;
#define VALUES_END (-1)
typedef char tiles_fit[4 * sizeof(shared_tile) + KV_SLOTS * sizeof(shared_block) <= TILES_SIZE ? 1 : -1];

typedef struct {
    uint local_memory;
    __local shared_tile *tiles;
    __local uint *unseen;
    int consumer; /* number of this warp-group among the consumers */
    int row, col;
#if STAGES_O
    int number; /* number of the tile whose output is stored */
    int staged; /* the output goes through local memory */
#endif
    float late; /* the factor of S that is not yet applied */
    int plain;  /* no option changes a visible score */
#if SCORE_OPTIONS
    int takes_pieces;                          /* the mask of the block was read in pieces */
    uint2 pieces[S_ROWS][(BLOCK_N + 31) / 32]; /* MASK_PIECES */
#endif
#ifdef ENGINE_SEEN
    uint seen[S_ROWS]; /* columns visible to a row */
#endif
    float s[BLOCK_N / 2];
    float o[DIM_V / 2];
    uint p[BLOCK_N / 4]; /* the packed weights: the operand of the second product */
} engine;

/* Softcap, bias and ALiBi need scores with their factor. A mask does not. */
#define NV_LATE_OPTIONS
#define NV_MAY_BE_LATE(e) (!SCORE_OPTIONS || (e)->plain)
#include "cl/engines/nvidia/nv_rows.cl"

/* Q of tile number `number` of the group. */
#define Q_PLACE(e, number) ((e)->local_memory + (uint)(number) % Q_PLACES * Q_SIZE)
#define K_PLACE(e) ((e)->local_memory + Q_PLACES * Q_SIZE)
#define V_PLACE(e) (K_PLACE(e) + KV_SLOTS * K_SIZE)
/* The slot of K and V of block number `block` of the group, and the number of its phase of the slot's barriers. */
#define SLOT(block) ((int)((uint)(block) % KV_SLOTS))
#define SLOT_TURN(block) ((int)((uint)(block) / KV_SLOTS))
#define TILE(e, number) (&(e)->tiles[(number) % 4])
#define BLOCK_NOTE(e, slot) ((__local shared_block *)((e)->tiles + 4) + (slot))
#define BIAS_PLACE(e) (V_PLACE(e) + KV_SLOTS * V_SIZE)
#define BARRIERS(e) (BIAS_PLACE(e) + BIAS_SIZE)

#include "cl/engines/nvidia/nv_barriers.cl"
#include "cl/engines/nvidia/wgmma/nv_wgmma_ptx.cl"
#include "cl/engines/nvidia/wgmma/nv_wgmma_options.cl"

/* A panel's descriptor for wgmma. Bits 0-13: address / 16. Bits 16-29: the distance between panels along the operand's
 * contiguous axis / 16. Bits 32-45: the distance between groups of eight rows / 16. Bit 62: the layout described above. */
FN ulong panel_descriptor(uint address, uint next_panel)
{
    return (ulong)((address & 0x3FFFFu) >> 4) | ((ulong)(next_panel >> 4) << 16) | ((ulong)(1024 >> 4) << 32) |
           ((ulong)1 << 62);
}

/* Starts S = Q K^T on this warp-group's rows. */
FN void wgmma_qk(engine *e, int number, int slot)
{
    const ulong q = panel_descriptor(Q_PLACE(e, number) + (uint)(e->consumer * 64 * 128), 16);
    const ulong k = panel_descriptor(K_PLACE(e) + (uint)(slot * K_SIZE), 16);
    WGMMA_FENCE();
    UNROLL for (int d = 0; d < DIM / 16; d++)
    {
        WGMMA_S(e->s, q + (ulong)((d / 4 * Q_PANEL + d % 4 * 32) / 16), k + (ulong)((d / 4 * KV_PANEL + d % 4 * 32) / 16),
                d > 0);
    }
    WGMMA_COMMIT();
}

/* Starts O += P V, or O = P V. */
FN void wgmma_pv(engine *e, int slot, int add)
{
    const ulong v = panel_descriptor(V_PLACE(e) + (uint)(slot * V_SIZE), KV_PANEL);
    WGMMA_FENCE();
    UNROLL for (int n = 0; n < BLOCK_N / 16; n++) { WGMMA_O(e->o, e->p, n, v + (ulong)(n * 16 * 128 / 16), n > 0 || add); }
    WGMMA_COMMIT();
}

/* Packs S, which by now holds weights, as the operand P. */
FN void pack_weights(engine *e)
{
    UNROLL for (int i = 0; i < BLOCK_N / 4; i++) { e->p[i] = ptx_pack(e->s[2 * i], e->s[2 * i + 1]); }
}

#include "cl/engines/nvidia/wgmma/nv_wgmma_stage.cl"
