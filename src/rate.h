/* SPDX-License-Identifier: Apache-2.0
 * How fast an engine is on this device. */
#ifndef CLATTN_RATE_H
#define CLATTN_RATE_H

#include "context.h"
#include "engine.h"

/* Multiply-adds that the engine does on this device in a millisecond: measured once a context on a small problem of these types
 * and head sizes, on a queue of its own. Errors: as clattn_plan_create and clattn_enqueue. */
clattn_status cla_find_rate(clattn_context *context, const clattn_problem *problem, const struct engine *engine, double *rate,
                            clattn_error *error);

#endif
