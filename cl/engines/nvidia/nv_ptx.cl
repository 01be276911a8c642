/* SPDX-License-Identifier: Apache-2.0
 * Instructions of NVIDIA GPUs that OpenCL C lacks, as inline PTX. Included by the engines nv_mma and nv_wgmma only.
 *
 * A `__local` pointer cast to a number is the address that these instructions take. A literal % is written %% in an asm
 * string.
 */
FN uint local_address(__local const void *p) { return (uint)(size_t)p; }

/* Keeps the compiler from knowing the value of x. So it computes rarely used values that depend on x where they are used, and
 * does not hoist them out of the loop, where they would occupy registers. */
FN int ptx_here(int x)
{
    __asm__ volatile("" : "+r"(x));
    return x;
}

/* exp2() spends four more instructions on results below 2^-126, which do not change any sum. 0 for -inf, NaN for NaN. */
FN float ptx_exp2(float x)
{
    float y;
    __asm__("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/* A rounded product: no compiler contracts it into a multiply-add. */
FN float ptx_product(float x, float y)
{
    float z;
    __asm__("mul.rn.f32 %0, %1, %2;" : "=f"(z) : "f"(x), "f"(y));
    return z;
}

/* Clamps to -limit ... limit. NaN passes through. */
FN float ptx_clamp(float x, float limit)
{
    float y;
    __asm__("{ .reg .f32 t; min.NaN.f32 t, %1, %2; max.NaN.f32 %0, t, %3; }" : "=f"(y) : "f"(x), "f"(limit), "f"(-limit));
    return y;
}

/* The larger of x and -limit. NaN passes through. */
FN float ptx_clamp_below(float x, float limit)
{
    float y;
    __asm__("max.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(x), "f"(-limit));
    return y;
}

/* x of the work-item whose number in the warp differs in exactly the bits of `bits`. */
FN float ptx_neighbour(float x, int bits)
{
    float y;
    __asm__ volatile("shfl.sync.bfly.b32 %0, %1, %2, 0x1f, 0xffffffff;" : "=f"(y) : "f"(x), "r"(bits));
    return y;
}

/* x, equal in all work-items of the warp. This tells the assembler so: values that depend on x stay in uniform registers, where
 * products need their addresses. */
FN int ptx_uniform(int x)
{
    int y;
    __asm__ volatile("shfl.sync.idx.b32 %0, %1, 0, 0x1f, 0xffffffff;" : "=r"(y) : "r"(x));
    return y;
}

/* One bit for each work-item of the warp. */
FN uint ptx_ballot(int c)
{
    uint y;
    __asm__ volatile("{ .reg .pred p; setp.ne.s32 p, %1, 0; vote.sync.ballot.b32 %0, p, 0xffffffff; }" : "=r"(y) : "r"(c));
    return y;
}

FN uint ptx_neighbour_word(uint x, int bits) { return as_uint(ptx_neighbour(as_float(x), bits)); }

/* x of work-item `item` of the four with the same number / 4. */
FN uint ptx_word_of_four(uint x, int item)
{
    uint y;
    __asm__ volatile("shfl.sync.idx.b32 %0, %1, %2, 0x1c1f, 0xffffffff;" : "=r"(y) : "r"(x), "r"(item));
    return y;
}
/* x of work-item `item` of the warp. */
FN uint ptx_word_of(uint x, int item)
{
    uint y;
    __asm__ volatile("shfl.sync.idx.b32 %0, %1, %2, 0x1f, 0xffffffff;" : "=r"(y) : "r"(x), "r"(item));
    return y;
}

/* Two floats as 16-bit floats, rounded to nearest even. `low` goes into the low half, as the column before `high`. */
FN uint ptx_pack_fp16(float low, float high)
{
    uint y;
    __asm__("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(high), "f"(low));
    return y;
}
FN uint ptx_pack_bf16(float low, float high)
{
    uint y;
    __asm__("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(high), "f"(low));
    return y;
}
/* To the storage type of K and V. */
#if K_TYPE == FP16
#define ptx_pack(low, high) ptx_pack_fp16(low, high)
#else
#define ptx_pack(low, high) ptx_pack_bf16(low, high)
#endif

FN void ptx_unpack_fp16(uint y, float *x)
{
    __asm__("{ .reg .b16 low, high; mov.b32 {low, high}, %2; cvt.f32.f16 %0, low; cvt.f32.f16 %1, high; }"
            : "=f"(x[0]), "=f"(x[1])
            : "r"(y));
}

/* Stores without a branch, where c is not 0. ptx_store_half_when stores the low half of its word. */
FN void ptx_store_when(int c, __global uint4 *to, uint4 x)
{
    __asm__ volatile("{ .reg .pred p; setp.ne.s32 p, %0, 0; @p st.global.v4.b32 [%1], {%2, %3, %4, %5}; }"
                     :
                     : "r"(c), "l"(to), "r"(x.x), "r"(x.y), "r"(x.z), "r"(x.w)
                     : "memory");
}
FN void ptx_store_float_when(int c, __global float *to, float x)
{
    __asm__ volatile("{ .reg .pred p; setp.ne.s32 p, %0, 0; @p st.global.f32 [%1], %2; }"
                     :
                     : "r"(c), "l"(to), "f"(x)
                     : "memory");
}
FN void ptx_store_half_when(int c, __global ushort *to, uint x)
{
    __asm__ volatile("{ .reg .pred p; .reg .b16 h; setp.ne.s32 p, %0, 0; cvt.u16.u32 h, %2; @p st.global.b16 [%1], h; }"
                     :
                     : "r"(c), "l"(to), "r"(x)
                     : "memory");
}

/* Copies 16 bytes to local memory without a register: the first `bytes` of them from `from`, then zeros. */
FN void ptx_copy(uint to, __global const void *from, uint bytes)
{
    __asm__ volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" : : "r"(to), "l"(from), "r"(bytes) : "memory");
}
/* The same for data read once: it is requested in lines of 128 bytes and evicted first from the second-level cache. */
FN void ptx_copy_once(uint to, __global const void *from, uint bytes)
{
    ulong policy;
    __asm__("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    __asm__ volatile("cp.async.cg.shared.global.L2::cache_hint.L2::128B [%0], [%1], 16, %2, %3;"
                     :
                     : "r"(to), "l"(from), "r"(bytes), "l"(policy)
                     : "memory");
}
#define PTX_COPY_COMMIT() __asm__ volatile("cp.async.commit_group;" : : : "memory")
/* Memory accesses of each work-item of the warp are visible to the others after this. */
#define PTX_WARP_TOGETHER() __asm__ volatile("bar.warp.sync 0xffffffff;" : : : "memory")
/* Waits until at most `groups` of this work-item's committed groups are in flight. */
#define PTX_COPY_WAIT(groups) __asm__ volatile("cp.async.wait_group %0;" : : "n"(groups) : "memory")

FN void ptx_store(uint to, uint4 x)
{
    __asm__ volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" : : "r"(to), "r"(x.x), "r"(x.y), "r"(x.z), "r"(x.w) : "memory");
}

FN void ptx_store_local_when(int c, uint to, uint4 x)
{
    __asm__ volatile("{ .reg .pred p; setp.ne.s32 p, %0, 0; @p st.shared.v4.b32 [%1], {%2, %3, %4, %5}; }"
                     :
                     : "r"(c), "r"(to), "r"(x.x), "r"(x.y), "r"(x.z), "r"(x.w)
                     : "memory");
}

FN void ptx_store_word(uint to, uint x) { __asm__ volatile("st.shared.b32 [%0], %1;" : : "r"(to), "r"(x) : "memory"); }
/* The low half of x. */
FN void ptx_store_half(uint to, uint x)
{
    __asm__ volatile("{ .reg .b16 h; cvt.u16.u32 h, %1; st.shared.b16 [%0], h; }" : : "r"(to), "r"(x) : "memory");
}
/* A 64-bit counter in global memory that groups share. Reads it; sets it to `x` if it equals `found`; adds one and returns the
 * old value. */
FN ulong ptx_load_word_pair(ulong at)
{
    ulong x;
    __asm__ volatile("ld.relaxed.gpu.global.b64 %0, [%1];" : "=l"(x) : "l"(at) : "memory");
    return x;
}
FN void ptx_swap_if(ulong at, ulong found, ulong x)
{
    __asm__ volatile("{ .reg .b64 t; atom.relaxed.gpu.global.cas.b64 t, [%0], %1, %2; }"
                     :
                     : "l"(at), "l"(found), "l"(x)
                     : "memory");
}
FN ulong ptx_count(ulong at)
{
    ulong x;
    __asm__ volatile("atom.relaxed.gpu.global.add.u64 %0, [%1], 1;" : "=l"(x) : "l"(at) : "memory");
    return x;
}
/* Loads one word, and four words. */
FN uint ptx_load(uint from)
{
    uint x;
    __asm__ volatile("ld.shared.b32 %0, [%1];" : "=r"(x) : "r"(from) : "memory");
    return x;
}
FN uint4 ptx_load_four(uint from)
{
    uint4 x;
    __asm__ volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
                     : "r"(from)
                     : "memory");
    return x;
}

/* Loads four matrices of 8 x 8 16-bit elements. Work-item i passes the address of row i % 8 of matrix i / 8. */
FN void ptx_load_matrices(uint *x, uint from)
{
    __asm__ volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                     : "r"(from)
                     : "memory");
}
FN void ptx_load_matrices_transposed(uint *x, uint from)
{
    __asm__ volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                     : "r"(from)
                     : "memory");
}

/* d += a b: 16 x 16 by 16 x 8. Work-item i holds rows i / 4 (d[0], d[1]) and i / 4 + 8 (d[2], d[3]) of d, columns i % 4 * 2 and
 * the next. */
#if K_TYPE == FP16
#define PTX_MMA "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
#else
#define PTX_MMA "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"
#endif
FN void ptx_mma(float *d, const uint *a, uint b0, uint b1)
{
    __asm__(PTX_MMA " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
            : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/* The same with depth 8. Only the upper 19 bits of a and b count. */
FN void ptx_mma_tf32(float *d, const uint *a, uint b0, uint b1)
{
    __asm__("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
            : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
