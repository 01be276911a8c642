/* SPDX-License-Identifier: Apache-2.0
 * Loads Q, K and V of each tile for the consumers of cl/nv_wgmma_attention.cl, and writes the descriptors that the accelerator
 * reads. An address that is no multiple of 16 bytes, which the accelerator refuses, is read element by element.
 */
#define BARRIER(e, i) (BARRIERS(e) + (uint)((i)*8))
#define K_FULL(e, slot) BARRIER(e, slot)
#define V_FULL(e, slot) BARRIER(e, 2 + (slot))
#define K_EMPTY(e, slot) BARRIER(e, 4 + (slot))
#define V_EMPTY(e, slot) BARRIER(e, 6 + (slot))
#define Q_FULL(e) BARRIER(e, 8)
#define Q_EMPTY(e) BARRIER(e, 9)
#define LOADERS (1 + 2 * CONSUMERS)

FN void barriers_begin(const engine *e)
{
    for (int i = 0; i < 10; i++) {
        /* Full: the loader arrives. Empty: a work-item of each consumers' warp. */
        barrier_init(BARRIER(e, i), i < 4 || i == 8 ? 1 : 4 * CONSUMERS);
    }
#if SCORE_OPTIONS
    for (int i = 10; i < 12; i++) {
        barrier_init(BARRIER(e, i), 16 * CONSUMERS); /* four work-items of each consumers' warp */
    }
#endif
    BARRIERS_PUBLISH();
}

/* Fits: the host half declines problems with more. */
FN int team_count(const launch_args *a) { return a->q_blocks * a->heads_q * a->batches; }

/* The descriptors lie in the workspace of the call, at multiples of 128 bytes. */
FN ulong map_place(__global float *workspace, const launch_args *a, int which)
{
    return (((ulong)(size_t)(workspace + a->workspace) + 127) & ~(ulong)127) + (ulong)(which * 128);
}
/* Behind them, how many tiles were drawn beyond the first of each group. */
FN __global volatile int *drawn_place(__global float *workspace, const launch_args *a)
{
    return (__global volatile int *)(size_t)map_place(workspace, a, 3);
}
FN int is_aligned(__global const void *data, const tensor_view view)
{
    return (((size_t)data + (size_t)view.base * 2) & 15) == 0;
}

/* One of Q, K and V, and where in it a tile's rows are. */
typedef struct {
    ulong map;
    __global const ushort *data; /* of the first row of the tile's sequence and head */
    long row_step;
    int mapped;
    int seq, head, batch;
    int row_end; /* rows there are */
} nv_source;

/* Rows [row0, row0 + rows) to local memory, a panel behind the other. A constant `width` of columns; `rows` as in the map. */
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
    for (int i = item; i < rows * panels * 8; i += 128) {
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
    named_wait(LOADERS, 128);
    if (item == 0) {
        barrier_arrive(full);
    }
}

FN void source_set(nv_source *s, const launch_args *a, const tile *t, __global const void *data, const tensor_view view,
                   int head, long start, int rows)
{
    s->data = (__global const ushort *)data + view.base + t->batch * view.batch + head * view.head + start * view.seq;
    s->row_step = view.seq;
    s->mapped = is_aligned(data, view);
    s->seq = (int)start;
    s->head = head;
    s->batch = a->starts_type ? 0 : t->batch;
    s->row_end = rows;
}

/* Tile number `tiles` of this group, told to the consumers: the first by the group's number, the others as groups become free.
 * Where the diagonal makes some tiles longer than others, a fixed deal would leave groups idle at the end. */
FN void draw_tile(const engine *e, const launch_args *a, const option_data *b, int tiles, __global float *workspace)
{
    __local shared_tile *place = TILE(e, tiles);
    tile t;
    if (get_local_id(0) != 0) {
        return;
    }
    const int team = tiles == 0 ? (int)get_group_id(0) : (int)get_num_groups(0) + atomic_inc(drawn_place(workspace, a));
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

/* Tells the consumers which block of keys comes to a slot, before its K does. */
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

/* Loads a tile and draws the next, which takes a while, when both slots are under way. `block` counts the blocks of all tiles,
 * as the consumers do. */
FN void load_tile(const engine *e, const launch_args *a, const option_data *b, const tile *t, int tiles, int *block,
                  const nv_source *q, const nv_source *k, const nv_source *v, __global float *workspace)
{
    int ahead = 0, next;
    load_rows(q, Q_PLACE(e), Q_FULL(e), t->row0, BLOCK_M, HEAD_DIM);
    for (int key0 = tile_first_block(t); key0 < t->key_end; key0 = next, ++*block) {
        const int slot = *block & 1, turn = (*block >> 1) + 1;
        next = tile_next_block(t, key0);
        barrier_wait(K_EMPTY(e, slot), turn);
        note_block(e, t, slot, key0, next);
        load_rows(k, K_PLACE(e) + (uint)(slot * K_SIZE), K_FULL(e, slot), key0, BLOCK_N, HEAD_DIM);
        barrier_wait(V_EMPTY(e, slot), turn);
        load_rows(v, V_PLACE(e) + (uint)(slot * V_SIZE), V_FULL(e, slot), key0, BLOCK_N, HEAD_DIM_V);
        if (++ahead == 2) {
            draw_tile(e, a, b, tiles + 1, workspace);
        }
    }
    if (ahead < 2) {
        draw_tile(e, a, b, tiles + 1, workspace);
    }
}

FN void load(const engine *e, const launch_args *a, const option_data *b, __global const void *q_data,
             __global const void *k_data, __global const void *v_data, __global float *workspace)
{
    nv_source q, k, v;
    int block = 0;
    /* With every tensor mapped one work-item is enough. */
    const int alone = is_aligned(q_data, a->q) && is_aligned(k_data, a->k) && is_aligned(v_data, a->v);
    if (alone && get_local_id(0) != 0) {
        return;
    }
    q.map = map_place(workspace, a, 0);
    k.map = map_place(workspace, a, 1);
    v.map = map_place(workspace, a, 2);
    tensor_map_acquire(q.map);
    tensor_map_acquire(k.map);
    tensor_map_acquire(v.map);
    draw_tile(e, a, b, 0, workspace);
    for (int tiles = 0;; tiles++) {
        barrier_wait(Q_EMPTY(e), tiles + 1);
        if (!alone) {
            named_wait(LOADERS, 128);
        }
        const int kind = TILE(e, tiles)->kind;
        if (kind == TILE_SEES) {
            const tile t = TILE(e, tiles)->t;
            source_set(&q, a, &t, q_data, a->q, t.head0, t.q_start, t.rows);
            source_set(&k, a, &t, k_data, a->k, t.kv_head, t.kv_start, t.kv_length);
            source_set(&v, a, &t, v_data, a->v, t.kv_head, t.kv_start, t.kv_length);
            load_tile(e, a, b, &t, tiles, &block, &q, &k, &v, workspace);
            continue;
        }
        /* Nothing to load, but the consumers want to know the tile, or that there is none. */
        if (get_local_id(0) == 0) {
            barrier_arrive(Q_FULL(e));
        }
        if (kind == TILE_NONE) {
            break;
        }
        draw_tile(e, a, b, tiles + 1, workspace);
    }
}

/* The descriptor of a tensor of dimensions (dim, rows, heads, batches), read in boxes of 64 columns by box_rows rows. Past the
 * last column or row the accelerator fills in zeros. */
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
    /* In bytes. Along an axis of one element any step will do, but it must be a multiple of 16. */
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

/* Three groups of one warp: the descriptors of Q, K and V, and no tile drawn. */
__kernel __attribute__((reqd_work_group_size(32, 1, 1))) void maps(KERNEL_PARAMETERS)
{
    __local uint4 words[16];
    const int which = (int)get_group_id(0), item = (int)get_local_id(0), batches = args.starts_type ? 1 : args.batches;
    const uint map = (local_address(words) + 127u) & ~127u;
    __local uint *own = (__local uint *)words + (map - local_address(words)) / 4;
    own[item] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item == 0) {
        *drawn_place(workspace, &args) = 0;
        const long rows_q = args.starts_type ? args.total_q : args.seq_q;
        const long rows_kv = args.starts_type ? args.total_kv : args.seq_kv;
        if (which == 0) {
            map_build(map, q_data, args.q, HEAD_DIM, rows_q, args.heads_q, batches, BLOCK_M);
        } else if (which == 1) {
            map_build(map, k_data, args.k, HEAD_DIM, rows_kv, args.heads_kv, batches, BLOCK_N);
        } else {
            map_build(map, v_data, args.v, HEAD_DIM_V, rows_kv, args.heads_kv, batches, BLOCK_N);
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    tensor_map_store(map_place(workspace, &args, which), map);
}
