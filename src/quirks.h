/* SPDX-License-Identifier: Apache-2.0
 * Known quirks of implementations: one table for the choices that depend on them, for `clattn info`, and for
 * docs/portability.md, which a test compares with it. */
#ifndef CLATTN_QUIRKS_H
#define CLATTN_QUIRKS_H

#include "facts.h"

/* X(name, condition on the facts `f`, the quirk and its consequence). */
#define CLA_QUIRKS(X)                                                                                                          \
    X(SMALL_BUFFERS, cla_has_part(f->platform_version, "PoCL 3."),                                                             \
      "PoCL 3 refuses a single buffer over 4 GiB, whatever its limit says")                                                    \
    X(COMPILES_AT_LAUNCH, cla_facts_is_pocl(f),                                                                                \
      "PoCL compiles again at a kernel's first launch: the first call of a plan is slow")                                      \
    X(ALIGNED_SUB_BUFFERS, cla_facts_is_pocl(f), "PoCL refuses sub-buffers whose origin is not aligned")                       \
    X(WRONG_VECTORS, cla_has_part(f->platform_name, "oclgrind"),                                                               \
      "oclgrind interprets vector code wrongly: kernels are built with -cl-opt-disable, and the CPU engines decline")          \
    X(IGNORES_LINES, cla_has_part(f->platform_name, "oclgrind") || cla_has_part(f->platform_name, "NVIDIA"),                   \
      "#line is ignored here: build messages are translated back to their file and line")                                      \
    X(NO_FMA_LINK, cla_has_part(f->platform_name, "rusticl"), "rusticl does not link fma(): kernels say mad()")                \
    X(LOADS_BOTH_WAYS, cla_has_part(f->platform_name, "rusticl"),                                                              \
      "rusticl makes the loads of both branches where a number of the call decides: kernels choose addresses instead")         \
    X(SLOW_DEVICE, cla_has_part(f->device_name, "llvmpipe"), "llvmpipe runs below 1 GFLOP/s: keep to small shapes")            \
    X(STATIC_LOCAL, cla_has_part(f->platform_name, "NVIDIA"),                                                                  \
      "NVIDIA allows local arrays in kernel source past local_mem (see local_mem_static), but no such argument")               \
    X(NO_X86_ASSEMBLY, cla_facts_is_intel_runtime(f) && f->device_kind == DEVICE_CPU,                                          \
      "Intel's CPU runtime compiles slowly, and refuses x86 inline assembly")                                                  \
    X(SLOW_BF16_PAIRS, f->x86_bf16 &&cla_has_part(f->device_name, "Intel"),                                                    \
      "on Intel's processors the AVX512-BF16 instruction is slower than two of fp32: cpu_bf16 declines")                       \
    X(GROUPS_OF_ONE, cla_has_part(f->platform_name, "Apple") && f->device_kind == DEVICE_CPU,                                  \
      "Apple's CPU device runs kernels with a barrier in work-groups of 1 only")                                               \
    X(NO_FMA, !f->fma && !cla_has_part(f->platform_name, "rusticl"), "no fused multiply-add is reported: kernels say mad()")   \
    X(NARROW_GROUPS, f->max_work_item_0 < f->max_work_group,                                                                   \
      "work-groups are limited by their first dimension (max_work_item_0), below max_work_group")

enum cla_quirk {
#define CLA_QUIRK_NAME(name, condition, text) QUIRK_##name,
    CLA_QUIRKS(CLA_QUIRK_NAME)
#undef CLA_QUIRK_NAME
        CLA_QUIRK_COUNT
};

bool cla_has_quirk(const struct facts *facts, enum cla_quirk quirk);
const char *cla_quirk_text(enum cla_quirk quirk);

/* Whether `text` contains `part`, ignoring case. */
bool cla_has_part(const char *text, const char *part);

#endif
