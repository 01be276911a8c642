/* SPDX-License-Identifier: Apache-2.0
 * MERGE_INSIDE: finds the group that completes a tile's last chunk, so that this group can merge the chunks at once. A
 * separate launch takes longer to start than reading a few thousand keys.
 *
 * There is no counter: it would have to start at 0, and the caller leaves the workspace uninitialized. Instead each group
 * writes the call's number, which is unique, to its chunk's flag, and then reads the flags of all chunks. Of any two groups at
 * least one sees the other's flag, so the last group sees all. If several groups see all flags, they write the same bits.
 *
 * This needs more than OpenCL C 1.2 guarantees between groups. An engine with stronger primitives defines them
 * (cl/engines/nvidia/nv_groups.cl). Otherwise (a GPU emulated on a CPU) atomics take their place.
 */
#ifndef ALL_GROUPS_FENCE
#define ALL_GROUPS_FENCE() mem_fence(CLK_GLOBAL_MEM_FENCE)
FN void flag_write(__global uint *p, uint x) { atomic_xchg((volatile __global uint *)p, x); }
FN uint flag_read(__global uint *p) { return atomic_or((volatile __global uint *)p, 0u); }
#define LOAD_PARTIAL(p) (*(volatile __global const float *)(p))
#define MERGE_TOGETHER 1
#define VOTE_LOCAL __local int group_vote[1];
#define VOTE_PARAMETER , __local int *vote
#define IS_LAST_CHUNK(t, a, workspace) is_last_chunk(t, a, workspace, group_vote)
FN int group_all(int c, __local int *vote)
{
    vote[0] = 1;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (!c) {
        vote[0] = 0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    return vote[0];
}
#define GROUP_ALL(c) group_all(c, vote)
#define SEE_OTHER_GROUPS() mem_fence(CLK_GLOBAL_MEM_FENCE)
#endif

/* Two words a chunk, after the partial results; those of a tile are adjacent. There are no more tiles than rows. */
FN __global uint *chunk_flags(const tile *t, const launch_args *a, __global float *workspace)
{
    const long heads = (long)t->batch * (a->heads_q / t->pack) + t->head0 / t->pack;
    const long place = (heads * a->q_blocks + t->row0 / BLOCK_M) * a->chunks;
    return (__global uint *)(workspace + a->workspace + partial_rows(a) * PARTIAL_FLOATS) + 2 * place;
}

/* Whether all chunks of the tile are complete. Called by the whole group, after it has written its own chunk. */
FN int is_last_chunk(const tile *t, const launch_args *a, __global float *workspace VOTE_PARAMETER)
{
    __global uint *flags = chunk_flags(t, a, workspace);
    int seen = 1;
    barrier(CLK_GLOBAL_MEM_FENCE | CLK_LOCAL_MEM_FENCE);
    if (get_local_id(0) == 0) {
        ALL_GROUPS_FENCE(); /* covers what the whole group wrote before the barrier */
        flag_write(flags + 2 * t->chunk, (uint)a->call_number);
        flag_write(flags + 2 * t->chunk + 1, (uint)(a->call_number >> 32));
        ALL_GROUPS_FENCE();
    }
    barrier(CLK_GLOBAL_MEM_FENCE | CLK_LOCAL_MEM_FENCE);
    for (int i = (int)get_local_id(0); i < 2 * a->chunks; i += WORK_GROUP) {
        seen &= flag_read(flags + i) == (uint)(a->call_number >> (i % 2 * 32));
    }
    return GROUP_ALL(seen);
}
