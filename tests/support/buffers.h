/* SPDX-License-Identifier: Apache-2.0
 * Plain fp32 buffers for tests of the API itself: V = 1 everywhere, so that every output of a row that sees a key is 1. */
#ifndef CLATTN_TESTS_BUFFERS_H
#define CLATTN_TESTS_BUFFERS_H

#include "attend.h"

struct buffers {
    cl_mem q, k, v, o, lse;
    size_t o_count;
};

/* Large enough for the problem, which must be fp32 and contiguous; o is filled with NaN. `slack` elements follow each. */
void buffers_create(struct buffers *buffers, cl_context cl, const clattn_problem *problem, size_t slack);
void buffers_destroy(struct buffers *buffers);

/* A call of `plan` with these. */
clattn_call buffers_call(const struct buffers *buffers, const clattn_plan *plan);

/* Fills o with NaN again; reads it. */
void buffers_poison(const struct buffers *buffers, cl_command_queue queue);
float *buffers_read(const struct buffers *buffers, cl_command_queue queue);

/* All outputs are 1 within rounding; all are still NaN. */
bool buffers_all_one(const struct buffers *buffers, cl_command_queue queue);
bool buffers_untouched(const struct buffers *buffers, cl_command_queue queue);

/* The plan of a problem in SHAPE text, which must succeed; engine NULL: the library's choice. */
clattn_plan *plan_of(clattn_context *context, const char *shape, const char *engine);

#endif
