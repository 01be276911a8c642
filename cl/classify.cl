/* SPDX-License-Identifier: Apache-2.0
 * A pass over an explicit mask and bias before attention. It writes one byte for each tile: its class. Attention then skips
 * tiles that are fully masked, and does not read the mask and bias of tiles that change nothing. The pass pays where heads or
 * batch entries share the mask.
 *
 *         class of (batch, head, row block, key block) is at
 *         classes + batch*class_batch + head*class_head + row block*key_blocks + key block
 */
#if BLOCK_N % 16 == 0
/* Classifies a whole tile of a mask whose keys are contiguous, 16 bytes at a time. */
FN int classify_bytes(__global const uchar *mask, long pitch, int item)
{
    uint4 some = (uint4)(0), holes = (uint4)(0);
    const int aligned = (((uintptr_t)mask | (uintptr_t)pitch) & 15) == 0;
    for (int i = item; i < BLOCK_M * (BLOCK_N / 16); i += CLASSIFY_GROUP) {
        __global const uchar *p = mask + i / (BLOCK_N / 16) * pitch + i % (BLOCK_N / 16) * 16;
        const uint4 x = aligned ? *(__global const uint4 *)p : as_uint4(vload16(0, p));
        some |= x;
        holes |= (x - 0x01010101u) & ~x & 0x80808080u; /* not 0 if one of the bytes is 0 */
    }
    return ((some.x | some.y | some.z | some.w) ? CLASS_SEEN : 0) |
           ((holes.x | holes.y | holes.z | holes.w) ? CLASS_MASKED : 0);
}
#endif

__kernel __attribute__((reqd_work_group_size(CLASSIFY_GROUP, 1, 1))) void classify(KERNEL_PARAMETERS)
{
    __local int found;
    const long group = (long)get_group_id(0);
    const int item = (int)get_local_id(0);
    const int key0 = (int)(group % args.key_blocks) * BLOCK_N;
    const int row0 = (int)(group / args.key_blocks % args.q_blocks) * BLOCK_M;
    /* The table has one entry where batch entries, or heads, share it. */
    const long rest = group / args.key_blocks / args.q_blocks;
    const int heads = args.class_head ? args.heads_q : 1;
    const int head = (int)(rest % heads), batch = (int)(rest / heads);
    const long mask = args.mask.base + batch * args.mask.batch + head * args.mask.head;
    const long bias = args.bias.base + batch * args.bias.batch + head * args.bias.head;
    int seen = 0;
    if (item == 0) {
        found = 0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
#if BLOCK_N % 16 == 0
    if (args.has_mask && !args.bias_type && args.mask.dim == 1 && row0 + BLOCK_M <= args.seq_q &&
        key0 + BLOCK_N <= min(args.mask_columns, args.seq_kv)) {
        seen = classify_bytes(mask_data + mask + row0 * args.mask.seq + key0, args.mask.seq, item);
    } else
#endif
        for (int i = item; i < BLOCK_M * BLOCK_N; i += CLASSIFY_GROUP) {
            const int row = row0 + i / BLOCK_N, key = key0 + i % BLOCK_N;
            if (row < args.seq_q && key < args.seq_kv) {
                int kept = 1;
                if (args.has_mask) {
                    kept = key < args.mask_columns && mask_data[mask + row * args.mask.seq + key * args.mask.dim] != 0;
                    seen |= kept ? 0 : CLASS_MASKED;
                }
                if (args.bias_type) {
                    const long at = bias + row * args.bias.seq + key * args.bias.dim;
                    const float x = key < args.bias_columns ? load_any(args.bias_type, bias_data, at) : -INFINITY;
                    kept = kept && x != -INFINITY;
                    seen |= (x == 0.0f ? 0 : CLASS_BIASED) | (fabs(x) < 1e30f ? 0 : CLASS_LARGE);
                }
                seen |= kept ? CLASS_SEEN : 0;
            }
        }
    if (seen) {
        atomic_or(&found, seen);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item == 0) {
        ((__global uchar *)workspace)[args.classes + group] = (uchar)found;
    }
}
