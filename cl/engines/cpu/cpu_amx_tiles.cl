/* SPDX-License-Identifier: Apache-2.0
 * The tile registers: configuration, loads, stores, products. Included once, by cl/engines/cpu/cpu_amx.cl.
 *
 * The compiler does not know that these statements use tmm0 ... tmm7, and no other code in a kernel uses them. Addresses are
 * numbers, for private and global memory alike. The memory clobber covers what is read and written through them.
 */
#define TILE_LOAD(tile, address, step) __asm__ volatile("tileloadd (%0,%1,1), %%" tile : : "r"(address), "r"(step) : "memory")
#define TILE_STORE(tile, address, step)                                                                                        \
    __asm__ volatile("tilestored %%" tile ", (%0,%1,1)" : : "r"(address), "r"(step) : "memory")
#define TILE_ZERO_SUMS                                                                                                         \
    __asm__ volatile("tilezero %%tmm0\n\ttilezero %%tmm1\n\ttilezero %%tmm2\n\ttilezero %%tmm3" : : : "memory");
/* Sums of the first A with both B, then of the second A with both B. */
#define TILE_PRODUCTS                                                                                                          \
    __asm__ volatile("tdpbf16ps %%tmm6, %%tmm4, %%tmm0\n\ttdpbf16ps %%tmm7, %%tmm4, %%tmm1\n\t"                                \
                     "tdpbf16ps %%tmm6, %%tmm5, %%tmm2\n\ttdpbf16ps %%tmm7, %%tmm5, %%tmm3"                                    \
                     :                                                                                                         \
                     :                                                                                                         \
                     : "memory");

/* All eight tiles have 16 rows of 64 bytes. */
FN void amx_begin(void)
{
    const uint16 shape =
        (uint16)(1, 0, 0, 0, 0x00400040, 0x00400040, 0x00400040, 0x00400040, 0, 0, 0, 0, 0x10101010, 0x10101010, 0, 0);
    __asm__ volatile("ldtilecfg %0" : : "m"(shape) : "memory");
}
/* A thread that keeps tiles in use slows down the other threads of its processor. */
FN void amx_end(void) { __asm__ volatile("tilerelease" : : : "memory"); }
