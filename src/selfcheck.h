/* SPDX-License-Identifier: Apache-2.0
 * The self-check: an engine that goes past the OpenCL standard is used only after it computed correctly on the same device and
 * driver. */
#ifndef CLATTN_SELFCHECK_H
#define CLATTN_SELFCHECK_H

#include "plan.h"

/* A judge of plans (src/plan.h) that accepts portable engines without a check; with CLATTN_SELFCHECK=off it accepts all
 * engines, with "all" only `reference`. It runs a few tiny problems (grouped heads, odd lengths, a diagonal, a shorter
 * sequence with NaN past its end, a mask if the kernel source has masks) with the plan's kernels and compares them with the
 * host. The verdict on a program is stored in the context and in the cache. *right false with SUCCESS: `why` says what was
 * wrong. Errors: OUT_OF_HOST_MEMORY, OPENCL. */
clattn_status cla_selfcheck(clattn_plan *plan, cl_program program, bool *right, char *why, size_t why_size,
                            clattn_error *error);

#endif
