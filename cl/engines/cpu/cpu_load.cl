/* SPDX-License-Identifier: Apache-2.0
 * Whole vectors of the storage types, for the cpu engines. Included once, by an engine that defined WIDTH, the number of
 * elements of a vector.
 */
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)

typedef JOIN(float, WIDTH) wide;

/* Whether the compiler can widen fp16 with the processor's own instruction. */
#if defined(__F16C__) && defined(__has_builtin)
#if __has_builtin(__builtin_convertvector)
#define HALF_VECTORS
#endif
#endif

#define as_wide(x) JOIN(as_float, WIDTH)(x)

/* Loads WIDTH elements from element `i` on, with no alignment but the element's. */
FN wide load_fp32_vector(__global const void *p, long i) { return JOIN(vload, WIDTH)(0, (__global const float *)p + i); }
#ifdef HALF_VECTORS
/* One instruction, at any alignment. PoCL's vload_half16 takes three. */
typedef half half_vector __attribute__((ext_vector_type(WIDTH), aligned(2)));
FN wide load_fp16_vector(__global const void *p, long i)
{
    return __builtin_convertvector(*(__global const half_vector *)((__global const half *)p + i), wide);
}
#else
FN wide load_fp16_vector(__global const void *p, long i) { return JOIN(vload_half, WIDTH)(0, (__global const half *)p + i); }
#endif
FN wide load_bf16_vector(__global const void *p, long i)
{
    return as_wide(JOIN(convert_uint, WIDTH)(JOIN(vload, WIDTH)(0, (__global const ushort *)p + i)) << 16);
}
FN void store_fp32_vector(wide x, __global void *p, long i) { JOIN(vstore, WIDTH)(x, 0, (__global float *)p + i); }
FN void store_fp16_vector(wide x, __global void *p, long i)
{
    JOIN(JOIN(vstore_half, WIDTH), _rte)(x, 0, (__global half *)p + i);
}
/* As bf16_of in cl/base.cl. */
FN void store_bf16_vector(wide x, __global void *p, long i)
{
    const JOIN(uint, WIDTH) u = JOIN(as_uint, WIDTH)(x);
    const JOIN(uint, WIDTH) bits =
        select((u + 0x7fffu + ((u >> 16) & 1u)) >> 16, (u >> 16) | 0x40u, (u & 0x7fffffffu) > 0x7f800000u);
    JOIN(vstore, WIDTH)(JOIN(convert_ushort, WIDTH)(bits), 0, (__global ushort *)p + i);
}

/* LOAD_K_VECTOR is load_fp32_vector where LOAD_K is load_fp32, and so on. */
#define LOAD_Q_VECTOR JOIN(LOAD_Q, _vector)
#define LOAD_K_VECTOR JOIN(LOAD_K, _vector)
#define LOAD_V_VECTOR JOIN(LOAD_V, _vector)
#define STORE_O_VECTOR JOIN(STORE_O, _vector)

/* The compiler's own prefetch, into the second-level cache. */
#if defined(HAS_PREFETCH) && defined(__has_builtin)
#if __has_builtin(__builtin_prefetch)
#define PREFETCH(p) __builtin_prefetch((const void *)(size_t)(p), 0, 2)
#endif
#endif
#ifndef PREFETCH
#define PREFETCH(p) (void)(p)
#endif

/* Bytes of a cache line on nearly all CPUs. A wrong value only costs time. */
#define LINE_BYTES 64

/* `row` is the address of the first element, `bytes` a constant. */
FN void prefetch_row(__global const char *row, const int bytes)
{
    for (int i = 0; i < bytes; i += LINE_BYTES) {
        PREFETCH(row + i);
    }
}
