/* SPDX-License-Identifier: Apache-2.0
 * The loop of nv_wgmma: one warp-group loads ahead, the others compute. A group processes one tile after another, so that
 * loads of the next tile overlap with the last products of the current one. One work-item claims the tiles, another one loads.
 *
 *         consumer, block j      start S_j = Q K_j^T and O += P_(j-1) V_(j-1); when S_j is complete: scores, softmax;
 *                                when O is complete: O *= alpha; pack P_j
 *
 * Consumers alternate in starting products: while one computes softmax, another uses the tensor cores. They do not alternate
 * where there are enough slots of K and V for one consumer to run ahead, which gains more for tiles of few blocks.
 */
#include "cl/contract.cl"
#include "cl/score.cl"
#include "cl/softmax.cl"
#include "cl/epilogue.cl"
#include "cl/engines/nvidia/wgmma/nv_wgmma_load.cl"
#include "cl/engines/nvidia/wgmma/nv_wgmma_diagonal.cl"
#if PREPASS
#include "cl/classify.cl"
#endif

#define TAKES_TURNS (KV_SLOTS == 2)
/* Named barriers: one after all have started, one turn for each consumer, one for each consumer alone, then the loaders'. */
#define BEGUN 0
#define TURN(w) (1 + (w))
#define ALONE(w) (1 + CONSUMERS + (w))

FN void turn_begin(const engine *e)
{
    if (TAKES_TURNS) {
        named_wait(TURN(e->consumer), 256);
    }
}
FN void turn_end(const engine *e)
{
    if (TAKES_TURNS) {
        named_arrive(TURN((e->consumer + 1) % CONSUMERS), 256);
    }
}
FN void release(uint barrier_at)
{
    if (get_local_id(0) % 32 == 0) {
        barrier_arrive(barrier_at);
    }
}

/* What the loop needs of a tile. The other fields stay in local memory, since they would occupy registers all the time. */
typedef struct {
    int number; /* of the tile, in this group */
    int first_block, key_begin, key_end, open_begin, open_end;
    int own_end;           /* from this key on all are masked for this consumer's rows; at most key_end */
    int unseen_values;     /* from this key on, V holds keys that are masked for every row of the tile */
    int key0, next, class; /* the current block, the next one, and the class of the current one's mask and bias */
    int hides;             /* a key of it is masked for every row of this warp */
} span;

/* The keys visible to this consumer's rows. These are fewer rows than the tile's, so the diagonal cuts fewer of their
 * blocks. */
FN void span_of(const engine *e, span *keys, const launch_args *a, __local const shared_tile *given)
{
    const int first = given->t.row0 + e->consumer * 64, last = min(first + 63, given->t.rows - 1);
    const int last_real = min(last, given->t.q_length - 1);
    keys->key_begin = given->t.key_begin;
    keys->key_end = keys->own_end = given->t.key_end;
    /* The accelerator fills rows past the end of the tensor with zeros. */
    keys->unseen_values = !a->starts_type && keys->key_end == a->seq_kv ? INT_MAX : keys->key_end;
    keys->first_block = keys->next = keys->key_begin / BLOCK_N * BLOCK_N;
    keys->open_begin = max(0, last + given->t.diagonal_low);
    keys->open_end = last < given->t.q_length ? min(given->t.kv_length, first + given->t.diagonal_high + 1) : 0;
#if SKIPS_BLOCKS
    keys->own_end = first > last_real ? 0 : min(keys->key_end, last_real + given->t.diagonal_high + 1);
#endif
}

FN tile tile_of(const engine *e, const span *keys)
{
    tile t = TILE(e, keys->number)->t;
    t.pack = 1; /* always 1; this lets the compiler know it */
    return t;
}

/* Clears rows of V that are masked for every row of the tile: 0 times NaN would be NaN. Each consumer clears them itself, and
 * all write the same. */
FN void clear_unseen(const engine *e, const span *keys, int key0, int slot)
{
    const int item = ptx_here((int)get_local_id(0)) % 128;
    for (int i = item; i < BLOCK_N * PANELS_V * 8; i += 128) {
        const int row = i / 8 % BLOCK_N, key = key0 + row;
        if (key < keys->key_begin || key >= keys->unseen_values) {
            ptx_store(V_PLACE(e) + (uint)(slot * V_SIZE + i * 16), (uint4)(0u));
        }
    }
    PUBLISH_STORES();
    named_wait(ALONE(e->consumer), 128);
}

/* Waits for K of `block`, and finds its keys. */
FN void wait_keys(const engine *e, span *keys, int key0, int block)
{
    barrier_wait(K_FULL(e, SLOT(block)), SLOT_TURN(block));
#if PREPASS
    keys->key0 = ptx_uniform(BLOCK_NOTE(e, SLOT(block))->key0);
    keys->next = ptx_uniform(BLOCK_NOTE(e, SLOT(block))->next);
    keys->class = ptx_uniform(BLOCK_NOTE(e, SLOT(block))->class);
#else
    keys->key0 = key0;
    keys->next = key0 + BLOCK_N;
    keys->class = CLASS_ANY;
#endif
}

FN void wait_values(const engine *e, const span *keys, int key0, int block)
{
    barrier_wait(V_FULL(e, SLOT(block)), SLOT_TURN(block));
    if (key0 < keys->key_begin || key0 + BLOCK_N > keys->unseen_values) {
        clear_unseen(e, keys, key0, SLOT(block));
    }
}

/* Called before this warp-group's turn: meanwhile the other one has products to run. */
FN void check_values(const engine *e, const span *keys, int block)
{
#if MAY_HIDE
    if (keys->hides) {
        barrier_wait(V_FULL(e, SLOT(block)), SLOT_TURN(block));
        clear_hidden(e, block);
    }
#endif
}

/* Fetches the current block's options from memory, before its product. */
FN void fetch_options(engine *e, const span *keys, const launch_args *a, const option_data *b)
{
#if SCORE_OPTIONS
    const tile t = tile_of(e, keys);
    see_range(e, &t, keys->key0);
#if BIAS_TYPE
    if (has_bias(a) && (keys->class & CLASS_BIASED)) {
        fetch_bias(e, &t, a, b, keys->key0);
    }
#endif
    if (has_mask(a) && (keys->class & CLASS_MASKED)) {
        load_mask(e, &t, a, b, keys->key0);
    }
#endif
}

/* Finds the columns visible under the options, during the product. */
FN void take_options(engine *e, span *keys, const launch_args *a, int block)
{
#if SCORE_OPTIONS
#if BIAS_TYPE
    PTX_COPY_WAIT(0);
    PTX_WARP_TOGETHER();
    if (has_bias(a) && (keys->class & CLASS_LARGE)) {
        take_hiding_bias(e);
    }
#endif
    if (has_mask(a) && (keys->class & CLASS_MASKED) && e->takes_pieces) {
        take_mask(e);
    }
#if MAY_HIDE
    keys->hides = publish_unseen(e, SLOT(block), options_hide(a, keys->class));
#endif
#endif
}

/* Turns S into weights. */
FN void weigh(engine *e, span *keys, const launch_args *a, const option_data *b, float factor, elem *m, elem *l, elem *alpha)
{
    int hides = keys->key0 < keys->open_begin || keys->key0 + BLOCK_N > keys->open_end, altered = hides;
#if SCORE_OPTIONS
    hides |= options_hide(a, keys->class);
    altered |= options_change(a, keys->class);
#endif
    scale_scores(e, factor);
#if HIDES_BY_BITS
    FOR_ROWS(r) { e->seen[r] = ~0u; }
#endif
    if (altered) {
#if HIDES_BY_BITS
        hide_unseen(e, &TILE(e, keys->number)->t, keys->key0);
#else
        const tile t = tile_of(e, keys);
        score_tile(e, &t, a, b, keys->key0, keys->class);
#endif
    }
    softmax_step(e, m, l, alpha, hides);
}

/* S of block `now` is complete: K may be overwritten, and after a tile's last block Q too. */
FN void release_operands(const engine *e, const span *keys, int now)
{
    release(K_EMPTY(e, SLOT(now)));
    if (!STAGES_O && keys->next >= keys->own_end) {
        release(Q_EMPTY(e, keys->number));
    }
}

/* Releases Q of the tile before this one: its output, which was staged there, has been read by now. */
FN void release_before(const engine *e, const span *keys)
{
#if STAGES_O
    if (keys->number > 0) {
        TENSOR_STORE_READ();
        release(Q_EMPTY(e, keys->number - 1));
    }
#endif
}

/* Skips the blocks that only other consumers see. */
FN void pass_blocks(const engine *e, span *keys, int *block)
{
#if SKIPS_BLOCKS
    for (; keys->next < keys->key_end; ++*block) {
        wait_keys(e, keys, keys->next, *block);
        turn_begin(e);
        turn_end(e);
        release(K_EMPTY(e, SLOT(*block)));
        barrier_wait(V_FULL(e, SLOT(*block)), SLOT_TURN(*block));
        release(V_EMPTY(e, SLOT(*block)));
    }
#endif
}

/* Computes one tile with keys. `block` counts the blocks of all tiles. It gives the slot and the phase of its barriers. */
FN void consume_tile(engine *e, span *keys, const launch_args *a, const option_data *b, int *block, float factor, elem *m,
                     elem *l)
{
    elem alpha[S_ROWS];
    int first = 1; /* O has no sum of this tile yet: the product overwrites it */
    wait_keys(e, keys, keys->first_block, *block);
    fetch_options(e, keys, a, b);
    turn_begin(e);
    wgmma_qk(e, keys->number, SLOT(*block));
    turn_end(e);
    take_options(e, keys, a, *block);
    WGMMA_WAIT(0);
    release_operands(e, keys, *block);
    release_before(e, keys);
    weigh(e, keys, a, b, factor, m, l, alpha);
    pack_weights(e);
    while (keys->next < keys->own_end) {
        const int last = *block, now = ++*block, last_key0 = keys->key0;
        check_values(e, keys, last);
        wait_keys(e, keys, keys->next, now);
        fetch_options(e, keys, a, b);
        turn_begin(e);
        wgmma_qk(e, keys->number, SLOT(now));
        wait_values(e, keys, last_key0, last);
        wgmma_pv(e, SLOT(last), !first);
        first = 0;
        turn_end(e);
        take_options(e, keys, a, now);
        WGMMA_WAIT(1);
        release_operands(e, keys, now);
        weigh(e, keys, a, b, factor, m, l, alpha);
        WGMMA_WAIT(0);
        release(V_EMPTY(e, SLOT(last)));
        FOR_ROWS(r)
        {
            FOR_O_COLS(c) { O_GET(e, r, c) *= alpha[r]; }
        }
        pack_weights(e);
    }
    check_values(e, keys, *block);
    wait_values(e, keys, keys->key0, *block);
    wgmma_pv(e, SLOT(*block), !first);
    WGMMA_WAIT(0);
    release(V_EMPTY(e, SLOT(*block)));
    ++*block;
}

/* Releases Q of a tile that this consumer does not read. */
FN void release_unused(const engine *e, const span *keys)
{
    if (STAGES_O) {
        release_before(e, keys);
    } else {
        release(Q_EMPTY(e, keys->number));
    }
}

FN void consume(engine *e, const launch_args *a, const option_data *b, __global void *o_data, __global float *lse_data,
                __global float *workspace)
{
    const float factor = score_factor(a);
    int block = 0;
    span keys;
    e->consumer = ptx_uniform((int)get_local_id(0) / 128 - 1);
    e->row = e->consumer * 64 + (int)get_local_id(0) % 128 / 32 * 16 + (int)get_local_id(0) % 32 / 4;
    e->col = (int)get_local_id(0) % 4 * 2;
    e->plain = !has_softcap(a) && !has_slopes(a) && !has_bias(a);
    e->late = 1.0f; /* a row with no visible key has no product to set it */
    UNROLL for (int i = 0; i < DIM_V / 2; i++) { e->o[i] = 0.0f; }
    if (e->consumer == CONSUMERS - 1) {
        turn_end(e);
    }
    for (keys.number = 0;; keys.number++) {
        elem m[S_ROWS], l[S_ROWS];
        barrier_wait(Q_FULL(e, keys.number), Q_TURN(keys.number));
        __local const shared_tile *given = TILE(e, keys.number);
        const int kind = given->kind;
        if (kind == TILE_NONE) {
            break;
        }
        if (STAGES_O && keys.number == 0) { /* the loader's warp that wrote the map is past the barrier */
            tensor_map_acquire(map_place(workspace, a, MAP_O));
        }
        FOR_ROWS(r)
        {
            m[r] = (elem)(-INFINITY);
            l[r] = (elem)(0.0f);
        }
        if (kind == TILE_SEES) {
            span_of(e, &keys, a, given);
            if (keys.own_end > keys.first_block) {
                consume_tile(e, &keys, a, b, &block, factor, m, l);
            } else {
                release_unused(e, &keys);
            }
            pass_blocks(e, &keys, &block);
        } else {
            release_unused(e, &keys);
        }
        if (kind != TILE_ABSENT) {
            const tile t = tile_of(e, &keys);
            stage_begin(e, &t, a, keys.number, is_aligned(o_data, a->o));
            store_tile(e, &t, a, b, m, l, o_data, lse_data, workspace);
            stage_end(e, &t, a, ALONE(e->consumer), map_place(workspace, a, MAP_O));
        }
    }
    TENSOR_STORE_READ(); /* from here on local memory belongs to the next group */
}

__kernel __attribute__((reqd_work_group_size(WORK_GROUP, 1, 1))) void attention(KERNEL_PARAMETERS)
{
    const option_data options = OPTION_DATA;
    engine e;
    ENGINE_LOCAL(e)
    /* Registers are reassigned first. With the setup before that, the compiler spilled in blocks with a bias. */
    if (get_local_id(0) < 128) {
        REGISTERS_FEWER(LOADER_REGISTERS);
        load_begin(&e, &args, q_data, k_data, v_data, o_data, workspace);
        named_wait(BEGUN, WORK_GROUP);
        load(&e, &args, &options, q_data, k_data, v_data, workspace);
    } else {
        REGISTERS_MORE(CONSUMER_REGISTERS);
        consume_begin(&e, &args, &options, workspace);
        named_wait(BEGUN, WORK_GROUP);
        consume(&e, &args, &options, o_data, lse_data, workspace);
    }
}
