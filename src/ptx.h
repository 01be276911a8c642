/* SPDX-License-Identifier: Apache-2.0
 * The second stage of a build on NVIDIA GPUs. What the driver returns as a program's binary is PTX text, and its front end
 * knows the plain architecture only (sm_90), whose assembler refuses that chip's own instructions (sm_90a). So such an
 * instruction stands behind a comment mark in the kernel's inline assembly; the first build passes over it, and the text is
 * then changed as below and built again. */
#ifndef CLATTN_PTX_H
#define CLATTN_PTX_H

#include "text.h"

/* What hides an instruction from the first build: a PTX comment that nobody else writes. */
#define CLA_PTX_MARK "//@"

/* The text of `ptx` for `target` ("sm_90a"): marks removed, the architecture in `.target` replaced, and `.minnctapersm 1`
 * behind every `.reqntid`, without which setmaxnreg is ignored. Pure. False, with a reason in `why`, when the bytes are no PTX
 * text or hold no mark. The caller frees `out` in either case. */
bool cla_ptx_retarget(const char *ptx, size_t size, const char *target, struct text *out, char *why, size_t why_size);

#endif
