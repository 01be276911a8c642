/* SPDX-License-Identifier: Apache-2.0
 * Which strides of Q, K, V and O a call may have on a plan that was made for others. */
#ifndef CLATTN_STRIDES_H
#define CLATTN_STRIDES_H

#include "status.h"

/* Whether kernels that were chosen for a tensor of the plan's problem serve `given`, its strides in a call. Engines choose
 * loads by three properties, whatever the stride's size: which axis has stride 1, how the others are aligned, and that they are
 * positive. If not, *axis names the stride that lacks one, and *multiple is the alignment it needs, or 0. */
bool cla_strides_serve(const clattn_problem *problem, const clattn_tensor *tensor, const clattn_strides *given,
                       const char **axis, int64_t *multiple);

#endif
