/* SPDX-License-Identifier: Apache-2.0
 * Runs each kernel of a plan once, on data that is thrown away: for drivers that compile at the first launch. */
#ifndef CLATTN_WARM_H
#define CLATTN_WARM_H

#include "plan.h"

/* The plan is not shared yet. What takes too much memory to run is left out. Errors: those of OpenCL. */
clattn_status cla_plan_rehearse(clattn_plan *plan, clattn_error *error);

#endif
