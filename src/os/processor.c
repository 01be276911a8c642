/* SPDX-License-Identifier: Apache-2.0
 * The host's own processor, of x86 or not. */
#define _GNU_SOURCE /* syscall */
#include "os.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <cpuid.h>

/* The registers that the system saves: XCR0. */
static unsigned saved_state(void)
{
    unsigned low, high;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

unsigned cla_processor_features(void)
{
    enum {
        OSXSAVE = 1 << 27,
        AMX_TILE_AND_BF16 = 1 << 24 | 1 << 22,
        DOT_BF16 = 1 << 5,
        AVX512_STATE = 0xe6,
        TILE_STATE = 0x60000
    };
    unsigned a, b, c, d, features = 0;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & OSXSAVE))
        return 0;
    const unsigned saved = saved_state();
    if ((saved & AVX512_STATE) != AVX512_STATE || !__get_cpuid_count(7, 0, &a, &b, &c, &d))
        return 0;
    if ((saved & TILE_STATE) == TILE_STATE && (d & AMX_TILE_AND_BF16) == AMX_TILE_AND_BF16)
        features |= CLA_AMX_BF16;
    if (a >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & DOT_BF16))
        features |= CLA_AVX512_BF16;
    return features;
}
#else
unsigned cla_processor_features(void) { return 0; }
#endif

#if defined(__linux__) && defined(__x86_64__)
#include <sys/syscall.h>
#include <unistd.h>

bool cla_processor_allow_tiles(void)
{
    enum { REQUEST_STATE = 0x1023, TILE_DATA = 18 }; /* ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA: Linux 5.16 */
    return syscall(SYS_arch_prctl, REQUEST_STATE, TILE_DATA) == 0;
}
#else
bool cla_processor_allow_tiles(void) { return false; }
#endif
