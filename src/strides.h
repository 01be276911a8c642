/* SPDX-License-Identifier: Apache-2.0
 * Which strides of Q, K, V and O a call may use on a plan made for other strides. */
#ifndef CLATTN_STRIDES_H
#define CLATTN_STRIDES_H

#include "status.h"

/* Whether kernels chosen for a tensor of the plan's problem can serve `given`, its strides in a call. Engines choose loads by
 * three properties of strides, not by their size: which axis has stride 1, how the others are aligned, and that they are
 * positive. If one does not hold, *axis names the stride, and *multiple is the alignment that it needs, or 0. */
bool cla_strides_serve(const clattn_problem *problem, const clattn_tensor *tensor, const clattn_strides *given,
                       const char **axis, int64_t *multiple);

#endif
