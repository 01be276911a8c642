/* SPDX-License-Identifier: Apache-2.0
 * Keys that a mask or a bias hides from every row of a tile of nv_wgmma: 0 times what their rows of V hold must be 0, and is
 * unless that is NaN or infinite. Each warp says which keys none of its rows sees, mostly none at all, and looks at what V
 * holds there; if that is not finite, it waits for what the other warps say, and clears what nobody sees.
 */
#if MAY_HIDE
#define UNSEEN_FULL(e, slot) BARRIER(e, 12 + (slot))
/* Words of a slot, four a warp: bit c of word i is key ENGINE_S_COL(c) of work-item i. */
#define UNSEEN(e, slot) ((e)->unseen + (slot)*CONSUMERS * 16)

/* Tells the others which keys of a block are hidden from all rows here. Returns whether there is one. */
FN int publish_unseen(const engine *e, int slot, int hides)
{
    const int item = (int)get_local_id(0) - 128;
    uint unseen = hides ? e->hidden & KEY_BITS : 0u;
    UNROLL for (int bits = 4; bits < 32; bits *= 2) { unseen &= ptx_neighbour_word(unseen, bits); }
    if (item % 32 < 4) {
        UNSEEN(e, slot)[item / 32 * 4 + item % 32] = unseen;
        barrier_arrive(UNSEEN_FULL(e, slot));
    }
    return ptx_ballot(unseen != 0u) != 0u;
}

/* By all warps, as soon as all have published. */
FN uint unseen_by_all(const engine *e, int block, int lane)
{
    uint unseen = KEY_BITS;
    barrier_wait(UNSEEN_FULL(e, block & 1), block >> 1);
    UNROLL for (int i = 0; i < CONSUMERS * 16; i += 32)
    {
        unseen &= UNSEEN(e, block & 1)[min(i + lane, CONSUMERS * 16 - 4 + lane % 4)];
    }
    UNROLL for (int bits = 4; bits < 32; bits *= 2) { unseen &= ptx_neighbour_word(unseen, bits); }
    return unseen;
}

/* Where row `key` of V has its piece of 16 bytes number i. */
FN uint value_place(const engine *e, int slot, int key, int i)
{
    return V_PLACE(e) + (uint)(slot * V_SIZE + i / 8 * KV_PANEL + key * 128 + ((i & 7) ^ (key & 7)) * 16);
}

/* Not 0 if one of eight elements is NaN or infinite: its exponent, all ones, carries. */
FN uint not_finite(uint4 x)
{
    const uint exponent = K_TYPE == FP16 ? 0x7C007C00u : 0x7F807F80u, one = K_TYPE == FP16 ? 0x04000400u : 0x00800080u;
    return (((x.x & exponent) + one) | ((x.y & exponent) + one) | ((x.z & exponent) + one) | ((x.w & exponent) + one)) &
           0x80008000u;
}

/* The bit of key number `key` of a block in words of which this work-item has number lane % 4. */
FN int key_bit(uint words, int key, int lane) { return (int)(ptx_word_of(words, lane % 8 / 2) >> (key / 8 * 2 + key % 2)) & 1; }

/* Every warp does it for itself, all writing the same. */
FN void clear_hidden(const engine *e, int block)
{
    const int item = ptx_here((int)get_local_id(0)) - 128, lane = item % 32, slot = block & 1;
    const uint unseen = UNSEEN(e, slot)[item / 32 * 4 + lane % 4];
    uint bad[(BLOCK_N + 31) / 32], any = 0;
    UNROLL for (int k = 0; k < (BLOCK_N + 31) / 32; k++)
    {
        const int key = min(32 * k + lane, BLOCK_N - 1), mine = key_bit(unseen, key, lane);
        bad[k] = 0;
        for (int i = ptx_ballot(mine) ? 0 : PANELS_V * 8; i < PANELS_V * 8; i++) {
            bad[k] |= not_finite(ptx_load_four(value_place(e, slot, mine ? key : 0, i)));
        }
        bad[k] = mine ? bad[k] : 0u;
        any |= bad[k];
    }
    if (ptx_ballot(any != 0u) == 0u) {
        return;
    }
    const uint tile = unseen_by_all(e, block, lane);
    UNROLL for (int k = 0; k < (BLOCK_N + 31) / 32; k++)
    {
        const int key = min(32 * k + lane, BLOCK_N - 1), clears = key_bit(tile, key, lane) & (bad[k] != 0u);
        for (int i = 0; i < PANELS_V * 8; i++) {
            ptx_store_local_when(clears, value_place(e, slot, key, i), (uint4)(0u));
        }
    }
    PUBLISH_STORES();
}
#endif
