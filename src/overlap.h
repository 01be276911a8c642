/* SPDX-License-Identifier: Apache-2.0
 * Whether two tensors of a call share an element. */
#ifndef CLATTN_OVERLAP_H
#define CLATTN_OVERLAP_H

#include "buffer.h"

/* Exact for dense tensors, for tensors that alternate in one buffer, and for slabs with other data in between. False if the
 * answer would take too long. cl_mem handles are compared, so two sub-buffers of one buffer do not count as overlapping. Both
 * tensors have passed cla_check_tensor. */
bool cla_tensors_overlap(const struct tensor_check *a, const struct tensor_check *b);

#endif
