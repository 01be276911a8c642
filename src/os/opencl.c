/* SPDX-License-Identifier: Apache-2.0
 * OpenCL loaded at run time (CLATTN_DYNAMIC_OPENCL): the functions that the library and its program call are forwarded to the
 * loader. Without a loader, clGetPlatformIDs returns CL_PLATFORM_NOT_FOUND_KHR, as a loader without drivers does. */
#include "os.h"

#include <stdatomic.h>

#define PLATFORM_NOT_FOUND_KHR (-1001)

/* The loader's function, looked up at the first call; threads that race for it find the same one. */
static cla_function find(_Atomic(cla_function) *known, const char *name)
{
    cla_function function = atomic_load_explicit(known, memory_order_acquire);
    if (!function) {
        function = cla_opencl_function(name);
        atomic_store_explicit(known, function, memory_order_release);
    }
    return function;
}

#define CODE(name, parameters, arguments)                                                                                      \
    CL_API_ENTRY cl_int CL_API_CALL name parameters                                                                            \
    {                                                                                                                          \
        static _Atomic(cla_function) known;                                                                                    \
        const cla_function function = find(&known, #name);                                                                     \
        return function ? ((cl_int(CL_API_CALL *) parameters)function)arguments : PLATFORM_NOT_FOUND_KHR;                      \
    }

#define OBJECT(type, name, parameters, arguments)                                                                              \
    CL_API_ENTRY type CL_API_CALL name parameters                                                                              \
    {                                                                                                                          \
        static _Atomic(cla_function) known;                                                                                    \
        const cla_function function = find(&known, #name);                                                                     \
        if (function)                                                                                                          \
            return ((type(CL_API_CALL *) parameters)function)arguments;                                                        \
        if (code)                                                                                                              \
            *code = PLATFORM_NOT_FOUND_KHR;                                                                                    \
        return NULL;                                                                                                           \
    }

typedef void(CL_CALLBACK *context_notify)(const char *, const void *, size_t, void *);
typedef void(CL_CALLBACK *program_notify)(cl_program, void *);

CODE(clGetPlatformIDs, (cl_uint entries, cl_platform_id *list, cl_uint *count), (entries, list, count))
CODE(clGetPlatformInfo, (cl_platform_id object, cl_platform_info what, size_t size, void *value, size_t *needed),
     (object, what, size, value, needed))
CODE(clGetDeviceIDs, (cl_platform_id platform, cl_device_type type, cl_uint entries, cl_device_id *list, cl_uint *count),
     (platform, type, entries, list, count))
CODE(clGetDeviceInfo, (cl_device_id object, cl_device_info what, size_t size, void *value, size_t *needed),
     (object, what, size, value, needed))

CL_API_ENTRY void *CL_API_CALL clGetExtensionFunctionAddress(const char *name)
{
    static _Atomic(cla_function) known;
    const cla_function function = find(&known, "clGetExtensionFunctionAddress");
    return function ? ((void *(CL_API_CALL *)(const char *))function)(name) : NULL;
}

OBJECT(cl_context, clCreateContext,
       (const cl_context_properties *properties, cl_uint count, const cl_device_id *devices, context_notify notify, void *user,
        cl_int *code),
       (properties, count, devices, notify, user, code))
CODE(clRetainContext, (cl_context object), (object))
CODE(clReleaseContext, (cl_context object), (object))
CODE(clGetContextInfo, (cl_context object, cl_context_info what, size_t size, void *value, size_t *needed),
     (object, what, size, value, needed))

OBJECT(cl_command_queue, clCreateCommandQueue,
       (cl_context context, cl_device_id device, cl_command_queue_properties properties, cl_int *code),
       (context, device, properties, code))
CODE(clRetainCommandQueue, (cl_command_queue object), (object))
CODE(clReleaseCommandQueue, (cl_command_queue object), (object))
CODE(clGetCommandQueueInfo, (cl_command_queue object, cl_command_queue_info what, size_t size, void *value, size_t *needed),
     (object, what, size, value, needed))
CODE(clFlush, (cl_command_queue object), (object))
CODE(clFinish, (cl_command_queue object), (object))

OBJECT(cl_mem, clCreateBuffer, (cl_context context, cl_mem_flags flags, size_t size, void *host, cl_int *code),
       (context, flags, size, host, code))
CODE(clReleaseMemObject, (cl_mem object), (object))
CODE(clGetMemObjectInfo, (cl_mem object, cl_mem_info what, size_t size, void *value, size_t *needed),
     (object, what, size, value, needed))

OBJECT(cl_program, clCreateProgramWithSource,
       (cl_context context, cl_uint count, const char **strings, const size_t *lengths, cl_int *code),
       (context, count, strings, lengths, code))
OBJECT(cl_program, clCreateProgramWithBinary,
       (cl_context context, cl_uint count, const cl_device_id *devices, const size_t *lengths, const unsigned char **binaries,
        cl_int *status, cl_int *code),
       (context, count, devices, lengths, binaries, status, code))
CODE(clBuildProgram,
     (cl_program program, cl_uint count, const cl_device_id *devices, const char *options, program_notify notify, void *user),
     (program, count, devices, options, notify, user))
CODE(clReleaseProgram, (cl_program object), (object))
CODE(clGetProgramInfo, (cl_program object, cl_program_info what, size_t size, void *value, size_t *needed),
     (object, what, size, value, needed))
CODE(clGetProgramBuildInfo,
     (cl_program object, cl_device_id device, cl_program_build_info what, size_t size, void *value, size_t *needed),
     (object, device, what, size, value, needed))

OBJECT(cl_kernel, clCreateKernel, (cl_program program, const char *name, cl_int *code), (program, name, code))
CODE(clCreateKernelsInProgram, (cl_program program, cl_uint entries, cl_kernel *list, cl_uint *count),
     (program, entries, list, count))
CODE(clReleaseKernel, (cl_kernel object), (object))
CODE(clSetKernelArg, (cl_kernel kernel, cl_uint index, size_t size, const void *value), (kernel, index, size, value))
CODE(clGetKernelWorkGroupInfo,
     (cl_kernel object, cl_device_id device, cl_kernel_work_group_info what, size_t size, void *value, size_t *needed),
     (object, device, what, size, value, needed))

CODE(clRetainEvent, (cl_event object), (object))
CODE(clReleaseEvent, (cl_event object), (object))
CODE(clWaitForEvents, (cl_uint count, const cl_event *list), (count, list))
CODE(clGetEventProfilingInfo, (cl_event object, cl_profiling_info what, size_t size, void *value, size_t *needed),
     (object, what, size, value, needed))

CODE(clEnqueueNDRangeKernel,
     (cl_command_queue queue, cl_kernel kernel, cl_uint dimensions, const size_t *offset, const size_t *global,
      const size_t *local, cl_uint count, const cl_event *list, cl_event *event),
     (queue, kernel, dimensions, offset, global, local, count, list, event))
CODE(clEnqueueMarkerWithWaitList, (cl_command_queue queue, cl_uint count, const cl_event *list, cl_event *event),
     (queue, count, list, event))
CODE(clEnqueueReadBuffer,
     (cl_command_queue queue, cl_mem buffer, cl_bool blocking, size_t offset, size_t size, void *data, cl_uint count,
      const cl_event *list, cl_event *event),
     (queue, buffer, blocking, offset, size, data, count, list, event))
CODE(clEnqueueWriteBuffer,
     (cl_command_queue queue, cl_mem buffer, cl_bool blocking, size_t offset, size_t size, const void *data, cl_uint count,
      const cl_event *list, cl_event *event),
     (queue, buffer, blocking, offset, size, data, count, list, event))
CODE(clEnqueueFillBuffer,
     (cl_command_queue queue, cl_mem buffer, const void *pattern, size_t pattern_size, size_t offset, size_t size,
      cl_uint count, const cl_event *list, cl_event *event),
     (queue, buffer, pattern, pattern_size, offset, size, count, list, event))
CODE(clEnqueueCopyBuffer,
     (cl_command_queue queue, cl_mem from, cl_mem to, size_t from_offset, size_t to_offset, size_t size, cl_uint count,
      const cl_event *list, cl_event *event),
     (queue, from, to, from_offset, to_offset, size, count, list, event))
