/* SPDX-License-Identifier: Apache-2.0 */
#include "layer.h"

#include <CL/cl_layer.h>

#include <stdio.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

extern EXPORT struct layer_state layer_state;
struct layer_state layer_state;

static const cl_icd_dispatch *below;
static cl_icd_dispatch table;

static bool is_named(const char *name)
{
    for (int i = 0; i < 2; i++)
        if (layer_state.fail_names[i] && strcmp(name, layer_state.fail_names[i]) == 0)
            return true;
    return false;
}

/* Whether this call is the one that is to fail. */
static bool fails(const char *name)
{
    if (!layer_state.counting)
        return false;
    const long number = ++layer_state.calls;
    if (number != layer_state.fail_at && !is_named(name))
        return false;
    snprintf(layer_state.failed, sizeof layer_state.failed, "%s", name);
    return true;
}

/* A call that returns a code and neither creates nor releases an object. */
#define PLAIN(name, parameters, arguments)                                                                                     \
    static cl_int CL_API_CALL layer_##name parameters { return fails(#name) ? layer_state.fail_code : below->name arguments; }

/* A call that returns an object, and its code through its last parameter. */
#define CREATE(type, kind, name, parameters, arguments)                                                                        \
    static type CL_API_CALL layer_##name parameters                                                                            \
    {                                                                                                                          \
        if (fails(#name)) {                                                                                                    \
            if (code)                                                                                                          \
                *code = layer_state.fail_code;                                                                                 \
            return NULL;                                                                                                       \
        }                                                                                                                      \
        type object = below->name arguments;                                                                                   \
        layer_state.live[kind] += object != NULL;                                                                              \
        return object;                                                                                                         \
    }

/* Retaining, which may fail; releasing is done even where it is to fail: an application can do nothing about it. */
#define RETAIN(type, kind, name)                                                                                               \
    static cl_int CL_API_CALL layer_clRetain##name(type object)                                                                \
    {                                                                                                                          \
        const cl_int code = fails("clRetain" #name) ? layer_state.fail_code : below->clRetain##name(object);                   \
        layer_state.live[kind] += code == CL_SUCCESS;                                                                          \
        return code;                                                                                                           \
    }                                                                                                                          \
    static cl_int CL_API_CALL layer_clRelease##name(type object)                                                               \
    {                                                                                                                          \
        const cl_int code = below->clRelease##name(object);                                                                    \
        layer_state.live[kind] -= code == CL_SUCCESS;                                                                          \
        return fails("clRelease" #name) ? layer_state.fail_code : code;                                                        \
    }

/* A call that enqueues, with its event as the last parameter. */
#define ENQUEUE(name, parameters, arguments)                                                                                   \
    static cl_int CL_API_CALL layer_##name parameters                                                                          \
    {                                                                                                                          \
        const cl_int code = fails(#name) ? layer_state.fail_code : below->name arguments;                                      \
        layer_state.live[LAYER_EVENT] += code == CL_SUCCESS && event;                                                          \
        return code;                                                                                                           \
    }

PLAIN(clGetPlatformIDs, (cl_uint entries, cl_platform_id *list, cl_uint *count), (entries, list, count))
PLAIN(clGetPlatformInfo, (cl_platform_id platform, cl_platform_info what, size_t size, void *value, size_t *needed),
      (platform, what, size, value, needed))
PLAIN(clGetDeviceIDs, (cl_platform_id platform, cl_device_type type, cl_uint entries, cl_device_id *list, cl_uint *count),
      (platform, type, entries, list, count))
PLAIN(clGetContextInfo, (cl_context object, cl_context_info what, size_t size, void *value, size_t *needed),
      (object, what, size, value, needed))
PLAIN(clGetCommandQueueInfo, (cl_command_queue object, cl_command_queue_info what, size_t size, void *value, size_t *needed),
      (object, what, size, value, needed))
PLAIN(clGetMemObjectInfo, (cl_mem object, cl_mem_info what, size_t size, void *value, size_t *needed),
      (object, what, size, value, needed))
PLAIN(clGetProgramInfo, (cl_program object, cl_program_info what, size_t size, void *value, size_t *needed),
      (object, what, size, value, needed))
PLAIN(clGetProgramBuildInfo,
      (cl_program object, cl_device_id device, cl_program_build_info what, size_t size, void *value, size_t *needed),
      (object, device, what, size, value, needed))
PLAIN(clSetKernelArg, (cl_kernel kernel, cl_uint index, size_t size, const void *value), (kernel, index, size, value))
PLAIN(clSetKernelArgSVMPointer, (cl_kernel kernel, cl_uint index, const void *value), (kernel, index, value))
PLAIN(clFlush, (cl_command_queue queue), (queue))
PLAIN(clFinish, (cl_command_queue queue), (queue))
PLAIN(clWaitForEvents, (cl_uint count, const cl_event *list), (count, list))
PLAIN(clGetEventProfilingInfo, (cl_event event, cl_profiling_info what, size_t size, void *value, size_t *needed),
      (event, what, size, value, needed))

RETAIN(cl_context, LAYER_CONTEXT, Context)
RETAIN(cl_command_queue, LAYER_QUEUE, CommandQueue)
RETAIN(cl_mem, LAYER_MEMORY, MemObject)
RETAIN(cl_program, LAYER_PROGRAM, Program)
RETAIN(cl_kernel, LAYER_KERNEL, Kernel)
RETAIN(cl_event, LAYER_EVENT, Event)

typedef void(CL_CALLBACK *context_notify)(const char *, const void *, size_t, void *);
typedef void(CL_CALLBACK *program_notify)(cl_program, void *);

CREATE(cl_context, LAYER_CONTEXT, clCreateContext,
       (const cl_context_properties *properties, cl_uint count, const cl_device_id *devices, context_notify notify, void *user,
        cl_int *code),
       (properties, count, devices, notify, user, code))
CREATE(cl_command_queue, LAYER_QUEUE, clCreateCommandQueue,
       (cl_context context, cl_device_id device, cl_command_queue_properties properties, cl_int *code),
       (context, device, properties, code))
CREATE(cl_program, LAYER_PROGRAM, clCreateProgramWithSource,
       (cl_context context, cl_uint count, const char **strings, const size_t *lengths, cl_int *code),
       (context, count, strings, lengths, code))
CREATE(cl_program, LAYER_PROGRAM, clCreateProgramWithBinary,
       (cl_context context, cl_uint count, const cl_device_id *devices, const size_t *lengths, const unsigned char **binaries,
        cl_int *status, cl_int *code),
       (context, count, devices, lengths, binaries, status, code))
CREATE(cl_kernel, LAYER_KERNEL, clCreateKernel, (cl_program program, const char *name, cl_int *code), (program, name, code))

ENQUEUE(clEnqueueNDRangeKernel,
        (cl_command_queue queue, cl_kernel kernel, cl_uint dimensions, const size_t *offset, const size_t *global,
         const size_t *local, cl_uint count, const cl_event *list, cl_event *event),
        (queue, kernel, dimensions, offset, global, local, count, list, event))
ENQUEUE(clEnqueueMarkerWithWaitList, (cl_command_queue queue, cl_uint count, const cl_event *list, cl_event *event),
        (queue, count, list, event))

static cl_mem CL_API_CALL layer_clCreateBuffer(cl_context context, cl_mem_flags flags, size_t size, void *host, cl_int *code)
{
    if (fails("clCreateBuffer")) {
        if (code)
            *code = layer_state.fail_code;
        return NULL;
    }
    cl_mem object = below->clCreateBuffer(context, flags, size, host, code);
    layer_state.live[LAYER_MEMORY] += object != NULL;
    layer_state.buffer_bytes += object && layer_state.counting ? (long)size : 0;
    return object;
}

static cl_int CL_API_CALL layer_clGetDeviceInfo(cl_device_id device, cl_device_info what, size_t size, void *value,
                                                size_t *needed)
{
    if (fails("clGetDeviceInfo"))
        return layer_state.fail_code;
    if (what != CL_DRIVER_VERSION || !layer_state.driver_version)
        return below->clGetDeviceInfo(device, what, size, value, needed);
    if (needed)
        *needed = strlen(layer_state.driver_version) + 1;
    if (value)
        snprintf(value, size, "%s", layer_state.driver_version);
    return CL_SUCCESS;
}

static bool is_limited(cl_kernel kernel)
{
    char name[64] = "";
    return layer_state.work_group_limit > 0 &&
           (!layer_state.limited_kernel ||
            (below->clGetKernelInfo(kernel, CL_KERNEL_FUNCTION_NAME, sizeof name, name, NULL) == CL_SUCCESS &&
             strcmp(name, layer_state.limited_kernel) == 0));
}

static cl_int CL_API_CALL layer_clGetKernelWorkGroupInfo(cl_kernel object, cl_device_id device, cl_kernel_work_group_info what,
                                                         size_t size, void *value, size_t *needed)
{
    if (fails("clGetKernelWorkGroupInfo"))
        return layer_state.fail_code;
    const cl_int code = below->clGetKernelWorkGroupInfo(object, device, what, size, value, needed);
    size_t *const limit = value;
    if (code == CL_SUCCESS && what == CL_KERNEL_WORK_GROUP_SIZE && limit && is_limited(object) &&
        *limit > layer_state.work_group_limit)
        *limit = layer_state.work_group_limit;
    return code;
}

static cl_int CL_API_CALL layer_clBuildProgram(cl_program program, cl_uint count, const cl_device_id *devices,
                                               const char *options, program_notify notify, void *user)
{
    size_t length = 0;
    if (fails("clBuildProgram"))
        return layer_state.fail_code;
    const bool has_source = below->clGetProgramInfo(program, CL_PROGRAM_SOURCE, 0, NULL, &length) == CL_SUCCESS && length > 1;
    layer_state.source_builds += has_source;
    layer_state.binary_builds += !has_source;
    return below->clBuildProgram(program, count, devices, options, notify, user);
}

static cl_int CL_API_CALL layer_clCreateKernelsInProgram(cl_program program, cl_uint entries, cl_kernel *list, cl_uint *count)
{
    cl_uint made = 0;
    if (fails("clCreateKernelsInProgram"))
        return layer_state.fail_code;
    const cl_int code = below->clCreateKernelsInProgram(program, entries, list, &made);
    if (code == CL_SUCCESS && list)
        layer_state.live[LAYER_KERNEL] += made;
    if (count)
        *count = made;
    return code;
}

static void fill_table(void)
{
#define SET(name) table.name = layer_##name;
    SET(clGetPlatformIDs)
    SET(clGetPlatformInfo)
    SET(clGetDeviceIDs)
    SET(clGetDeviceInfo)
    SET(clCreateContext)
    SET(clRetainContext)
    SET(clReleaseContext)
    SET(clGetContextInfo)
    SET(clCreateCommandQueue)
    SET(clRetainCommandQueue)
    SET(clReleaseCommandQueue)
    SET(clGetCommandQueueInfo)
    SET(clCreateBuffer)
    SET(clRetainMemObject)
    SET(clReleaseMemObject)
    SET(clGetMemObjectInfo)
    SET(clCreateProgramWithSource)
    SET(clCreateProgramWithBinary)
    SET(clBuildProgram)
    SET(clGetProgramInfo)
    SET(clGetProgramBuildInfo)
    SET(clRetainProgram)
    SET(clReleaseProgram)
    SET(clCreateKernel)
    SET(clCreateKernelsInProgram)
    SET(clRetainKernel)
    SET(clReleaseKernel)
    SET(clSetKernelArg)
    SET(clSetKernelArgSVMPointer)
    SET(clGetKernelWorkGroupInfo)
    SET(clRetainEvent)
    SET(clReleaseEvent)
    SET(clWaitForEvents)
    SET(clGetEventProfilingInfo)
    SET(clFlush)
    SET(clFinish)
    SET(clEnqueueNDRangeKernel)
    SET(clEnqueueMarkerWithWaitList)
#undef SET
}

EXPORT CL_API_ENTRY cl_int CL_API_CALL clGetLayerInfo(cl_layer_info what, size_t size, void *value, size_t *needed)
{
    static const char name[] = "clattn test layer";
    const cl_layer_api_version version = CL_LAYER_API_VERSION_100;
    const void *answer = what == CL_LAYER_API_VERSION ? (const void *)&version : name;
    const size_t length = what == CL_LAYER_API_VERSION ? sizeof version : sizeof name;
    if (what != CL_LAYER_API_VERSION && what != CL_LAYER_NAME)
        return CL_INVALID_VALUE;
    if (value && size < length)
        return CL_INVALID_VALUE;
    if (value)
        memcpy(value, answer, length);
    if (needed)
        *needed = length;
    return CL_SUCCESS;
}

EXPORT CL_API_ENTRY cl_int CL_API_CALL clInitLayer(cl_uint count, const cl_icd_dispatch *target, cl_uint *count_ret,
                                                   const cl_icd_dispatch **table_ret)
{
    const cl_uint own = sizeof table / sizeof(void *);
    if (!target || !count_ret || !table_ret)
        return CL_INVALID_VALUE;
    below = target;
    memcpy(&table, target, (count < own ? count : own) * sizeof(void *));
    fill_table();
    *count_ret = count < own ? count : own;
    *table_ret = &table;
    return CL_SUCCESS;
}

/* What newer loaders ask for. */
EXPORT cl_int CL_API_CALL clInitLayerWithProperties(cl_uint count, const cl_icd_dispatch *target, cl_uint *count_ret,
                                                    const cl_icd_dispatch **table_ret, const void *properties);
cl_int CL_API_CALL clInitLayerWithProperties(cl_uint count, const cl_icd_dispatch *target, cl_uint *count_ret,
                                             const cl_icd_dispatch **table_ret, const void *properties)
{
    (void)properties;
    return clInitLayer(count, target, count_ret, table_ret);
}

EXPORT cl_int CL_API_CALL clDeinitLayer(void);
cl_int CL_API_CALL clDeinitLayer(void) { return CL_SUCCESS; }
