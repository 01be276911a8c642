/* SPDX-License-Identifier: Apache-2.0
 * The workspace of calls without one. Creating a buffer takes a driver longer than the rest of a call (60 us on NVIDIA), so
 * the buffer of the last call is kept for the next call on the same in-order queue, which begins after that one has ended. */
#ifndef CLATTN_SCRATCH_H
#define CLATTN_SCRATCH_H

#include "status.h"

/* All 0: no buffer. The plan's lock guards it. */
struct scratch {
    cl_mem mem;
    size_t size;
    cl_command_queue queue; /* retained, so that its handle cannot be reused for another queue */
};

/* A buffer of `bytes` for one call on `queue`. Errors: clCreateBuffer's. */
clattn_status cla_scratch_take(struct scratch *scratch, cl_context cl, cl_command_queue queue, bool in_order, size_t bytes,
                               cl_mem *out, clattn_error *error);

/* Call it after the call's launches. OpenCL keeps a buffer until the commands that use it end. */
void cla_scratch_give(const struct scratch *scratch, cl_mem mem);

void cla_scratch_release(struct scratch *scratch);

#endif
