/* SPDX-License-Identifier: Apache-2.0
 * When a slot of simt may be read and when it may be filled. Included by cl/engines/simt/simt.cl, which defines chunks.
 *
 *         chunk_await    waits until chunk number `chunk` of the block has arrived for all work-items
 *         chunk_ahead    starts copying the next chunk, of this or the next block
 *         chunk_done     signals that this work-item has read the chunk
 *
 * SLOT_BARRIERS: each slot has two barriers. One says that its chunk has arrived, the other that all warps have read it. So a
 * warp may be ahead of another by the distance between chunk_ahead and chunk_await. With one barrier for all warps, the two
 * warps that share multiply-add units start and end each chunk together, and the slower one ends it alone. All other exchanges
 * stay within warps.
 */
#if SLOT_BARRIERS && defined(COPY_ASM)
#include "cl/engines/nvidia/nv_barriers.cl"
#define HAS_SLOT_BARRIERS 1
#define IS_THERE(e, number) ((uint)(size_t)(e)->barriers + ((uint)(number)&1u) * 8)
#define IS_READ(e, number) ((uint)(size_t)(e)->barriers + 16 + ((uint)(number)&1u) * 8)
#define TURN(number) ((number) >> 1)
FN void warp_together(void) { __asm__ volatile("bar.warp.sync 0xffffffff;" : : : "memory"); }
FN void slot_await_read(const engine *e) { barrier_wait(IS_READ(e, e->chunk_number + 1), TURN(e->chunk_number - 1)); }
FN void slot_is_filled(const engine *e) { barrier_arrive_copied(IS_THERE(e, e->chunk_number + 1)); }
#else
#define HAS_SLOT_BARRIERS 0
FN void warp_together(void) {}
FN void slot_await_read(const engine *e) {}
FN void slot_is_filled(const engine *e) {}
#endif
#define CHUNK_PARTS (1 + HAS_SLOT_BARRIERS) /* products of a chunk: before chunk_ahead, and after it */

/* Called once the copy of chunk 0 of the tile has started. */
FN void turns_begin(engine *e)
{
#if HAS_SLOT_BARRIERS
    e->chunk_number = -1;
    if (get_local_id(0) == 0) {
        for (int i = 0; i < 2; i++) {
            barrier_init(IS_THERE(e, i), WORK_GROUP);
            barrier_init(IS_READ(e, i), WORK_GROUP / 32);
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    slot_is_filled(e);
    e->chunk_number = 0;
#endif
}

/* Starts copying chunk number `chunk` + 1, where there is one. */
FN void stage_next(engine *e, const tile *t, int key0, int chunk)
{
    const int next = (chunk + 1) % CHUNKS, next_key0 = next == 0 ? tile_next_block(t, key0) : key0;
    if (next_key0 + (next > K_CHUNKS ? (next - K_CHUNKS) * VALUE_CHUNK : 0) < t->key_end) {
        slot_await_read(e);
        chunk_stage(e, t, next_key0, next, SLOT_PLACE(e, chunk + 1));
        slot_is_filled(e);
    }
}

FN void chunk_await(engine *e, const tile *t, int key0, int chunk)
{
#if HAS_SLOT_BARRIERS
    barrier_wait(IS_THERE(e, e->chunk_number), TURN(e->chunk_number));
#elif SLOTS == 2
    STAGED_WAIT();
    barrier(CLK_LOCAL_MEM_FENCE);
    stage_next(e, t, key0, chunk);
#else
    barrier(CLK_LOCAL_MEM_FENCE);
    chunk_stage(e, t, key0, chunk, SLOT_PLACE(e, chunk));
    STAGED_WAIT();
    barrier(CLK_LOCAL_MEM_FENCE);
#endif
}
FN void chunk_ahead(engine *e, const tile *t, int key0, int chunk)
{
    if (HAS_SLOT_BARRIERS) {
        stage_next(e, t, key0, chunk);
    }
}
FN void chunk_done(engine *e)
{
#if HAS_SLOT_BARRIERS
    warp_together();
    if (get_local_id(0) % 32 == 0) {
        barrier_arrive(IS_READ(e, e->chunk_number));
    }
    e->chunk_number++;
#endif
}
