/* SPDX-License-Identifier: Apache-2.0
 * Loads Q, K and V of each tile for the consumers of cl/engines/nvidia/wgmma/nv_wgmma_attention.cl, and writes the descriptors
 * that the accelerator reads. The accelerator requires addresses that are multiples of 16 bytes. A tensor at another address
 * is read element by element.
 */
#define BARRIER(e, i) (BARRIERS(e) + (uint)((i)*8))
#define K_FULL(e, slot) BARRIER(e, slot)
#define V_FULL(e, slot) BARRIER(e, KV_SLOTS + (slot))
#define K_EMPTY(e, slot) BARRIER(e, 2 * KV_SLOTS + (slot))
#define V_EMPTY(e, slot) BARRIER(e, 3 * KV_SLOTS + (slot))
/* The barriers of Q of tile number `number` of the group, and the number of its phase. */
#define Q_FULL(e, number) BARRIER(e, 4 * KV_SLOTS + (uint)(number) % Q_PLACES)
#define Q_EMPTY(e, number) BARRIER(e, 4 * KV_SLOTS + 2 + (uint)(number) % Q_PLACES)
#define Q_TURN(number) ((int)((uint)(number) / Q_PLACES))
#define TILE_WANTED(e) BARRIER(e, 4 * KV_SLOTS + 4)
#define TILE_DRAWN(e) BARRIER(e, 4 * KV_SLOTS + 5)
#define UNSEEN_FULL(e, slot) BARRIER(e, 4 * KV_SLOTS + 6 + (slot))
/* V has arrived, but is not yet checked (cl/engines/nvidia/wgmma/nv_wgmma_hidden.cl). */
#define V_LANDED(e, slot) (MAY_HIDE ? BARRIER(e, 5 * KV_SLOTS + 6 + (slot)) : V_FULL(e, slot))
#define LOADERS (1 + 2 * CONSUMERS)
#define LOADING 96 /* work-items that load; one of the fourth warp claims tiles */
#define MAP_O 3
#include "cl/engines/nvidia/wgmma/nv_wgmma_hidden.cl"

FN void barriers_begin(const engine *e)
{
    /* Full: the loader arrives, or both warps that checked V. Empty: one work-item of each consumer warp arrives. */
    for (int i = 0; i < KV_SLOTS; i++) {
        barrier_init(K_FULL(e, i), 1);
        barrier_init(V_FULL(e, i), 1 + MAY_HIDE);
        barrier_init(K_EMPTY(e, i), 4 * CONSUMERS);
        barrier_init(V_EMPTY(e, i), 4 * CONSUMERS);
#if MAY_HIDE
        barrier_init(UNSEEN_FULL(e, i), 16 * CONSUMERS); /* four work-items of each consumer warp */
        barrier_init(V_LANDED(e, i), 1);
#endif
    }
    for (int i = 0; i < Q_PLACES; i++) {
        barrier_init(Q_FULL(e, i), 1);
        barrier_init(Q_EMPTY(e, i), 4 * CONSUMERS);
    }
    barrier_init(TILE_WANTED(e), 1);
    barrier_init(TILE_DRAWN(e), 1);
    BARRIERS_PUBLISH();
}

/* Fits in an int: the host refuses problems with more tiles. */
FN int team_count(const launch_args *a) { return a->q_blocks * a->heads_q * a->batches; }

/* The counter of claimed tiles, at a multiple of 128 bytes in the workspace. The upper half is the number of the call. The
 * lower half counts the tiles claimed after the first of each group. */
FN ulong drawn_place(__global float *workspace, const launch_args *a)
{
    return ((ulong)(size_t)(workspace + a->workspace) + 127) & ~(ulong)127;
}
/* The descriptors follow, four for each group. All groups write the same values, but this way no group waits for another. */
FN ulong map_place(__global float *workspace, const launch_args *a, int which)
{
    return drawn_place(workspace, a) + (ulong)(128 + ((int)get_group_id(0) * 4 + which) * 128);
}

/* The caller leaves the workspace uninitialized. The first group to get here writes the number of the call; no recent call has
 * the same lower half. Each group does this before it claims a tile. */
FN void drawn_begin(__global float *workspace, const launch_args *a)
{
    const ulong place = drawn_place(workspace, a), fresh = (ulong)a->call_number << 32, found = ptx_load_word_pair(place);
    if (found >> 32 != fresh >> 32) {
        ptx_swap_if(place, found, fresh);
    }
}
FN int is_aligned(__global const void *data, const tensor_view view)
{
    return (((size_t)data + (size_t)view.base * 2) & 15) == 0;
}

/* One of Q, K and V, and the position of a tile's rows in it. */
typedef struct {
    ulong map;
    __global const ushort *data; /* of the first row of the tile's sequence and head */
    long row_step;
    int mapped;
    int seq, head, batch;
    int row_end; /* number of rows */
} nv_source;

/* Loads rows [row0, row0 + rows) to local memory, one panel after the other. `width`, the number of columns, is a constant.
 * `rows` is as in the map. */
FN void load_rows(const nv_source *s, uint to, uint full, int row0, int rows, int width)
{
    const int item = (int)get_local_id(0), panels = (width + 63) / 64;
    if (s->mapped) {
        if (item == 0) {
            barrier_announce(full, (uint)(rows * panels * 128));
            for (int i = 0; i < panels; i++) {
                tensor_copy(to + (uint)(i * rows * 128), s->map, i * 64, s->seq + row0, s->head, s->batch, full);
            }
        }
        return;
    }
    for (int i = item; i < rows * panels * 8; i += LOADING) {
        const int row = i / 8 % rows, piece = i % 8, col = i / (8 * rows) * 64 + piece * 8;
        uint4 x = (uint4)(0u);
        if (row0 + row < s->row_end && col < width) {
            __global const ushort *from = s->data + (row0 + row) * s->row_step + col;
            x = (uint4)(from[0] | (uint)from[1] << 16, from[2] | (uint)from[3] << 16, from[4] | (uint)from[5] << 16,
                        from[6] | (uint)from[7] << 16);
        }
        ptx_store(to + (uint)(i / 8 * 128 + ((piece ^ (row & 7)) * 16)), x);
    }
    PUBLISH_STORES();
    named_wait(LOADERS, LOADING);
    if (item == 0) {
        barrier_arrive(full);
    }
}

FN void source_set(nv_source *s, const launch_args *a, const tile *t, __global const void *data, const tensor_view view,
                   int head, long start, int rows, int alone)
{
    s->data = (__global const ushort *)data + view.base + t->batch * view.batch + head * view.head + start * view.seq;
    s->row_step = view.seq;
    s->mapped = alone || is_aligned(data, view);
    s->seq = (int)start;
    s->head = head;
    s->batch = a->starts_type ? 0 : t->batch;
    s->row_end = rows;
}

/* Claims tile number `tiles` of this group and describes it to the consumers. The first tile is the group's number; later ones
 * come from the shared counter. Where the diagonal makes some tiles longer than others, a fixed assignment would leave groups
 * idle at the end. Run by one work-item. */
FN void draw_tile(const engine *e, const launch_args *a, const option_data *b, int tiles, __global float *workspace)
{
    __local shared_tile *place = TILE(e, tiles);
    tile t;
    const int team =
        tiles == 0 ? (int)get_group_id(0) : (int)get_num_groups(0) + (int)(uint)ptx_count(drawn_place(workspace, a));
    if (team >= team_count(a)) {
        place->kind = TILE_NONE;
    } else if (!tile_decode(&t, a, b, team)) {
        place->kind = TILE_ABSENT;
    } else {
        tile_find_classes(&t, a, workspace);
        place->kind = tile_first_block(&t) < t.key_end ? TILE_SEES : TILE_EMPTY;
        place->t = t;
    }
}

/* Describes a slot's block of keys to the consumers, before its K arrives. */
FN void note_block(const engine *e, const tile *t, int slot, int key0, int next)
{
#if PREPASS
    if (get_local_id(0) == 0) {
        BLOCK_NOTE(e, slot)->key0 = key0;
        BLOCK_NOTE(e, slot)->next = next;
        BLOCK_NOTE(e, slot)->class = tile_block_class(t, key0);
    }
#endif
}

/* Also tells whether options can mask its keys, before its V arrives. */
FN void note_values(const engine *e, const launch_args *a, const tile *t, int slot, int key0)
{
#if MAY_HIDE
    if (get_local_id(0) == 0) {
        BLOCK_NOTE(e, slot)->hides = options_hide(a, tile_block_class(t, key0));
    }
#endif
}

/* The buffers, and the address of the descriptors of Q, K and V. */
typedef struct {
    __global const void *q, *k, *v;
    ulong maps;
} nv_inputs;

/* Claims one tile after another, each as soon as the loader starts the one before. */
FN void draw(const engine *e, const launch_args *a, const option_data *b, __global float *workspace)
{
    for (int tiles = 0;; tiles++) {
        barrier_wait(TILE_WANTED(e), tiles);
        draw_tile(e, a, b, tiles + 1, workspace);
        barrier_arrive(TILE_DRAWN(e));
        if (TILE(e, tiles + 1)->kind == TILE_NONE) {
            return;
        }
    }
}

/* Loads Q of tile number `tiles`, as soon as its place is free. Where there is nothing to load, it only signals the consumers
 * that the tile is known, or that there are no more. */
FN void load_q(const engine *e, const launch_args *a, const nv_inputs *in, int tiles, int alone)
{
    barrier_wait(Q_EMPTY(e, tiles), Q_TURN(tiles) + 1);
    if (!alone) {
        named_wait(LOADERS, LOADING);
    }
    if (TILE(e, tiles)->kind == TILE_SEES) {
        const tile t = TILE(e, tiles)->t;
        nv_source q;
        q.map = in->maps;
        source_set(&q, a, &t, in->q, a->q, t.head0, t.q_start, t.rows, alone);
        load_rows(&q, Q_PLACE(e, tiles), Q_FULL(e, tiles), t.row0, BLOCK_M, HEAD_DIM);
    } else if (get_local_id(0) == 0) {
        barrier_arrive(Q_FULL(e, tiles));
    }
}

/* After this, tile number `tiles` is known. With two places for Q, its Q is being loaded. */
FN void next_tile(const engine *e, const launch_args *a, const nv_inputs *in, int tiles, int alone)
{
    barrier_wait(TILE_DRAWN(e), tiles - 1);
    if (Q_PLACES == 2) {
        load_q(e, a, in, tiles, alone);
    }
}

/* Loads K and V of a tile. Turns to the next tile once all slots are being loaded. `block` counts the blocks of all tiles, as
 * in the consumers. */
FN void load_tile(const engine *e, const launch_args *a, const nv_inputs *in, const tile *t, int tiles, int *block, int alone)
{
    int ahead = 0, next;
    nv_source k, v;
    k.map = in->maps + 128;
    v.map = in->maps + 256;
    source_set(&k, a, t, in->k, a->k, t->kv_head, t->kv_start, t->kv_length, alone);
    source_set(&v, a, t, in->v, a->v, t->kv_head, t->kv_start, t->kv_length, alone);
    for (int key0 = tile_first_block(t); key0 < t->key_end; key0 = next, ++*block) {
        const int slot = SLOT(*block), turn = SLOT_TURN(*block) + 1;
        next = tile_next_block(t, key0);
        barrier_wait(K_EMPTY(e, slot), turn);
        note_block(e, t, slot, key0, next);
        load_rows(&k, K_PLACE(e) + (uint)(slot * K_SIZE), K_FULL(e, slot), key0, BLOCK_N, HEAD_DIM);
        barrier_wait(V_EMPTY(e, slot), turn);
        note_values(e, a, t, slot, key0);
        load_rows(&v, V_PLACE(e) + (uint)(slot * V_SIZE), V_LANDED(e, slot), key0, BLOCK_N, HEAD_DIM_V);
#if MAY_HIDE
        if (!alone && get_local_id(0) < 64) {
            look_at_values(e, *block, options_hide(a, tile_block_class(t, key0)), (int)get_local_id(0) / 32);
        }
#endif
        if (++ahead == KV_SLOTS) {
            next_tile(e, a, in, tiles + 1, alone);
        }
    }
    if (ahead < KV_SLOTS) {
        next_tile(e, a, in, tiles + 1, alone);
    }
}

/* The descriptor of a tensor of dimensions (dim, rows, heads, batches), read in boxes of 64 columns by box_rows rows. The
 * accelerator fills columns and rows past the last with zeros. */
FN void map_build(uint map, __global const void *data, const tensor_view view, int dim, long rows, int heads, int batches,
                  int box_rows)
{
    MAP_SET_64(map, "global_address.shared::cta.b1024.b64 [%0],", (size_t)data + (size_t)view.base * 2);
    MAP_SET(map, "rank.shared::cta.b1024.b32 [%0], 3");
    MAP_SET_32(map, "box_dim.shared::cta.b1024.b32 [%0], 0,", 64);
    MAP_SET_32(map, "box_dim.shared::cta.b1024.b32 [%0], 1,", box_rows);
    MAP_SET_32(map, "box_dim.shared::cta.b1024.b32 [%0], 2,", 1);
    MAP_SET_32(map, "box_dim.shared::cta.b1024.b32 [%0], 3,", 1);
    MAP_SET_32(map, "global_dim.shared::cta.b1024.b32 [%0], 0,", dim);
    MAP_SET_32(map, "global_dim.shared::cta.b1024.b32 [%0], 1,", max(rows, (long)1));
    MAP_SET_32(map, "global_dim.shared::cta.b1024.b32 [%0], 2,", heads);
    MAP_SET_32(map, "global_dim.shared::cta.b1024.b32 [%0], 3,", batches);
    /* Strides in bytes. Along an axis of one element any stride is correct, but it must be a multiple of 16. */
    MAP_SET_64(map, "global_stride.shared::cta.b1024.b64 [%0], 0,", rows > 1 ? view.seq * 2 : 16);
    MAP_SET_64(map, "global_stride.shared::cta.b1024.b64 [%0], 1,", heads > 1 ? view.head * 2 : 16);
    MAP_SET_64(map, "global_stride.shared::cta.b1024.b64 [%0], 2,", batches > 1 ? view.batch * 2 : 16);
    MAP_SET_32(map, "element_stride.shared::cta.b1024.b32 [%0], 0,", 1);
    MAP_SET_32(map, "element_stride.shared::cta.b1024.b32 [%0], 1,", 1);
    MAP_SET_32(map, "element_stride.shared::cta.b1024.b32 [%0], 2,", 1);
    MAP_SET_32(map, "element_stride.shared::cta.b1024.b32 [%0], 3,", 1);
#if K_TYPE == FP16
    MAP_SET(map, "elemtype.shared::cta.b1024.b32 [%0], 6");
#else
    MAP_SET(map, "elemtype.shared::cta.b1024.b32 [%0], 10");
#endif
    MAP_SET(map, "interleave_layout.shared::cta.b1024.b32 [%0], 0");
    MAP_SET(map, "swizzle_mode.shared::cta.b1024.b32 [%0], 3");
    MAP_SET(map, "fill_mode.shared::cta.b1024.b32 [%0], 0");
}

/* Writes the descriptor of Q, K, V or O, number `which`, to the workspace. Run by one warp. `scratch` is 128 bytes of local
 * memory of its own. */
FN void map_write(const launch_args *a, int which, __global const void *q_data, __global const void *k_data,
                  __global const void *v_data, __global const void *o_data, uint scratch, ulong to)
{
    const int item = (int)get_local_id(0) % 32, batches = a->starts_type ? 1 : a->batches;
    ptx_store_word(scratch + (uint)(item * 4), 0);
    PTX_WARP_TOGETHER();
    if (item == 0) {
        const long rows_q = a->starts_type ? a->total_q : a->seq_q, rows_kv = a->starts_type ? a->total_kv : a->seq_kv;
        if (which == 0) {
            map_build(scratch, q_data, a->q, HEAD_DIM, rows_q, a->heads_q, batches, BLOCK_M);
        } else if (which == 1) {
            map_build(scratch, k_data, a->k, HEAD_DIM, rows_kv, a->heads_kv, batches, BLOCK_N);
        } else if (which == 2) {
            map_build(scratch, v_data, a->v, HEAD_DIM_V, rows_kv, a->heads_kv, batches, BLOCK_N);
        } else {
            map_build(scratch, o_data, a->o, HEAD_DIM_V, rows_q, a->heads_q, batches, 64);
        }
    }
    PTX_WARP_TOGETHER();
    tensor_map_store(to, scratch);
}

/* Writes the descriptors before the first load, one warp each. */
FN void load_begin(const engine *e, const launch_args *a, __global const void *q_data, __global const void *k_data,
                   __global const void *v_data, __global const void *o_data, __global float *workspace)
{
    const int warp = (int)get_local_id(0) / 32;
    if (warp < 3 + STAGES_O) {
        map_write(a, warp, q_data, k_data, v_data, o_data, K_PLACE(e) + (uint)(warp * 128), map_place(workspace, a, warp));
        PUBLISH_STORES(); /* the accelerator will overwrite the scratch memory */
    }
}
/* The consumers' setup: the first tile and the barriers. */
FN void consume_begin(const engine *e, const launch_args *a, const option_data *b, __global float *workspace)
{
    const int item = (int)get_local_id(0);
    if (item == 128) {
        drawn_begin(workspace, a);
        draw_tile(e, a, b, 0, workspace);
    } else if (item == 192) {
        barriers_begin(e);
    }
}

/* `alone` is a constant: every tensor is mapped, and one work-item loads. */
FN void load_tiles(const engine *e, const launch_args *a, const nv_inputs *in, int alone)
{
    int block = 0;
    tensor_map_acquire(in->maps);
    if (Q_PLACES == 2) {
        load_q(e, a, in, 0, alone);
    }
    tensor_map_acquire(in->maps + 128);
    tensor_map_acquire(in->maps + 256);
    for (int tiles = 0;; tiles++) {
        if (Q_PLACES == 1) {
            load_q(e, a, in, tiles, alone);
        }
        const int kind = TILE(e, tiles)->kind;
        if (kind == TILE_NONE) {
            break;
        }
        if (get_local_id(0) == 0) {
            barrier_arrive(TILE_WANTED(e));
        }
        if (kind == TILE_SEES) {
            const tile t = TILE(e, tiles)->t;
            load_tile(e, a, in, &t, tiles, &block, alone);
        } else {
            next_tile(e, a, in, tiles + 1, alone);
        }
    }
    if (MAY_HIDE && alone) {
        barrier_wait(V_EMPTY(e, SLOT(block)), SLOT_TURN(block) + 1);
        BLOCK_NOTE(e, SLOT(block))->hides = VALUES_END;
        barrier_arrive(V_LANDED(e, SLOT(block)));
    }
}

FN void load(const engine *e, const launch_args *a, const option_data *b, __global const void *q_data,
             __global const void *k_data, __global const void *v_data, __global float *workspace)
{
    const nv_inputs in = {q_data, k_data, v_data, map_place(workspace, a, 0)};
    if (get_local_id(0) == LOADING) {
        draw(e, a, b, workspace);
    }
    /* With every tensor mapped, one work-item is enough, and the code without the other case needs fewer registers. */
    if (is_aligned(q_data, a->q) && is_aligned(k_data, a->k) && is_aligned(v_data, a->v)) {
        if (get_local_id(0) == 0) {
            load_tiles(e, a, &in, 1);
        }
#if MAY_HIDE
        if (get_local_id(0) >= 32 && get_local_id(0) < LOADING) {
            watch_values(e);
        }
#endif
    } else if (get_local_id(0) < LOADING) {
        load_tiles(e, a, &in, 0);
    }
}
