/* SPDX-License-Identifier: Apache-2.0
 * The caller's buffers: checks of their size against the strides and of their context, and their use as kernel arguments. */
#ifndef CLATTN_BUFFER_H
#define CLATTN_BUFFER_H

#include "context.h"

/* One tensor of a call. */
struct tensor_check {
    const char *field; /* named in messages, such as "call.k" */
    clattn_buffer *buffer;
    size_t element_size;
    int64_t sizes[4], strides[4];
    bool written;
};

/* A tensor without elements needs no buffer: the caller's buffer, if any, becomes absent. Errors: INVALID_ARGUMENT that names
 * the field. */
clattn_status cla_check_tensor(const struct tensor_check *tensor, const clattn_context *context, clattn_error *error);

/* Sets the memory as a kernel argument, without its offset, which is among the call's numbers. NULL or absent: a null pointer.
 */
cl_int cla_set_buffer(const clattn_context *context, cl_kernel kernel, cl_uint index, const clattn_buffer *buffer);

#endif
