/* SPDX-License-Identifier: Apache-2.0
 * simt: code that both kinds of its tiles share. Unrolling of loops over registers, NVIDIA's instructions, the matrices of a
 * tile.
 */
#define LANES 1
#if defined(NVIDIA_PTX) && defined(__NV_CL_C_VERSION)
#define WARP_ASM
#if NVIDIA_PTX >= 80
#define COPY_ASM
#endif
/* exp2() spends four more instructions on results below 2^-126, which do not change any sum. */
FN float exp2_ptx(float x)
{
    float y;
    __asm__("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
#define EXP2(x) exp2_ptx(x)
#else
#define EXP2(x) exp2(x)
#endif
/* Loops over register arrays are unrolled, so that indices are constants. A CPU has no such arrays, and its compiler would take
 * seconds for the unrolled code. */
#ifdef KEEP_LOOPS
#define UNROLL_REGISTERS
#define UNROLL_STEPS
#define UNROLL_QUADS
#define UNROLL_LOADS
#define ROLLED
#define UNROLL_BANDS
#else
#define UNROLL_REGISTERS UNROLL
#ifdef FEW_REGISTERS
#define UNROLL_STEPS _Pragma("unroll 1")
#else
#define UNROLL_STEPS _Pragma("unroll 8")
#endif
#define UNROLL_QUADS _Pragma("unroll 4")
#define UNROLL_LOADS _Pragma("unroll 8")
#define ROLLED _Pragma("unroll 1")
/* Loads through registers need several in flight at once. Copies without registers do not. */
#ifdef COPY_ASM
#define UNROLL_BANDS ROLLED
#else
#define UNROLL_BANDS _Pragma("unroll 2")
#endif
#endif
/* One instruction. Like the comparison used on CPUs, it ignores a NaN in `b`. */
#ifndef KEEP_LOOPS
#define LARGER(a, b) fmax(a, b)
#endif
#include "cl/elem.cl"
#if defined(MERGE_INSIDE) && defined(__NV_CL_C_VERSION)
#include "cl/engines/nvidia/nv_groups.cl"
#endif

/* Q, K or V of one tile. Element (row, col) is at `at` + row * row_step + col * col_step. */
typedef struct {
    __global const void *data;
    long at, row_step, col_step;
    long head_step; /* rows are queries of `pack` adjacent heads, as in cl/tile.cl */
    int pack;
    int aligned; /* loads of 16 bytes, or of four elements, are aligned */
} matrix;

FN long matrix_row(const matrix *m, int row)
{
    return m->at + (m->pack == 1 ? row * m->row_step : row / m->pack * m->row_step + row % m->pack * m->head_step);
}

#ifdef WARP_ASM
FN float from_neighbour(float x, int distance)
{
    float y;
    __asm__ volatile("shfl.sync.bfly.b32 %0, %1, %2, 0x1f, 0xffffffff;" : "=f"(y) : "f"(x), "r"(distance));
    return y;
}
#endif
