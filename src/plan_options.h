/* SPDX-License-Identifier: Apache-2.0
 * The options of a plan. */
#ifndef CLATTN_PLAN_OPTIONS_H
#define CLATTN_PLAN_OPTIONS_H

#include "status.h"

/* Copies the caller's options, whose struct may be older and shorter than ours, or NULL; then applies the environment, unless
 * it is ignored. Errors: INVALID_ARGUMENT. */
clattn_status cla_plan_options_take(const clattn_plan_options *given, bool ignore_environment, clattn_plan_options *options,
                                    clattn_error *error);

/* Returns `status`; if no engine serves, adds to the error how the environment restricted the choice. */
clattn_status cla_plan_options_blame(clattn_status status, bool ignore_environment, clattn_error *error);

#endif
