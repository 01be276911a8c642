/* SPDX-License-Identifier: Apache-2.0
 * Runs each kernel of a plan once and discards the results, for drivers that compile at the first launch. */
#ifndef CLATTN_WARM_H
#define CLATTN_WARM_H

#include "plan.h"

/* The plan must not be shared yet. Kernels that need too much memory are skipped. Errors: those of OpenCL. */
clattn_status cla_plan_rehearse(clattn_plan *plan, clattn_error *error);

#endif
