/* SPDX-License-Identifier: Apache-2.0
 * Cutting long work into launches of bounded length: some drivers reset a device whose queue runs for seconds, and a desktop on
 * the same device stands still meanwhile. */
#ifndef CLATTN_SLICE_H
#define CLATTN_SLICE_H

#include "context.h"
#include "engine.h"

/* Multiply-adds that the engine does on this device in a millisecond: measured once a context on a small problem of these types
 * and head sizes, on a queue of its own. Errors: as clattn_plan_create and clattn_enqueue. */
clattn_status cla_find_rate(clattn_context *context, const clattn_problem *problem, const struct engine *engine, double *rate,
                            clattn_error *error);

/* Groups of one launch of "attention" that take about `milliseconds`; at least 1. Pure. */
size_t cla_slice_groups(const clattn_problem *problem, const struct config *config, const struct launch_args *args, double rate,
                        double milliseconds);

#endif
