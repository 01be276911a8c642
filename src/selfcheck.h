/* SPDX-License-Identifier: Apache-2.0
 * Trust, but verify: an engine that goes past the OpenCL standard is believed only after it was right on the very device and
 * driver that it is to run on. */
#ifndef CLATTN_SELFCHECK_H
#define CLATTN_SELFCHECK_H

#include "plan.h"

/* A judge of plans (src/plan.h) that believes portable engines unseen, all of them with CLATTN_SELFCHECK=off and none but
 * `reference` with "all". It runs a few tiny problems (grouped heads, odd lengths, a diagonal, a shorter sequence with NaN
 * behind its end, a mask where the text knows masks) with the plan's kernels and computes them on the host. The verdict on a
 * program is kept in the context and in the cache. *right false with SUCCESS: `why` says what was wrong. Errors:
 * OUT_OF_HOST_MEMORY, OPENCL. */
clattn_status cla_selfcheck(clattn_plan *plan, cl_program program, bool *right, char *why, size_t why_size,
                            clattn_error *error);

#endif
