/* SPDX-License-Identifier: Apache-2.0
 * Instructions of sm_90a: wgmma, barriers in local memory, the Tensor Memory Accelerator. Included only by
 * cl/engines/nvidia/wgmma/nv_wgmma.cl, which explains the mark //@.
 */

/* Operands: the N accumulators are %0 ... %(N-1), in groups of eight. */
#define REG0 "%0,%1,%2,%3,%4,%5,%6,%7"
#define REG1 "%8,%9,%10,%11,%12,%13,%14,%15"
#define REG2 "%16,%17,%18,%19,%20,%21,%22,%23"
#define REG3 "%24,%25,%26,%27,%28,%29,%30,%31"
#define REG4 "%32,%33,%34,%35,%36,%37,%38,%39"
#define REG5 "%40,%41,%42,%43,%44,%45,%46,%47"
#define REG6 "%48,%49,%50,%51,%52,%53,%54,%55"
#define REG7 "%56,%57,%58,%59,%60,%61,%62,%63"
#define REG8 "%64,%65,%66,%67,%68,%69,%70,%71"
#define REG9 "%72,%73,%74,%75,%76,%77,%78,%79"
#define REG10 "%80,%81,%82,%83,%84,%85,%86,%87"
#define REG11 "%88,%89,%90,%91,%92,%93,%94,%95"
#define REG12 "%96,%97,%98,%99,%100,%101,%102,%103"
#define REG13 "%104,%105,%106,%107,%108,%109,%110,%111"
#define REG14 "%112,%113,%114,%115,%116,%117,%118,%119"
#define REG15 "%120,%121,%122,%123,%124,%125,%126,%127"
#define ACC(a, i)                                                                                                              \
    "+f"(a[i]), "+f"(a[i + 1]), "+f"(a[i + 2]), "+f"(a[i + 3]), "+f"(a[i + 4]), "+f"(a[i + 5]), "+f"(a[i + 6]), "+f"(a[i + 7])
#define REGS_8 REG0
#define ACCS_8(a) ACC(a, 0)
#define REGS_16 REGS_8 "," REG1
#define ACCS_16(a) ACCS_8(a), ACC(a, 8)
#define REGS_24 REGS_16 "," REG2
#define ACCS_24(a) ACCS_16(a), ACC(a, 16)
#define REGS_32 REGS_24 "," REG3
#define ACCS_32(a) ACCS_24(a), ACC(a, 24)
#define REGS_40 REGS_32 "," REG4
#define ACCS_40(a) ACCS_32(a), ACC(a, 32)
#define REGS_48 REGS_40 "," REG5
#define ACCS_48(a) ACCS_40(a), ACC(a, 40)
#define REGS_56 REGS_48 "," REG6
#define ACCS_56(a) ACCS_48(a), ACC(a, 48)
#define REGS_64 REGS_56 "," REG7
#define ACCS_64(a) ACCS_56(a), ACC(a, 56)
#define REGS_72 REGS_64 "," REG8
#define ACCS_72(a) ACCS_64(a), ACC(a, 64)
#define REGS_80 REGS_72 "," REG9
#define ACCS_80(a) ACCS_72(a), ACC(a, 72)
#define REGS_88 REGS_80 "," REG10
#define ACCS_88(a) ACCS_80(a), ACC(a, 80)
#define REGS_96 REGS_88 "," REG11
#define ACCS_96(a) ACCS_88(a), ACC(a, 88)
#define REGS_104 REGS_96 "," REG12
#define ACCS_104(a) ACCS_96(a), ACC(a, 96)
#define REGS_112 REGS_104 "," REG13
#define ACCS_112(a) ACCS_104(a), ACC(a, 104)
#define REGS_120 REGS_112 "," REG14
#define ACCS_120(a) ACCS_112(a), ACC(a, 112)
#define REGS_128 REGS_120 "," REG15
#define ACCS_128(a) ACCS_120(a), ACC(a, 120)
#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)
#define REGS(n) "{" PASTE(REGS_, n) "}"
#define ACCS(n, a) PASTE(ACCS_, n)(a)

#if K_TYPE == FP16
#define WGMMA_TYPES ".f32.f16.f16 "
#else
#define WGMMA_TYPES ".f32.bf16.bf16 "
#endif
#define WGMMA_FENCE() __asm__ volatile("//@wgmma.fence.sync.aligned;" : : : "memory")
#define WGMMA_COMMIT() __asm__ volatile("//@wgmma.commit_group.sync.aligned;" : : : "memory")
#define WGMMA_WAIT(groups) __asm__ volatile("//@wgmma.wait_group.sync.aligned " #groups ";" : : : "memory")

/* s = or += 64 rows of A by 16 columns. Both operands are in local memory, contiguous along the summed axis. */
#define WGMMA_S(s, a, b, add)                                                                                                  \
    __asm__ volatile("//@{ .reg .pred p; setp.ne.b32 p, %[more], 0; wgmma.mma_async.sync.aligned.m64n" TEXT(                   \
                         BLOCK_N) "k16" WGMMA_TYPES REGS(S_REGISTERS) ", %[left], %[right], p, 1, 1, 0, 0; }"                  \
                     : ACCS(S_REGISTERS, s)                                                                                    \
                     : [left] "l"(a), [right] "l"(b), [more] "r"((uint)(add))                                                  \
                     : "memory")

/* o = or += 64 rows of P, from registers, by 16 keys of V. */
#define WGMMA_O(o, p, n, b, add)                                                                                               \
    __asm__ volatile(                                                                                                          \
        "//@{ .reg .pred p; setp.ne.b32 p, %[more], 0; wgmma.mma_async.sync.aligned.m64n" TEXT(                                \
            O_WIDTH) "k16" WGMMA_TYPES REGS(O_REGISTERS) ", {%[p0], %[p1], %[p2], %[p3]}, %[right], p, 1, 1, 1; }"             \
        : ACCS(O_REGISTERS, o)                                                                                                 \
        : [p0] "r"(p[4 * (n)]), [p1] "r"(p[4 * (n) + 1]), [p2] "r"(p[4 * (n) + 2]), [p3] "r"(p[4 * (n) + 3]), [right] "l"(b),  \
          [more] "r"((uint)(add))                                                                                              \
        : "memory")

/* Arrives, and adds `bytes` to what the phase waits for. The phase completes after all arrivals and all announced bytes. */
FN void barrier_announce(uint at, uint bytes)
{
    __asm__ volatile("{ .reg .b64 s; mbarrier.arrive.expect_tx.shared.b64 s, [%0], %1; }" : : "r"(at), "r"(bytes) : "memory");
}
#define BARRIERS_PUBLISH() __asm__ volatile("fence.mbarrier_init.release.cluster;" : : : "memory")

/* Hardware barrier `number` between `count` work-items. named_wait arrives and waits; named_arrive only arrives. */
FN void named_wait(int number, int count) { __asm__ volatile("bar.sync %0, %1;" : : "r"(number), "r"(count) : "memory"); }
FN void named_arrive(int number, int count) { __asm__ volatile("bar.arrive %0, %1;" : : "r"(number), "r"(count) : "memory"); }

/* Makes this work-item's stores to local memory visible to wgmma and the accelerator. */
#define PUBLISH_STORES() __asm__ volatile("fence.proxy.async.shared::cta;" : : : "memory")
#define REGISTERS_FEWER(n) __asm__ volatile("//@setmaxnreg.dec.sync.aligned.u32 " TEXT(n) ";" : : : "memory")
#define REGISTERS_MORE(n) __asm__ volatile("//@setmaxnreg.inc.sync.aligned.u32 " TEXT(n) ";" : : : "memory")

/* Copies a box of the tensor described by `map` to local memory. Its first element is at column, row, head, batch. `arrived` is
 * the barrier that counts the bytes. */
FN void tensor_copy(uint to, ulong map, int col, int row, int head, int batch, uint arrived)
{
    __asm__ volatile("//@cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], "
                     "[%1, {%2, %3, %4, %5}], [%6];"
                     :
                     : "r"(to), "l"(map), "r"(col), "r"(row), "r"(head), "r"(batch), "r"(arrived)
                     : "memory");
}
/* Copies a box from local memory to the tensor, where c is not 0. Such copies of a work-item form groups, as in
 * PTX_COPY_WAIT. */
FN void tensor_store_when(int c, ulong map, uint from, int col, int row, int head, int batch)
{
    __asm__ volatile("//@{ .reg .pred p; setp.ne.s32 p, %0, 0; @p cp.async.bulk.tensor.4d.global.shared::cta.tile.bulk_group "
                     "[%1, {%3, %4, %5, %6}], [%2]; }"
                     :
                     : "r"(c), "l"(map), "r"(from), "r"(col), "r"(row), "r"(head), "r"(batch)
                     : "memory");
}
#define TENSOR_STORE_COMMIT() __asm__ volatile("//@cp.async.bulk.commit_group;" : : : "memory")
/* Waits until local memory has been read. The end of the kernel waits for the writes. */
#define TENSOR_STORE_READ() __asm__ volatile("//@cp.async.bulk.wait_group.read 0;" : : : "memory")
/* Makes a descriptor written by ordinary instructions visible to the accelerator. */
FN void tensor_map_acquire(ulong map)
{
    __asm__ volatile("//@fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" : : "l"(map) : "memory");
}
/* Writes the descriptor at `from` in local memory to `map`. Run by a whole warp. */
FN void tensor_map_store(ulong map, uint from)
{
    __asm__ volatile(
        "//@tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%0], [%1], 128;"
        :
        : "l"(map), "r"(from)
        : "memory");
}
#define MAP_FIELD "//@tensormap.replace.tile."
#define MAP_SET_64(map, field, x) __asm__ volatile(MAP_FIELD field " %1;" : : "r"(map), "l"((ulong)(x)) : "memory")
#define MAP_SET_32(map, field, x) __asm__ volatile(MAP_FIELD field " %1;" : : "r"(map), "r"((uint)(x)) : "memory")
#define MAP_SET(map, field) __asm__ volatile(MAP_FIELD field ";" : : "r"(map) : "memory")
