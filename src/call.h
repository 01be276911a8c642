/* SPDX-License-Identifier: Apache-2.0
 * The numbers and buffers of one call, brought to this library's version of the struct and checked against the plan. */
#ifndef CLATTN_CALL_H
#define CLATTN_CALL_H

#include "plan.h"

/* Checks everything before anything is launched: sizes against the plan's bounds, buffers against strides and context; and
 * chooses what serves it. If there is nothing to compute (*empty), no buffer is checked. Errors: INVALID_ARGUMENT that names
 * the field. */
clattn_status cla_call_take(clattn_plan *plan, const clattn_call *given, clattn_call *call, struct choice *choice, bool *empty,
                            clattn_error *error);

#endif
