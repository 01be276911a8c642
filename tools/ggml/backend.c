/* SPDX-License-Identifier: Apache-2.0
 *
 * clattn as a back end of ggml: one OpenCL device (CLATTN_DEVICE names it), one operation, FLASH_ATTN_EXT (attend.c).
 *
 * A loadable module, written against ggml's ggml-backend-impl.h: a registry holds a device, a device makes buffers and back
 * ends (ggml's word for a stream of work), a back end computes graphs. */
#include "attend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct device {
    clattn_context *clattn;
    cl_context cl;
    cl_device_id id;
    cl_command_queue queue; /* of copies */
    bool shared;            /* buffers are shared virtual memory, which the host reads and writes in place */
    bool verbose;           /* says why an operation is declined */
    char name[128];
    struct ggml_backend_reg reg;
    struct ggml_backend_device dev;
    struct ggml_backend_buffer_type buft;
};

static struct device *device_of(ggml_backend_dev_t dev) { return dev->context; }

/* ------------------------------------------------------------------------------------------------------------ back end */

static const char *backend_name(ggml_backend_t backend)
{
    GGML_UNUSED(backend);
    return "CLATTN";
}

static void backend_free(ggml_backend_t backend)
{
    stream_release(backend->context);
    free(backend->context);
    free(backend);
}

static void backend_synchronize(ggml_backend_t backend)
{
    if (clFinish(((struct stream *)backend->context)->queue) != CL_SUCCESS)
        GGML_ABORT("clattn: the device failed");
}

static bool is_nothing(const struct ggml_tensor *op)
{
    return op->op == GGML_OP_NONE || op->op == GGML_OP_VIEW || op->op == GGML_OP_RESHAPE || op->op == GGML_OP_PERMUTE ||
           op->op == GGML_OP_TRANSPOSE;
}

/* Operations follow each other on an in-order queue. Where the host reads results in place, it must wait. */
static enum ggml_status backend_compute(ggml_backend_t backend, struct ggml_cgraph *graph)
{
    struct stream *stream = backend->context;
    for (int i = 0; i < ggml_graph_n_nodes(graph); i++) {
        const struct ggml_tensor *op = ggml_graph_node(graph, i);
        if (is_nothing(op) || ggml_is_empty(op) || !(op->flags & GGML_TENSOR_FLAG_COMPUTE))
            continue;
        if (op->op != GGML_OP_FLASH_ATTN_EXT || !attend(stream, op))
            return GGML_STATUS_FAILED;
    }
    if (device_of(backend->device)->shared)
        backend_synchronize(backend);
    else
        clFlush(stream->queue);
    return GGML_STATUS_SUCCESS;
}

static ggml_guid_t backend_guid(void)
{
    static ggml_guid guid = {0x63, 0x6c, 0x61, 0x74, 0x74, 0x6e, 0x2d, 0x67, 0x67, 0x6d, 0x6c, 0x2d, 0x30, 0x30, 0x30, 0x31};
    return &guid;
}

static ggml_backend_t backend_make(ggml_backend_dev_t dev, const char *params)
{
    struct device *device = device_of(dev);
    struct stream *stream = malloc(sizeof *stream);
    ggml_backend_t backend = calloc(1, sizeof *backend);
    cl_command_queue queue = clCreateCommandQueue(device->cl, device->id, 0, NULL);
    GGML_UNUSED(params);
    if (!stream || !backend || !queue) {
        if (queue)
            clReleaseCommandQueue(queue);
        free(stream);
        free(backend);
        return NULL;
    }
    stream_init(stream, device->clattn, queue);
    backend->guid = backend_guid();
    backend->device = dev;
    backend->context = stream;
    backend->iface.get_name = backend_name;
    backend->iface.free = backend_free;
    backend->iface.synchronize = backend_synchronize;
    backend->iface.graph_compute = backend_compute;
    return backend;
}

/* ------------------------------------------------------------------------------------------------------------- buffers */

static void expect(cl_int code, const char *what)
{
    if (code != CL_SUCCESS)
        GGML_ABORT("clattn: %s: OpenCL error %d", what, (int)code);
}

static void buffer_free(ggml_backend_buffer_t buffer)
{
    struct memory *memory = buffer->context;
    if (memory->pointer)
        clSVMFree(device_of(buffer->buft->device)->cl, memory->pointer);
    else
        clReleaseMemObject(memory->mem);
    free(memory);
}

static void *buffer_base(ggml_backend_buffer_t buffer)
{
    const struct memory *memory = buffer->context;
    return memory->pointer ? memory->pointer : FAKE_BASE;
}

static size_t place(const struct ggml_tensor *t, size_t offset) { return (size_t)((char *)t->data - FAKE_BASE) + offset; }

static void fill(const struct memory *memory, uint8_t value, size_t offset, size_t size)
{
    if (memory->pointer)
        memset((char *)memory->pointer + offset, value, size);
    else if (size > 0) {
        expect(clEnqueueFillBuffer(memory->queue, memory->mem, &value, 1, offset, size, 0, NULL, NULL), "fill");
        expect(clFinish(memory->queue), "fill");
    }
}

static void buffer_memset(ggml_backend_buffer_t buffer, struct ggml_tensor *t, uint8_t value, size_t offset, size_t size)
{
    fill(buffer->context, value, (size_t)((char *)t->data - (char *)buffer_base(buffer)) + offset, size);
}

static void buffer_clear(ggml_backend_buffer_t buffer, uint8_t value) { fill(buffer->context, value, 0, buffer->size); }

static void buffer_set(ggml_backend_buffer_t buffer, struct ggml_tensor *t, const void *data, size_t offset, size_t size)
{
    const struct memory *memory = buffer->context;
    if (memory->pointer)
        memcpy((char *)t->data + offset, data, size);
    else if (size > 0)
        expect(clEnqueueWriteBuffer(memory->queue, memory->mem, CL_TRUE, place(t, offset), size, data, 0, NULL, NULL), "write");
}

static void buffer_get(ggml_backend_buffer_t buffer, const struct ggml_tensor *t, void *data, size_t offset, size_t size)
{
    const struct memory *memory = buffer->context;
    if (memory->pointer)
        memcpy(data, (const char *)t->data + offset, size);
    else if (size > 0)
        expect(clEnqueueReadBuffer(memory->queue, memory->mem, CL_TRUE, place(t, offset), size, data, 0, NULL, NULL), "read");
}

static const char *buft_name(ggml_backend_buffer_type_t buft)
{
    return device_of(buft->device)->shared ? "CLATTN_SVM" : "CLATTN";
}

static ggml_backend_buffer_t buft_alloc(ggml_backend_buffer_type_t buft, size_t size)
{
    static const struct ggml_backend_buffer_i functions = {
        .free_buffer = buffer_free,
        .get_base = buffer_base,
        .memset_tensor = buffer_memset,
        .set_tensor = buffer_set,
        .get_tensor = buffer_get,
        .clear = buffer_clear,
    };
    struct device *device = device_of(buft->device);
    struct memory *memory = calloc(1, sizeof *memory);
    if (!memory)
        return NULL;
    memory->queue = device->queue;
    if (device->shared)
        memory->pointer = clSVMAlloc(device->cl, CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER, size, 0);
    else
        memory->mem = clCreateBuffer(device->cl, CL_MEM_READ_WRITE, size, NULL, NULL);
    if (!memory->pointer && !memory->mem) {
        free(memory);
        return NULL;
    }
    return ggml_backend_buffer_init(buft, functions, memory, size);
}

static size_t buft_alignment(ggml_backend_buffer_type_t buft)
{
    GGML_UNUSED(buft);
    return 128;
}

static size_t buft_max_size(ggml_backend_buffer_type_t buft)
{
    cl_ulong size = 0;
    clGetDeviceInfo(device_of(buft->device)->id, CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof size, &size, NULL);
    return size ? (size_t)size : SIZE_MAX;
}

static bool buft_is_host(ggml_backend_buffer_type_t buft) { return device_of(buft->device)->shared; }

/* -------------------------------------------------------------------------------------------------------------- device */

static const char *device_name(ggml_backend_dev_t dev)
{
    GGML_UNUSED(dev);
    return "CLATTN0";
}

static const char *device_description(ggml_backend_dev_t dev) { return device_of(dev)->name; }

static void device_memory(ggml_backend_dev_t dev, size_t *free_bytes, size_t *total)
{
    cl_ulong size = 0;
    clGetDeviceInfo(device_of(dev)->id, CL_DEVICE_GLOBAL_MEM_SIZE, sizeof size, &size, NULL);
    *free_bytes = *total = (size_t)size;
}

/* With one operation it works next to the CPU's back end and replaces none. */
static enum ggml_backend_dev_type device_type(ggml_backend_dev_t dev)
{
    GGML_UNUSED(dev);
    return GGML_BACKEND_DEVICE_TYPE_ACCEL;
}

static void device_props(ggml_backend_dev_t dev, struct ggml_backend_dev_props *props)
{
    memset(props, 0, sizeof *props);
    props->name = device_name(dev);
    props->description = device_description(dev);
    props->type = device_type(dev);
    device_memory(dev, &props->memory_free, &props->memory_total);
}

static ggml_backend_buffer_type_t device_buft(ggml_backend_dev_t dev) { return &device_of(dev)->buft; }

static bool device_supports_buft(ggml_backend_dev_t dev, ggml_backend_buffer_type_t buft) { return buft == device_buft(dev); }

static bool device_supports_op(ggml_backend_dev_t dev, const struct ggml_tensor *op)
{
    const struct device *device = device_of(dev);
    clattn_problem problem;
    clattn_error error;
    if (op->op != GGML_OP_FLASH_ATTN_EXT)
        return is_nothing(op);
    const char *why = take_problem(op, &problem);
    clattn_error_init(&error);
    if (!why && clattn_supported(device->clattn, &problem, NULL, &error) != CLATTN_SUCCESS)
        why = error.message;
    if (why && device->verbose)
        fprintf(stderr, "clattn declines: %s\n", why);
    return !why;
}

/* ------------------------------------------------------------------------------------------------------------ registry */

static const char *reg_name(ggml_backend_reg_t reg)
{
    GGML_UNUSED(reg);
    return "CLATTN";
}

static size_t reg_device_count(ggml_backend_reg_t reg)
{
    GGML_UNUSED(reg);
    return 1;
}

static ggml_backend_dev_t reg_device(ggml_backend_reg_t reg, size_t index)
{
    return index == 0 ? &((struct device *)reg->context)->dev : NULL;
}

/* Buffers that the host sees too, where the device has them, unless CLATTN_GGML_SVM=0. */
static bool wants_shared(const struct device *device)
{
    const char *asked = getenv("CLATTN_GGML_SVM");
    cl_device_svm_capabilities svm = 0;
    if (clGetDeviceInfo(device->id, CL_DEVICE_SVM_CAPABILITIES, sizeof svm, &svm, NULL) != CL_SUCCESS)
        svm = 0;
    return (svm & CL_DEVICE_SVM_FINE_GRAIN_BUFFER) && !(asked && strcmp(asked, "0") == 0);
}

static void fill_tables(struct device *device)
{
    device->reg.api_version = GGML_BACKEND_API_VERSION;
    device->reg.iface.get_name = reg_name;
    device->reg.iface.get_device_count = reg_device_count;
    device->reg.iface.get_device = reg_device;
    device->reg.context = device;
    device->dev.iface.get_name = device_name;
    device->dev.iface.get_description = device_description;
    device->dev.iface.get_memory = device_memory;
    device->dev.iface.get_type = device_type;
    device->dev.iface.get_props = device_props;
    device->dev.iface.init_backend = backend_make;
    device->dev.iface.get_buffer_type = device_buft;
    device->dev.iface.supports_op = device_supports_op;
    device->dev.iface.supports_buft = device_supports_buft;
    device->dev.reg = &device->reg;
    device->dev.context = device;
    device->buft.iface.get_name = buft_name;
    device->buft.iface.alloc_buffer = buft_alloc;
    device->buft.iface.get_alignment = buft_alignment;
    device->buft.iface.get_max_size = buft_max_size;
    device->buft.iface.is_host = buft_is_host;
    device->buft.device = &device->dev;
    device->buft.context = device;
}

/* ggml keeps what this returns for as long as the process lives. */
static ggml_backend_reg_t make_device(void)
{
    clattn_error error;
    struct device *device = calloc(1, sizeof *device);
    clattn_error_init(&error);
    if (!device || clattn_context_create(NULL, NULL, NULL, &device->clattn, &error) != CLATTN_SUCCESS) {
        complain("no device", error.message);
        free(device);
        return NULL;
    }
    device->cl = clattn_context_cl(device->clattn);
    device->id = clattn_context_device(device->clattn);
    device->queue = clCreateCommandQueue(device->cl, device->id, 0, NULL);
    device->shared = wants_shared(device);
    device->verbose = getenv("CLATTN_GGML_VERBOSE") != NULL;
    clGetDeviceInfo(device->id, CL_DEVICE_NAME, sizeof device->name, device->name, NULL);
    fill_tables(device);
    return &device->reg;
}

GGML_BACKEND_DL_IMPL(make_device)
