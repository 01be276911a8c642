/* SPDX-License-Identifier: Apache-2.0
 * The second stage of a build on NVIDIA GPUs. The driver returns PTX as a program's binary. Its compiler targets only the
 * plain architecture (sm_90), for which the assembler refuses chip-specific instructions (sm_90a). So the kernel's inline
 * assembly has such an instruction after a comment mark, the first build skips it, and the PTX is then changed as below and
 * built again. */
#ifndef CLATTN_PTX_H
#define CLATTN_PTX_H

#include "text.h"

/* The mark that excludes an instruction from the first build: a PTX comment that no compiler emits. */
#define CLA_PTX_MARK "//@"

/* Converts `ptx` for `target` ("sm_90a"): removes the marks, replaces the architecture in `.target`, and adds `.minnctapersm
 * 1` after every `.reqntid`, without which setmaxnreg is ignored. Pure. False, with a reason in `why`, if the bytes are not
 * PTX or have no mark. The caller frees `out` in either case. */
bool cla_ptx_retarget(const char *ptx, size_t size, const char *target, struct text *out, char *why, size_t why_size);

#endif
