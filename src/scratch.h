/* SPDX-License-Identifier: Apache-2.0
 * The workspace of calls that bring none. Making a buffer takes a driver longer than all else of a call (60 us on NVIDIA), so
 * the one of the last call stays: for the next call on the same in-order queue, which begins when that one has ended. */
#ifndef CLATTN_SCRATCH_H
#define CLATTN_SCRATCH_H

#include "status.h"

/* All 0: nothing is kept. The plan's lock guards it. */
struct scratch {
    cl_mem mem;
    size_t size;
    cl_command_queue queue; /* a reference of ours: its handle cannot come back as that of another queue */
};

/* A buffer of `bytes` for one call on `queue`. Errors: clCreateBuffer's. */
clattn_status cla_scratch_take(struct scratch *scratch, cl_context cl, cl_command_queue queue, bool in_order, size_t bytes,
                               cl_mem *out, clattn_error *error);

/* Behind the call's launches. OpenCL keeps a buffer until the commands that use it end. */
void cla_scratch_give(const struct scratch *scratch, cl_mem mem);

void cla_scratch_release(struct scratch *scratch);

#endif
