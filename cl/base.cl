/* SPDX-License-Identifier: Apache-2.0
 * What every kernel text begins with: how functions are declared, how storage types are read and written, and constants.
 * Needs Q_TYPE, K_TYPE, V_TYPE and O_TYPE (numbers of clattn_type), HEAD_DIM and HEAD_DIM_V.
 */

/* OpenCL C 1.1 refuses `static` functions; from 1.2 on, plain `inline` has C99 meaning and would leave them undefined. */
#if defined(__OPENCL_C_VERSION__) && __OPENCL_C_VERSION__ >= 120
#define FN static inline __attribute__((always_inline))
#else
#define FN __attribute__((always_inline))
#endif

#define UNROLL _Pragma("unroll")

#define LOG2_E 1.44269504088896340736f
#define LN_2 0.69314718055994530942f
#define LARGEST 3.402823466e+38f

/* fma() is slow without hardware and does not even link on one implementation, so it is used where CL_FP_FMA is reported only.
 */
#ifdef HAS_FMA
#define MULTIPLY_ADD(a, b, c) fma(a, b, c)
#else
#define MULTIPLY_ADD(a, b, c) mad(a, b, c)
#endif

/* Storage types, as in clattn_type. */
#define FP32 1
#define FP16 2
#define BF16 3

/* Offsets are `long` elements everywhere: tensors past 2^31 elements are ordinary. */
FN float load_fp32(__global const void *p, long i) { return ((__global const float *)p)[i]; }
FN float load_fp16(__global const void *p, long i) { return vload_half((size_t)i, (__global const half *)p); }
FN float load_bf16(__global const void *p, long i) { return as_float((uint)((__global const ushort *)p)[i] << 16); }

#ifdef LOADS_EVERY_WAY
/* One compiler makes the loads of all branches and chooses then; that of a wider type would lie past the end of the buffer. So
 * each is made of loads that are there whatever the type. */
FN float load_any(int type, __global const void *p, long i)
{
    __global const ushort *u = (__global const ushort *)p + (type == FP32 ? 2 * i : i);
    const uint low = u[0], high = u[type == FP32];
    const float narrow = type == FP16 ? vload_half(0, (__global const half *)u) : as_float(low << 16);
    return type == FP32 ? as_float(low | high << 16) : narrow;
}
#else
FN float load_any(int type, __global const void *p, long i)
{
    return type == FP32 ? load_fp32(p, i) : type == FP16 ? load_fp16(p, i) : load_bf16(p, i);
}
#endif

FN void store_fp32(float x, __global void *p, long i) { ((__global float *)p)[i] = x; }
FN void store_fp16(float x, __global void *p, long i) { vstore_half_rte(x, (size_t)i, (__global half *)p); }
/* To nearest even. A NaN keeps its sign and gets a set quiet bit, since rounding up its payload could turn it into infinity. */
FN ushort bf16_of(float x)
{
    const uint u = as_uint(x);
    return (ushort)(((u & 0x7fffffffu) > 0x7f800000u) ? ((u >> 16) | 0x40u) : ((u + 0x7fffu + ((u >> 16) & 1u)) >> 16));
}
FN void store_bf16(float x, __global void *p, long i) { ((__global ushort *)p)[i] = bf16_of(x); }

#if Q_TYPE == FP32
#define LOAD_Q load_fp32
#elif Q_TYPE == FP16
#define LOAD_Q load_fp16
#else
#define LOAD_Q load_bf16
#endif
#if K_TYPE == FP32
#define LOAD_K load_fp32
#elif K_TYPE == FP16
#define LOAD_K load_fp16
#else
#define LOAD_K load_bf16
#endif
#if V_TYPE == FP32
#define LOAD_V load_fp32
#elif V_TYPE == FP16
#define LOAD_V load_fp16
#else
#define LOAD_V load_bf16
#endif
#if O_TYPE == FP32
#define STORE_O store_fp32
#elif O_TYPE == FP16
#define STORE_O store_fp16
#else
#define STORE_O store_bf16
#endif
