/* SPDX-License-Identifier: Apache-2.0
 * The caller's buffers: large enough for what the strides reach, of the right context, and as kernel arguments. */
#ifndef CLATTN_BUFFER_H
#define CLATTN_BUFFER_H

#include "context.h"

/* One tensor of a call. */
struct tensor_check {
    const char *field; /* for messages, such as "call.k" */
    clattn_buffer *buffer;
    size_t element_size;
    int64_t sizes[4], strides[4];
    bool written;
};

/* A tensor without an element needs no buffer: whatever the caller gave, it becomes absent. Errors: INVALID_ARGUMENT that names
 * the field. */
clattn_status cla_check_tensor(const struct tensor_check *tensor, const clattn_context *context, clattn_error *error);

/* Makes it a kernel argument: the memory without its offset, which stands in the call's numbers. NULL or absent: a null
 * pointer. */
cl_int cla_set_buffer(const clattn_context *context, cl_kernel kernel, cl_uint index, const clattn_buffer *buffer);

#endif
