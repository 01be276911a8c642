/* SPDX-License-Identifier: Apache-2.0 */
#include "buffer.h"

#include "problem.h"

#include <inttypes.h>

cl_int cla_set_buffer(const clattn_context *context, cl_kernel kernel, cl_uint index, const clattn_buffer *buffer)
{
    const cl_mem mem = buffer && buffer->kind == CLATTN_BUFFER_MEM ? (cl_mem)buffer->handle : NULL;
    if (buffer && buffer->kind == CLATTN_BUFFER_SVM)
        return context->set_svm ? context->set_svm(kernel, index, buffer->handle) : CL_INVALID_OPERATION;
    return clSetKernelArg(kernel, index, sizeof mem, &mem);
}

/* OpenCL does not report the size of an SVM allocation. */
static clattn_status check_pointer(const struct tensor_check *t, const clattn_context *context, int64_t lowest,
                                   clattn_error *error)
{
    if (!context->set_svm)
        return cla_fail(error, CLATTN_UNSUPPORTED, t->field,
                        "%s is an SVM pointer, but this device has no shared virtual memory", t->field);
    if ((uintptr_t)t->buffer->handle % t->element_size != 0)
        return cla_fail(error, CLATTN_INVALID_ARGUMENT, t->field, "%s: the pointer is not aligned to the element's %zu bytes",
                        t->field, t->element_size);
    if ((int64_t)(t->buffer->offset / t->element_size) + lowest < 0)
        return cla_fail(error, CLATTN_INVALID_ARGUMENT, t->field, "%s: strides and offset reach before the pointer", t->field);
    return CLATTN_SUCCESS;
}

/* Checks that it is no image, and that its flags allow what the kernels do. */
static clattn_status check_kind(const struct tensor_check *t, cl_mem mem, clattn_error *error)
{
    cl_mem_object_type type = CL_MEM_OBJECT_BUFFER;
    cl_mem_flags flags = 0;
    cl_int code = clGetMemObjectInfo(mem, CL_MEM_TYPE, sizeof type, &type, NULL);
    if (code == CL_SUCCESS)
        code = clGetMemObjectInfo(mem, CL_MEM_FLAGS, sizeof flags, &flags, NULL);
    if (code != CL_SUCCESS)
        return cla_fail_cl(error, code, "clGetMemObjectInfo");
    if (type != CL_MEM_OBJECT_BUFFER)
        return cla_fail(error, CLATTN_INVALID_ARGUMENT, t->field, "%s is an image: make it with clCreateBuffer", t->field);
    if (flags & (t->written ? CL_MEM_READ_ONLY : CL_MEM_WRITE_ONLY))
        return cla_fail(error, CLATTN_INVALID_ARGUMENT, t->field,
                        "%s is made with %s, but kernels %s it: use CL_MEM_READ_WRITE", t->field,
                        t->written ? "CL_MEM_READ_ONLY" : "CL_MEM_WRITE_ONLY", t->written ? "write" : "read");
    return CLATTN_SUCCESS;
}

static clattn_status check_memory(const struct tensor_check *t, cl_context context, size_t *bytes, clattn_error *error)
{
    cl_context owner = NULL;
    cl_mem mem = (cl_mem)t->buffer->handle;
    cl_int code = clGetMemObjectInfo(mem, CL_MEM_SIZE, sizeof *bytes, bytes, NULL);
    if (code == CL_SUCCESS)
        code = clGetMemObjectInfo(mem, CL_MEM_CONTEXT, sizeof owner, &owner, NULL);
    if (code != CL_SUCCESS)
        return cla_fail(error, CLATTN_INVALID_ARGUMENT, t->field, "%s is no OpenCL buffer (clGetMemObjectInfo: %s)", t->field,
                        cla_cl_name(code));
    if (owner != context)
        return cla_fail(error, CLATTN_INVALID_ARGUMENT, t->field, "%s belongs to another OpenCL context than the plan",
                        t->field);
    return check_kind(t, mem, error);
}

/* Bytes of a buffer that ends with this element; UINT64_MAX if the number would overflow. */
static uint64_t bytes_to(int64_t last, uint64_t element_size)
{
    const uint64_t count = last < 0 ? 0 : (uint64_t)last + 1;
    return count > UINT64_MAX / element_size ? UINT64_MAX : count * element_size;
}

clattn_status cla_check_tensor(const struct tensor_check *t, const clattn_context *context, clattn_error *error)
{
    int64_t lowest, highest;
    size_t bytes = 0;
    if (!cla_tensor_extent(t->sizes, t->strides, &lowest, &highest)) {
        *t->buffer = (clattn_buffer){0};
        return CLATTN_SUCCESS;
    }
    if ((t->buffer->kind != CLATTN_BUFFER_MEM && t->buffer->kind != CLATTN_BUFFER_SVM) || !t->buffer->handle)
        return cla_fail(error, CLATTN_INVALID_ARGUMENT, t->field, "%s is missing: set it with clattn_mem(buffer, byte offset)",
                        t->field);
    if (t->buffer->offset % t->element_size != 0)
        return cla_fail(error, CLATTN_INVALID_ARGUMENT, t->field, "%s: offset %zu is no multiple of the element's %zu bytes",
                        t->field, t->buffer->offset, t->element_size);
    if (t->buffer->kind == CLATTN_BUFFER_SVM)
        return check_pointer(t, context, lowest, error);
    TRY(check_memory(t, context->cl, &bytes, error));
    /* At most 2^61 elements: no buffer is that long, and no sum with an extent wraps. */
    const uint64_t start = t->buffer->offset / t->element_size;
    const int64_t base = start > INT64_MAX / 4 ? INT64_MAX / 4 : (int64_t)start, room = (int64_t)(bytes / t->element_size);
    if (base + lowest < 0 || base + highest >= room)
        return cla_fail(error, CLATTN_INVALID_ARGUMENT, t->field,
                        "%s holds elements 0 ... %" PRId64 " (%zu bytes), but its sizes, strides and offset reach from %" PRId64
                        " to %" PRId64 ", which takes %" PRIu64 " bytes",
                        t->field, room - 1, bytes, base + lowest, base + highest,
                        bytes_to(base + highest, (uint64_t)t->element_size));
    return CLATTN_SUCCESS;
}
