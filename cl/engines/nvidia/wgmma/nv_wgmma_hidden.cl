/* SPDX-License-Identifier: Apache-2.0
 * Keys that a mask or a bias masks for every row of a tile of nv_wgmma. Their weight 0 times V must be 0, which fails where V
 * is NaN or infinite. Two warps next to the loader find the rows of V that are not finite, before V is released to the
 * consumers. Each consumer's warp publishes the keys that are masked for all its rows, usually none. If V is not finite there,
 * the warp waits for the words of the other warps, and clears the keys that are masked for every row. Included by
 * cl/engines/nvidia/wgmma/nv_wgmma_load.cl.
 */
#if MAY_HIDE
/* Masked keys of a slot: four words for each warp; bit c of word i is key ENGINE_S_COL(c) of work-item i. Keys whose V is not
 * finite: four words for all warps, with the same bits. */
#define UNSEEN(e, slot) ((e)->unseen + (slot)*CONSUMERS * 16)
#define NOT_FINITE(e, slot) ((e)->unseen + KV_SLOTS * CONSUMERS * 16 + (slot)*4)

/* Publishes the keys of a block that are masked for all rows of this warp. Returns whether there is one. */
FN int publish_unseen(const engine *e, int slot, int hides)
{
    const int item = (int)get_local_id(0) - 128;
    uint unseen = hides ? ~(e->seen[0] | e->seen[1]) & KEY_BITS : 0u;
    UNROLL for (int bits = 4; bits < 32; bits *= 2) { unseen &= ptx_neighbour_word(unseen, bits); }
    if (item % 32 < 4) {
        UNSEEN(e, slot)[item / 32 * 4 + item % 32] = unseen;
        barrier_arrive(UNSEEN_FULL(e, slot));
    }
    return ptx_ballot(unseen != 0u) != 0u;
}

/* The keys that are masked for the rows of all warps. Waits until all warps have published. */
FN uint unseen_by_all(const engine *e, int block, int lane)
{
    uint unseen = KEY_BITS;
    barrier_wait(UNSEEN_FULL(e, SLOT(block)), SLOT_TURN(block));
    UNROLL for (int i = 0; i < CONSUMERS * 16; i += 32)
    {
        unseen &= UNSEEN(e, SLOT(block))[min(i + lane, CONSUMERS * 16 - 4 + lane % 4)];
    }
    UNROLL for (int bits = 4; bits < 32; bits *= 2) { unseen &= ptx_neighbour_word(unseen, bits); }
    return unseen;
}

/* The address of 16-byte piece number i of row `key` of V. */
FN uint value_place(const engine *e, int slot, int key, int i)
{
    return V_PLACE(e) + (uint)(slot * V_SIZE + i / 8 * KV_PANEL + key * 128 + ((i & 7) ^ (key & 7)) * 16);
}

/* x * 0 + sum in both halves: NaN if x is NaN or infinite, and once NaN always NaN. */
FN uint sum_of_zeros(uint x, uint sum)
{
#if K_TYPE == FP16
    __asm__("fma.rn.f16x2 %0, %1, %2, %0;" : "+r"(sum) : "r"(x), "r"(0u));
#else
    __asm__("fma.rn.bf16x2 %0, %1, %2, %0;" : "+r"(sum) : "r"(x), "r"(0u));
#endif
    return sum;
}

/* Finds the keys whose V is not finite, in words with the same bits as those of masked keys. Warp `which` of two writes words
 * `which` and `which` + 2. Then it releases V to the consumers. Work-items start at different pieces of their rows, so that
 * eight of them read from distinct banks. */
FN void look_at_values(const engine *e, int block, int hides, int which)
{
    const int lane = (int)get_local_id(0) % 32, slot = SLOT(block);
    barrier_wait(V_LANDED(e, slot), SLOT_TURN(block));
    _Pragma("unroll 1") for (int word = which; word < 4 && hides; word += 2)
    {
        const int key = min(lane / 2 * 8 + 2 * word + lane % 2, BLOCK_N - 1);
        uint sum[2] = {0u, 0u};
        _Pragma("unroll 4") for (int i = 0; i < PANELS_V * 8; i++)
        {
            const uint4 x = ptx_load_four(value_place(e, slot, key, (i & ~7) + ((i + lane / 2 * 2) & 7)));
            sum[0] = sum_of_zeros(x.y, sum_of_zeros(x.x, sum[0]));
            sum[1] = sum_of_zeros(x.w, sum_of_zeros(x.z, sum[1]));
        }
        const uint bad = ptx_ballot((sum[0] | sum[1]) != 0u);
        if (lane == 0) {
            NOT_FINITE(e, slot)[word] = bad;
        }
    }
    if (lane == 0) {
        barrier_arrive(V_FULL(e, slot));
    }
}

/* Checks all blocks, in two warps that have no other work. */
FN void watch_values(const engine *e)
{
    for (int block = 0;; block++) {
        barrier_wait(V_LANDED(e, SLOT(block)), SLOT_TURN(block));
        const int hides = BLOCK_NOTE(e, SLOT(block))->hides;
        if (hides == VALUES_END) {
            return;
        }
        look_at_values(e, block, hides, (int)get_local_id(0) / 32 - 1);
    }
}

/* Clears masked keys whose V is not finite. Each warp does it itself, and all write the same. */
FN void clear_hidden(const engine *e, int block)
{
    const int item = ptx_here((int)get_local_id(0)) - 128, lane = item % 32, slot = SLOT(block);
    const uint bad = NOT_FINITE(e, slot)[lane % 4];
    if (ptx_ballot((UNSEEN(e, slot)[item / 32 * 4 + lane % 4] & bad) != 0u) == 0u) {
        return;
    }
    const uint clears = unseen_by_all(e, block, lane) & bad;
    _Pragma("unroll 1") for (int word = 0; word < 4; word++)
    {
        const int key = min(lane / 2 * 8 + 2 * word + lane % 2, BLOCK_N - 1);
        const int clear = (int)(ptx_word_of(clears, word) >> lane & 1u);
        UNROLL for (int i = 0; i < PANELS_V * 8; i++)
        {
            ptx_store_local_when(clear, value_place(e, slot, key, i), (uint4)(0u));
        }
    }
    PUBLISH_STORES();
}
#endif
