/* SPDX-License-Identifier: Apache-2.0
 * Named ways to lay tensors out in memory, from plain ones to views with gaps, mirrored axes and shared heads. */
#ifndef CLATTN_TOOLS_LAYOUT_H
#define CLATTN_TOOLS_LAYOUT_H

#include "clattn/clattn.h"

/* Sets the strides of q, k, v and o for the sizes in the problem. False: there is no layout of that name. */
bool layout_apply(const char *name, clattn_problem *problem);

/* The names, from 0 on; NULL after the last. */
const char *layout_name(size_t index);

#endif
