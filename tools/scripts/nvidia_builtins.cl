/* SPDX-License-Identifier: Apache-2.0
 * The built-in functions that kernels use, for clang's NVPTX back end, which has no OpenCL library. Only for the inspection of
 * registers and spills offline (tools/scripts/nvidia_offline.sh): what runs is built by the driver.
 */
#define BUILTIN static inline __attribute__((overloadable, always_inline))

BUILTIN size_t get_local_id(uint d) { return d ? 0 : __nvvm_read_ptx_sreg_tid_x(); }
BUILTIN size_t get_group_id(uint d) { return d ? 0 : __nvvm_read_ptx_sreg_ctaid_x(); }
BUILTIN size_t get_num_groups(uint d) { return d ? 1 : __nvvm_read_ptx_sreg_nctaid_x(); }
BUILTIN size_t get_local_size(uint d) { return d ? 1 : __nvvm_read_ptx_sreg_ntid_x(); }
BUILTIN size_t get_global_id(uint d) { return get_group_id(d) * get_local_size(d) + get_local_id(d); }
#define barrier(flags) __syncthreads()

#define MIN_MAX(type)                                                                                                          \
    BUILTIN type min(type a, type b) { return b < a ? b : a; }                                                                 \
    BUILTIN type max(type a, type b) { return a < b ? b : a; }                                                                 \
    BUILTIN type clamp(type x, type a, type b) { return min(max(x, a), b); }
MIN_MAX(int)
MIN_MAX(uint)
MIN_MAX(long)
BUILTIN float fmax(float a, float b) { return __nvvm_fmax_f(a, b); }
BUILTIN float fmin(float a, float b) { return __nvvm_fmin_f(a, b); }
BUILTIN float clamp(float x, float a, float b) { return fmin(fmax(x, a), b); }
BUILTIN float fabs(float x) { return __nvvm_fabs_f(x); }
BUILTIN int clz(uint x) { return __builtin_clz(x); }
BUILTIN float fma(float a, float b, float c) { return __nvvm_fma_rn_f(a, b, c); }
BUILTIN float mad(float a, float b, float c) { return a * b + c; }
BUILTIN float select(float a, float b, int c) { return c ? b : a; }
BUILTIN int select(int a, int b, int c) { return c ? b : a; }
BUILTIN float convert_float(int x) { return (float)x; }
BUILTIN float exp2(float x) { return __nvvm_ex2_approx_f(x); }
BUILTIN float log2(float x) { return __nvvm_lg2_approx_f(x); }
BUILTIN float tanh(float x) { return 1.0f - 2.0f / (1.0f + __nvvm_ex2_approx_f(x * 2.88539008f)); }
#define as_int(x) __builtin_astype((x), int)
#define as_uint(x) __builtin_astype((x), uint)
#define as_float(x) __builtin_astype((x), float)

BUILTIN uchar16 vload16(size_t i, const __global uchar *p)
{
    uchar16 y;
    for (int j = 0; j < 16; j++) {
        y[j] = p[i * 16 + j];
    }
    return y;
}
BUILTIN float vload_half(size_t i, const __global half *p)
{
    float y;
    __asm__("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(((const __global ushort *)p)[i]));
    return y;
}
BUILTIN void vstore_half_rte(float x, size_t i, __global half *p)
{
    ushort y;
    __asm__("cvt.rn.f16.f32 %0, %1;" : "=h"(y) : "f"(x));
    ((__global ushort *)p)[i] = y;
}
BUILTIN int atomic_inc(volatile __global int *p)
{
    int y;
    __asm__ volatile("atom.global.add.s32 %0, [%1], 1;" : "=r"(y) : "l"(p) : "memory");
    return y;
}
BUILTIN int atomic_or(volatile __local int *p, int x)
{
    int y;
    __asm__ volatile("atom.shared.or.b32 %0, [%1], %2;" : "=r"(y) : "r"((uint)(size_t)p), "r"(x) : "memory");
    return y;
}
