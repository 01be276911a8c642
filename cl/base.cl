/* SPDX-License-Identifier: Apache-2.0
 * Every kernel source begins with this file: the declaration of functions, loads and stores of storage types, constants. Needs
 * Q_TYPE, K_TYPE, V_TYPE and O_TYPE (numbers of clattn_type), HEAD_DIM and HEAD_DIM_V.
 */

/* OpenCL C 1.1 refuses `static` functions. From 1.2 on, plain `inline` has its C99 meaning and would leave them undefined. */
#if defined(__OPENCL_C_VERSION__) && __OPENCL_C_VERSION__ >= 120
#define FN static inline __attribute__((always_inline))
#else
#define FN __attribute__((always_inline))
#endif

#define UNROLL _Pragma("unroll")

#define LOG2_E 1.44269504088896340736f
#define LN_2 0.69314718055994530942f
#define LARGEST 3.402823466e+38f

/* fma() is slow without hardware support, and one implementation cannot link it. So it is used only where CL_FP_FMA is
 * reported. */
#ifdef HAS_FMA
#define MULTIPLY_ADD(a, b, c) fma(a, b, c)
#else
#define MULTIPLY_ADD(a, b, c) mad(a, b, c)
#endif

/* Storage types, as in clattn_type. */
#define FP32 1
#define FP16 2
#define BF16 3

/* Offsets are `long` element counts everywhere: tensors with more than 2^31 elements are common. */
FN float load_fp32(__global const void *p, long i) { return ((__global const float *)p)[i]; }
FN float load_fp16(__global const void *p, long i) { return vload_half((size_t)i, (__global const half *)p); }
FN float load_bf16(__global const void *p, long i) { return as_float((uint)((__global const ushort *)p)[i] << 16); }

#ifdef LOADS_EVERY_WAY
/* One compiler executes the loads of all branches and then selects. A load of a wider type would read past the end of the
 * buffer. So each value is composed of loads that are valid for every type. */
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
/* Rounds to nearest even. A NaN keeps its sign and gets the quiet bit, since rounding its payload up could give infinity. */
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
