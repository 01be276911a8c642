/* SPDX-License-Identifier: Apache-2.0
 * The rate of an engine on this device. */
#ifndef CLATTN_RATE_H
#define CLATTN_RATE_H

#include "context.h"
#include "engine.h"

/* Multiply-adds of the engine in a millisecond on this device, measured once a context with a small problem of these types and
 * head sizes, on a queue of the library. Errors: as clattn_plan_create and clattn_enqueue. */
clattn_status cla_find_rate(clattn_context *context, const clattn_problem *problem, const struct engine *engine, double *rate,
                            clattn_error *error);

#endif
