/* SPDX-License-Identifier: Apache-2.0
 * nv_mma with few rows, which the warps of a group share. Each warp has its own keys of a block. It copies them itself and
 * waits for no other warp until the loop ends. In local memory each warp has SLOTS slots for its keys of K, and as many for V:
 *
 *         in flight while S of block i is computed      V(i) K(i+1) V(i+1) ... K(i+SLOTS-1) V(i+SLOTS-1)
 *
 * A slot is refilled as soon as it is read, slots of K before softmax. So of 2 SLOTS slots all but one are in flight at any
 * time, and the speed is that of reading K and V. Included by cl/engines/nvidia/mma/nv_mma.cl.
 */

/* Each call must end one group of copies, even an empty one, since groups are counted. fetch_v does so itself; for fetch_k the
 * caller does. */
FN void fetch_k(engine *e, const tile *t)
{
    if (e->ahead < t->key_end) {
        stage(K_PLACE(e, e->turn) + FIRST_OF_WARP(e) * QK_STRIDE, &e->k, WARP_KEYS, DIM, QK_STRIDE, HEAD_DIM,
              e->ahead + FIRST_OF_WARP(e), t->key_begin, t->key_end);
    }
}
FN void fetch_v(engine *e, const tile *t)
{
    if (e->ahead < t->key_end) {
        stage(V_PLACE(e, e->turn) + FIRST_OF_WARP(e) * V_STRIDE, &e->v, WARP_KEYS, DIM_V, V_STRIDE, HEAD_DIM_V,
              e->ahead + FIRST_OF_WARP(e), t->key_begin, t->key_end);
    }
    PTX_COPY_COMMIT();
    e->ahead = tile_next_block(t, e->ahead);
    e->turn = e->turn + 1 == SLOTS ? 0 : e->turn + 1;
}

/* Waits until the oldest group of copies has arrived, for all work-items of the warp. */
FN void await_oldest(void)
{
    PTX_COPY_WAIT(2 * SLOTS - 1);
    PTX_WARP_TOGETHER();
}

FN void fetch_first(engine *e, const tile *t, int key0, const nv_matrix *rows_of_q)
{
    const int rows = BLOCK_M / KEY_WARPS, row0 = e->warp * rows;
    e->ahead = key0;
    if (key0 >= t->key_end) {
        return;
    }
    /* Not unrolled: a group runs this once, and fetching instructions delays it like fetching keys. */
    for (int slot = 0; slot < ptx_here(SLOTS); slot++) {
        fetch_k(e, t);
        if (slot == 0) {
            /* After K, which takes longer to arrive. */
            stage_any(e->local_memory + (uint)(row0 * QK_STRIDE), rows_of_q, rows, DIM, QK_STRIDE, HEAD_DIM, t->row0 + row0, 0,
                      t->rows);
        }
        PTX_COPY_COMMIT();
        fetch_v(e, t);
    }
    /* Q has arrived; each warp has copied some of its rows. */
    PTX_COPY_WAIT(2 * SLOTS - 1);
    barrier(CLK_LOCAL_MEM_FENCE);
}

FN void engine_qk(engine *e, const tile *t, int key0, float factor)
{
    (void)key0;
    await_oldest();
    product_qk(e, K_PLACE(e, e->turn) + e->k_at);
    PTX_WARP_TOGETHER(); /* all have read K */
    fetch_k(e, t);
    PTX_COPY_COMMIT();
    scale_scores(e, factor);
}

/* The keys that are masked for every row, one bit for each of this work-item's columns. Their rows of V must not contribute,
 * since 0 * NaN is NaN. Work-items with the same i % 4 hold the same columns. */
FN uint unseen_keys(engine *e)
{
    uint unseen = 0;
    FOR_S_COLS(c)
    {
        int weighs = 0;
        FOR_ROWS(r) { weighs |= S_GET(e, r, c) != 0.0f; }
        unseen |= (ptx_ballot(weighs) & (0x11111111u << e->col / 2)) == 0u ? 1u << c : 0u;
    }
    return unseen;
}

FN void engine_pv(engine *e, const tile *t, int key0, const elem *alpha)
{
    const uint unseen = SCORE_OPTIONS && e->hides ? unseen_keys(e) : 0;
    (void)key0;
    rescale_o(e, alpha);
    await_oldest();
    add_product_pv(e, V_PLACE(e, e->turn) + e->v_at, unseen);
    PTX_WARP_TOGETHER();
    fetch_v(e, t);
}

/* ----------------------------------------------------------------------------------------------------------- after the loop */

#ifdef ENGINE_BASE_TWO
#define PART_WEIGHT(e, x, base)                                                                                                \
    (ENGINE_IS_LARGE(base) ? ENGINE_POWER(e, (x) - (base), 0.0f) : EXP2(ENGINE_BASE_TWO(e, x) - ENGINE_BASE_TWO(e, base)))
#define PART_BASE_TWO(e, x) ENGINE_BASE_TWO(e, x)
#else
#define PART_WEIGHT(e, x, base) EXP2((x) - (base))
#define PART_BASE_TWO(e, x) (x)
#endif

#if SPLIT
/* In floats: rows of O, then m and l of each row, one warp after the other. Rows are padded, so that the eight rows of one
 * store are in distinct banks. */
#define PART_STRIDE (DIM_V + 8)
#define PART_SIZE (BLOCK_M * (PART_STRIDE + 2))
#if KEY_WARPS * PART_SIZE * 4 > LOCAL_SIZE
#error "nv_mma: local memory does not hold what the warps have"
#endif
#define ENGINE_STORE_PARTIAL(e, t, a, m, l, workspace) store_partial(e, t, a, m, l, workspace)

FN void give_part(engine *e, elem *m, elem *l)
{
    __local float *part = e->parts + e->warp * PART_SIZE;
    engine_fold_sum(e, l);
    barrier(CLK_LOCAL_MEM_FENCE);
    FOR_ROWS(r)
    {
        const int row = ENGINE_ROW(e, r);
        FOR_O_COLS(c) { part[row * PART_STRIDE + ENGINE_O_COL(e, c)] = O_GET(e, r, c); }
        if (ENGINE_OWNS_ROWS(e)) {
            part[BLOCK_M * PART_STRIDE + 2 * row] = m[r];
            part[BLOCK_M * PART_STRIDE + 2 * row + 1] = l[r];
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
}

/* One warp adds up the parts of a row. The code is short, since it runs once and the group also waits for its instructions. */
FN void store_partial(engine *e, const tile *t, const launch_args *a, elem *m, elem *l, __global float *workspace)
{
    const int end = min(BLOCK_M, t->rows - t->row0), lane = (int)get_local_id(0) % 32;
    give_part(e, m, l);
    for (int row = e->warp; row < end; row += KEY_WARPS) {
        __local const float *o = e->parts + row * PART_STRIDE + lane, *ml = e->parts + BLOCK_M * PART_STRIDE + 2 * row;
        const long partial = partial_row(a, t->batch, tile_head(t, t->row0 + row), tile_query(t, t->row0 + row), t->chunk);
        __global float *out = workspace + partial_output(a, partial) + lane;
        float top = ml[0], sum = 0.0f, weight[KEY_WARPS];
        UNROLL for (int w = 1; w < KEY_WARPS; w++) { top = LARGER(top, ml[w * PART_SIZE]); }
        const float base = top == -INFINITY ? 0.0f : top;
        UNROLL for (int w = 0; w < KEY_WARPS; w++)
        {
            weight[w] = PART_WEIGHT(e, ml[w * PART_SIZE], base);
            sum = MULTIPLY_ADD(ml[w * PART_SIZE + 1], weight[w], sum);
        }
        UNROLL for (int c = 0; c < DIM_V; c += 32)
        {
            float x = 0.0f;
            UNROLL for (int w = 0; w < KEY_WARPS; w++) { x = MULTIPLY_ADD(o[w * PART_SIZE + c], weight[w], x); }
            STORE_FLOAT_WHEN(lane + c < HEAD_DIM_V, out + c, x);
        }
        STORE_FLOAT_WHEN(lane == 0, workspace + partial_top(a, partial), PART_BASE_TWO(e, top));
        STORE_FLOAT_WHEN(lane == 0, workspace + partial_sum(a, partial), sum);
    }
}
#else
/* In floats: m, l and O of a warp, each value of all 32 work-items adjacent. */
#define PART_SIZE (S_ROWS * (2 + O_COLS) * 32)
#if KEY_WARPS * PART_SIZE * 4 > LOCAL_SIZE
#error "nv_mma: local memory does not hold what the warps have"
#endif
#define ENGINE_JOIN(e, m, l) join_warps(e, m, l)

/* The first warp gets the sums. The other warps get row numbers past the last row. */
FN void join_warps(engine *e, elem *m, elem *l)
{
    __local float *part = e->parts + e->warp * PART_SIZE + (int)get_local_id(0) % 32;
    barrier(CLK_LOCAL_MEM_FENCE);
    FOR_ROWS(r)
    {
        __local float *place = part + r * (2 + O_COLS) * 32;
        place[0] = m[r];
        place[32] = l[r];
        FOR_O_COLS(c) { place[(2 + c) * 32] = O_GET(e, r, c); }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (e->warp != 0) {
        e->row = 1 << 20;
        return;
    }
    FOR_ROWS(r)
    {
        __local float *place = part + r * (2 + O_COLS) * 32;
        float top = m[r];
        UNROLL for (int w = 1; w < KEY_WARPS; w++) { top = LARGER(top, place[w * PART_SIZE]); }
        const float base = top == -INFINITY ? 0.0f : top, own = PART_WEIGHT(e, m[r], base);
        m[r] = top;
        l[r] *= own;
        FOR_O_COLS(c) { O_GET(e, r, c) *= own; }
        UNROLL for (int w = 1; w < KEY_WARPS; w++)
        {
            const float weight = PART_WEIGHT(e, place[w * PART_SIZE], base);
            l[r] = MULTIPLY_ADD(place[w * PART_SIZE + 32], weight, l[r]);
            FOR_O_COLS(c) { O_GET(e, r, c) = MULTIPLY_ADD(place[w * PART_SIZE + (2 + c) * 32], weight, O_GET(e, r, c)); }
        }
    }
}
#endif
