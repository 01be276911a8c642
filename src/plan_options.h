/* SPDX-License-Identifier: Apache-2.0
 * What the caller wants of a plan. */
#ifndef CLATTN_PLAN_OPTIONS_H
#define CLATTN_PLAN_OPTIONS_H

#include "status.h"

/* The caller's options, which may be older and shorter than ours, or NULL; then what the environment says instead. Errors:
 * INVALID_ARGUMENT. */
clattn_status cla_plan_options_take(const clattn_plan_options *given, clattn_plan_options *options, clattn_error *error);

#endif
