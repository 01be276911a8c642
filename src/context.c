/* SPDX-License-Identifier: Apache-2.0 */
#define CLATTN_EXPERIMENTAL
#include "context.h"

#include "device.h"
#include "probe.h"

#include <stdlib.h>
#include <string.h>

void clattn_context_options_init_sized(clattn_context_options *options, size_t size)
{
    clattn_context_options fresh;
    if (!options)
        return;
    memset(&fresh, 0, sizeof fresh);
    fresh.allow_process_changes = true;
    memset(options, 0, size);
    memcpy(options, &fresh, size < sizeof fresh ? size : sizeof fresh);
    options->struct_size = size;
}

/* The caller's options, which may be older and shorter than ours. */
static clattn_status take_options(const clattn_context_options *given, clattn_context_options *options, clattn_error *error)
{
    clattn_context_options_init(options);
    if (!given)
        return CLATTN_SUCCESS;
    return cla_struct_take("options", given, offsetof(clattn_context_options, overrides), options, sizeof *options, error);
}

/* Whether a device, or one that it is a part of, is in the list: PoCL 3.1 lists the parents of a context's sub-devices. */
static bool is_listed(cl_device_id device, const cl_device_id *list, size_t count)
{
    while (device) {
        for (size_t i = 0; i < count; i++)
            if (list[i] == device)
                return true;
        if (clGetDeviceInfo(device, CL_DEVICE_PARENT_DEVICE, sizeof device, &device, NULL) != CL_SUCCESS)
            return false;
    }
    return false;
}

/* Finds `device` among the devices of `cl`; NULL: the first of them. */
static clattn_status adopt(cl_context cl, cl_device_id device, clattn_context *context, clattn_error *error)
{
    cl_device_id *list = NULL;
    size_t bytes = 0;
    cl_int code = clGetContextInfo(cl, CL_CONTEXT_DEVICES, 0, NULL, &bytes);
    if (code == CL_SUCCESS && bytes > 0) {
        list = malloc(bytes);
        code = list ? clGetContextInfo(cl, CL_CONTEXT_DEVICES, bytes, list, NULL) : CL_OUT_OF_HOST_MEMORY;
    }
    const size_t count = bytes / sizeof *list;
    context->device = device || code != CL_SUCCESS || count == 0 ? device : list[0];
    const bool found = list && code == CL_SUCCESS && is_listed(context->device, list, count);
    free(list);
    if (code == CL_OUT_OF_HOST_MEMORY)
        return cla_fail_cl(error, code, "clGetContextInfo");
    if (code != CL_SUCCESS)
        return cla_fail(error, CLATTN_INVALID_ARGUMENT, "cl", "cl is no usable OpenCL context (clGetContextInfo: %s)",
                        cla_cl_name(code));
    if (!found)
        return cla_fail(error, CLATTN_INVALID_ARGUMENT, "device", "device is not one of the %zu devices of cl", count);
    code = clRetainContext(cl);
    if (code != CL_SUCCESS)
        return cla_fail_cl(error, code, "clRetainContext");
    context->cl = cl;
    return CLATTN_SUCCESS;
}

static clattn_status open_device(cl_device_id device, const char *selector, clattn_context *context, clattn_error *error)
{
    cl_int code = CL_SUCCESS;
    if (!device)
        TRY(cla_device_find(context->ignores_environment, selector, &device, error));
    context->device = device;
    context->cl = clCreateContext(NULL, 1, &device, NULL, NULL, &code);
    if (code != CL_SUCCESS) {
        context->cl = NULL;
        return cla_fail_cl(error, code, "clCreateContext");
    }
    return CLATTN_SUCCESS;
}

clattn_status clattn_context_create(cl_context cl, cl_device_id device, const clattn_context_options *given,
                                    clattn_context **out, clattn_error *error)
{
    clattn_context_options options;
    clattn_status status;
    cla_clear(error);
    if (!out)
        return cla_fail(error, CLATTN_INVALID_ARGUMENT, "context", "context is NULL");
    *out = NULL;
    TRY(take_options(given, &options, error));
    clattn_context *context = calloc(1, sizeof *context);
    const bool has_lock = context && cla_lock_init(&context->lock);
    const bool has_signal = has_lock && cla_signal_init(&context->built);
    if (!has_signal) {
        if (has_lock)
            cla_lock_destroy(&context->lock);
        free(context);
        return cla_fail(error, CLATTN_OUT_OF_HOST_MEMORY, "", "out of host memory while creating a context");
    }
    /* Contexts created in the same tick of a coarse clock have different addresses, so their numbers are far apart. */
    context->calls = cla_clock() + (uint64_t)(uintptr_t)context * 0x9E3779B97F4A7C15u;
    context->logger = (struct logger){options.log, options.log_user};
    context->ignores_environment = options.ignore_environment;
    TRY_GOTO(cl ? adopt(cl, device, context, error) : open_device(device, options.device, context, error));
    TRY_GOTO(cla_probe(context->device, options.overrides, options.ignore_environment, &context->facts, error));
    if (!options.allow_process_changes || cla_variable_is(options.ignore_environment, VARIABLE_PROCESS_CHANGES, "off"))
        context->facts.x86_amx = false; /* the only feature that needs such a change */
    if (context->facts.svm)
        context->set_svm = (cla_set_svm_fn)cla_opencl_function("clSetKernelArgSVMPointer");
    cla_cache_open(&context->cache, &options, context->device, &context->logger);
    *out = context;
    return CLATTN_SUCCESS;
done:
    clattn_context_destroy(context);
    return status;
}

void clattn_context_destroy(clattn_context *context)
{
    if (!context)
        return;
    cla_verdicts_free(context->verdicts);
    cla_programs_free(context);
    cla_cache_close(&context->cache);
    if (context->cl)
        clReleaseContext(context->cl);
    cla_signal_destroy(&context->built);
    cla_lock_destroy(&context->lock);
    free(context);
}

cl_context clattn_context_cl(const clattn_context *context) { return context ? context->cl : NULL; }
cl_device_id clattn_context_device(const clattn_context *context) { return context ? context->device : NULL; }

clattn_status clattn_context_facts(const clattn_context *context, char *text, size_t size, size_t *needed)
{
    struct text facts = {0};
    if (!context)
        return CLATTN_INVALID_ARGUMENT;
    cla_facts_print(&context->facts, &facts);
    const clattn_status status = cla_text_out(&facts, text, size, needed);
    cla_text_free(&facts);
    return status;
}

clattn_status clattn_device_facts(cl_device_id device, const char *overrides, char *text, size_t size, size_t *needed,
                                  clattn_error *error)
{
    struct facts facts;
    struct text out = {0};
    cla_clear(error);
    if (!device)
        return cla_fail(error, CLATTN_INVALID_ARGUMENT, "device", "device is NULL");
    TRY(cla_probe(device, overrides, false, &facts, error));
    cla_facts_print(&facts, &out);
    const clattn_status status = cla_text_out(&out, text, size, needed);
    cla_text_free(&out);
    return status;
}

int64_t cla_call_number(clattn_context *context)
{
    cla_lock_take(&context->lock);
    const int64_t number = (int64_t)++context->calls;
    cla_lock_give(&context->lock);
    return number;
}

size_t clattn_context_build_count(const clattn_context *context)
{
    if (!context)
        return 0;
    struct cla_lock *lock = (struct cla_lock *)&context->lock;
    cla_lock_take(lock);
    const size_t builds = context->builds;
    cla_lock_give(lock);
    return builds;
}
