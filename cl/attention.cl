/* SPDX-License-Identifier: Apache-2.0
 * The kernel loop, the same for every engine. A team owns BLOCK_M rows and visits the key blocks visible to them.
 */
#include "cl/contract.cl"
#include "cl/score.cl"
#include "cl/softmax.cl"
#ifdef ENGINE_OPEN_END
#include "cl/softmax_open.cl"
#endif
#include "cl/epilogue.cl"
#if SPLIT
#include "cl/split/merge.cl"
#endif
#if PREPASS
#include "cl/classify.cl"
#endif

/* ENGINE_APART: the engine has no barrier and no local memory. PoCL compiles three copies of a kernel, one for each way of
 * launching it, but one copy of a function that the kernel calls. So the loop is a function, which takes a third of the compile
 * time. */
#ifdef ENGINE_APART
__attribute__((noinline)) void attend(KERNEL_PARAMETERS, const long group, const long item);
void attend(KERNEL_PARAMETERS, const long group, const long item)
{
#else
__kernel __attribute__((reqd_work_group_size(WORK_GROUP, 1, 1))) void attention(KERNEL_PARAMETERS)
{
    const long group = (long)get_group_id(0), item = (long)get_local_id(0);
#endif
    const option_data options = OPTION_DATA;
    engine e;
    tile t;
    elem m[S_ROWS], l[S_ROWS], alpha[S_ROWS];
    ENGINE_LOCAL(e)
#ifdef MERGE_INSIDE
    VOTE_LOCAL
#endif
    const long team = args.first_team + group * (WORK_GROUP / TEAM) + (TEAM == WORK_GROUP ? 0 : item / TEAM);
    /* Only an engine whose teams are single work-items leaves a group partly empty, and such an engine has no barrier. */
    if (team >= (long)args.q_blocks * args.chunks * (args.heads_q / args.pack) * args.batches) {
        return;
    }
    if (!tile_decode(&t, &args, &options, team)) {
        return;
    }
    tile_find_classes(&t, &args, workspace);
    const float factor = score_factor(&args);
    engine_begin(&e, &t, &args, q_data, k_data, v_data);
    FOR_ROWS(r)
    {
        m[r] = (elem)(-INFINITY);
        l[r] = (elem)(0.0f);
        FOR_O_COLS(c) { O_SET(&e, r, c, (elem)(0.0f)); }
    }
    for (int key0 = tile_first_block(&t); key0 < t.key_end; key0 = tile_next_block(&t, key0)) {
#ifdef ENGINE_OPEN_END
        /* A short loop for blocks that are fully visible to every row. It leaves at least one block for the general code
         * below. */
        for (const int end = ENGINE_OPEN_END(&e, &t, key0, factor); key0 < end; key0 += BLOCK_N) {
            engine_qk_open(&e, key0);
            softmax_step_open(&e, m, l);
            engine_pv_open(&e);
        }
#endif
        const int class = tile_block_class(&t, key0);
        const int altered = scores_change(&t, &args, key0, class);
#ifdef ENGINE_QK
        ENGINE_QK(&e, &t, &args, &options, key0, class, factor);
#else
        engine_qk(&e, &t, key0, factor);
#endif
        if (altered) {
            score_tile(&e, &t, &args, &options, key0, class);
        }
        softmax_step(&e, m, l, alpha, altered);
        engine_pv(&e, &t, key0, alpha);
    }
#ifdef ENGINE_STORE_PARTIAL
    ENGINE_STORE_PARTIAL(&e, &t, &args, m, l, workspace);
#else
#ifdef ENGINE_JOIN
    ENGINE_JOIN(&e, m, l);
#endif
#ifdef ENGINE_END
    ENGINE_END(&e);
#endif
    store_tile(&e, &t, &args, &options, m, l, o_data, lse_data, workspace);
#endif
#ifdef MERGE_INSIDE
    if (IS_LAST_CHUNK(&t, &args, workspace)) {
        merge_tile(&t, &args, &options, o_data, lse_data, workspace);
    }
#endif
}

#ifdef ENGINE_APART
__kernel __attribute__((reqd_work_group_size(WORK_GROUP, 1, 1))) void attention(KERNEL_PARAMETERS)
{
    attend(KERNEL_ARGUMENTS, (long)get_group_id(0), (long)get_local_id(0));
}
#endif
