/* SPDX-License-Identifier: Apache-2.0
 * The fully visible blocks of nv_mma, in the separate loop of cl/attention.cl. This loop has no test of keys, no slow copies
 * and no masking. With two slots, the copies of the next block are placed between the instructions of the first product.
 * Included by cl/engines/nvidia/mma/nv_mma.cl.
 */
#if SCORE_OPTIONS
/* The end of the blocks from key0 on that are fully visible and whose next block has a visible key. A warp tests 32 blocks at
 * once, one a work-item. */
FN int open_by_class(const tile *t, int key0, int last)
{
    const int key = key0 + (int)get_local_id(0) % 32 * BLOCK_N;
    int open = 0;
    if (key <= last) {
        __global const uchar *class = t->classes + key / BLOCK_N;
        open = class[0] == CLASS_SEEN && (class[1] & CLASS_SEEN);
    }
    const uint closed = ~ptx_ballot(open);
    const int count = closed ? 31 - (int)clz(closed & (0u - closed)) : 32;
    return key0 + count * BLOCK_N;
}
#endif

/* The end of the blocks from key0 on for the separate loop. After each of them there must be another whole block, so that its
 * copies need no test. */
FN int open_end(engine *e, const tile *t, int key0, float factor)
{
    const int last = min(t->open_end, t->key_end - BLOCK_N) - BLOCK_N;
    const int fast = key0 >= t->open_begin && key0 >= t->key_begin && stages_whole(&e->k, BLOCK_N, DIM, HEAD_DIM) &&
                     stages_whole(&e->v, BLOCK_N, DIM_V, HEAD_DIM_V) && factor_is_late(e, factor);
    e->slack = 8.0f / e->late;
#if SCORE_OPTIONS
    return fast && t->classes[key0 / BLOCK_N] == CLASS_SEEN ? open_by_class(t, key0, last) : key0;
#else
    return fast ? last + 1 : key0;
#endif
}

FN void see_all(engine *e)
{
#ifdef NV_PAIRS
    FOR_ROWS(r) { ENGINE_SEEN(e, r) = ~0u; }
#else
    (void)e;
#endif
}

#if SLOTS == 2
FN void engine_qk_open(engine *e, int key0)
{
    nv_copy k, v;
    see_all(e);
    begin_block();
    nv_copy_begin(&k, K_PLACE(e, e->turn ^ 1), &e->k, DIM, QK_STRIDE, key0 + BLOCK_N);
    nv_copy_begin(&v, V_PLACE(e, e->turn ^ 1), &e->v, DIM_V, V_STRIDE, key0 + BLOCK_N);
    product_qk_beside(e, K_PLACE(e, e->turn) + e->k_at, &k, &v);
    PTX_COPY_COMMIT();
}
#else
FN void engine_qk_open(engine *e, int key0)
{
    see_all(e);
    begin_block();
    stage_whole(V_PLACE(e, 0), &e->v, BLOCK_N, DIM_V, V_STRIDE, key0);
    PTX_COPY_COMMIT();
    product_qk(e, K_PLACE(e, 0) + e->k_at);
    begin_block();
    stage_whole(K_PLACE(e, 0), &e->k, BLOCK_N, DIM, QK_STRIDE, key0 + BLOCK_N);
    PTX_COPY_COMMIT();
}
#endif
FN void engine_pv_open(engine *e)
{
    add_product_pv(e, V_PLACE(e, e->turn) + e->v_at, 0);
    e->turn ^= SLOTS - 1;
}
