/* SPDX-License-Identifier: Apache-2.0
 * Whether two tensors of a call share an element. */
#ifndef CLATTN_OVERLAP_H
#define CLATTN_OVERLAP_H

#include "buffer.h"

/* Exact for dense tensors, for tensors that alternate in one buffer, and for slabs between which others lie. Where the answer
 * would take too long, false. Handles of cl_mem are compared, so two sub-buffers of one buffer count as apart. Both tensors
 * passed cla_check_tensor. */
bool cla_tensors_overlap(const struct tensor_check *a, const struct tensor_check *b);

#endif
