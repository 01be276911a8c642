/* SPDX-License-Identifier: Apache-2.0 */
#include "scratch.h"

/* Larger buffers are not kept: their calls take longer than creating them, and the memory would be lost to the application. */
#define MOST_KEPT ((size_t)16 << 20)

void cla_scratch_release(struct scratch *scratch)
{
    if (!scratch->mem)
        return;
    clReleaseMemObject(scratch->mem);
    clReleaseCommandQueue(scratch->queue);
    *scratch = (struct scratch){0};
}

clattn_status cla_scratch_take(struct scratch *scratch, cl_context cl, cl_command_queue queue, bool in_order, size_t bytes,
                               cl_mem *out, clattn_error *error)
{
    cl_int code = CL_SUCCESS;
    if (scratch->mem && scratch->queue == queue && scratch->size >= bytes) {
        *out = scratch->mem;
        return CLATTN_SUCCESS;
    }
    *out = clCreateBuffer(cl, CL_MEM_READ_WRITE, bytes, NULL, &code);
    if (code != CL_SUCCESS)
        return cla_fail_cl(error, code, "clCreateBuffer (workspace)");
    if (in_order && bytes <= MOST_KEPT && clRetainCommandQueue(queue) == CL_SUCCESS) {
        cla_scratch_release(scratch);
        scratch->mem = *out;
        scratch->size = bytes;
        scratch->queue = queue;
    }
    return CLATTN_SUCCESS;
}

void cla_scratch_give(const struct scratch *scratch, cl_mem mem)
{
    if (mem && mem != scratch->mem)
        clReleaseMemObject(mem);
}
