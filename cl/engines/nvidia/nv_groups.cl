/* SPDX-License-Identifier: Apache-2.0
 * Memory order between groups on NVIDIA GPUs from sm_70 on, in PTX: for cl/split/last_chunk.cl and cl/split/merge.cl. Included
 * by the engines nv_mma and simt where a group merges the chunks of its tile.
 */
#define ALL_GROUPS_FENCE() __asm__ volatile("fence.sc.gpu;" : : : "memory")
FN void flag_write(__global uint *p, uint x)
{
    __asm__ volatile("st.relaxed.gpu.global.u32 [%0], %1;" : : "l"(p), "r"(x) : "memory");
}
FN uint flag_read(__global uint *p)
{
    uint x;
    __asm__ volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(x) : "l"(p) : "memory");
    return x;
}
/* Bypasses the first-level cache, which is not coherent with writes of other groups. */
FN float load_partial(__global const float *p)
{
    float x;
    __asm__ volatile("ld.relaxed.gpu.global.f32 %0, [%1];" : "=f"(x) : "l"(p));
    return x;
}
#define LOAD_PARTIAL(p) load_partial(p)
/* More loads at once would make the code longer, and the last group also waits for instructions that it has not run before. */
#define MERGE_TOGETHER 8
/* The maximum over the 32 work-items of a row. */
FN float top_of_warp(float top)
{
    for (int bits = 1; bits < 32; bits *= 2) {
        float x;
        __asm__ volatile("shfl.sync.bfly.b32 %0, %1, %2, 0x1f, 0xffffffff;" : "=f"(x) : "f"(top), "r"(bits));
        top = x > top ? x : top;
    }
    return top;
}
#define TOP_OF_WARP(top) top_of_warp(top)
/* Whether c holds for every work-item of the group. Also a barrier. */
#define VOTE_LOCAL
#define VOTE_PARAMETER
#define IS_LAST_CHUNK(t, a, workspace) is_last_chunk(t, a, workspace)
FN int group_all(int c)
{
    int all;
    __asm__ volatile("{ .reg .pred p, q; setp.ne.s32 p, %1, 0; bar.red.and.pred q, 0, p; selp.s32 %0, 1, 0, q; }"
                     : "=r"(all)
                     : "r"(c)
                     : "memory");
    return all;
}
#define GROUP_ALL(c) group_all(c)
/* After this, all work-items see what was written before any flag that one of them has read. */
FN void see_other_groups(void)
{
    ALL_GROUPS_FENCE();
    barrier(CLK_GLOBAL_MEM_FENCE);
}
#define SEE_OTHER_GROUPS() see_other_groups()
