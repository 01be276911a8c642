/* SPDX-License-Identifier: Apache-2.0
 * What the caller wants of a plan. */
#ifndef CLATTN_PLAN_OPTIONS_H
#define CLATTN_PLAN_OPTIONS_H

#include "status.h"

/* The caller's options, which may be older and shorter than ours, or NULL; then what the environment says instead, unless it is
 * ignored. Errors: INVALID_ARGUMENT. */
clattn_status cla_plan_options_take(const clattn_plan_options *given, bool ignore_environment, clattn_plan_options *options,
                                    clattn_error *error);

/* Returns `status`; where no engine serves, the error also says what the environment had in it. */
clattn_status cla_plan_options_blame(clattn_status status, bool ignore_environment, clattn_error *error);

#endif
