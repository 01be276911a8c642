/* SPDX-License-Identifier: Apache-2.0 */
#include "device.h"

#include "environment.h"
#include "probe.h"
#include "text.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PLATFORM_NOT_FOUND_KHR (-1001)

struct device_list {
    struct device_entry *entries;
    size_t count;
    cl_int failure; /* the error of a platform that was skipped, and the call that failed */
    const char *failed_call;
};

/* Whether `text` begins with `part`, ignoring case. */
static bool begins(const char *text, const char *part, size_t length)
{
    size_t i = 0;
    while (i < length && text[i] && tolower((unsigned char)text[i]) == tolower((unsigned char)part[i]))
        i++;
    return i == length;
}

static bool contains(const char *text, const char *part, size_t length)
{
    for (; length > 0 && *text; text++)
        if (begins(text, part, length))
            return true;
    return false;
}

static bool is_word(const char *text, const char *word)
{
    return strlen(text) == strlen(word) && begins(text, word, strlen(word));
}

static bool read_index(const char *text, size_t length, int *index)
{
    *index = 0;
    for (size_t i = 0; i < length; i++) {
        if (!isdigit((unsigned char)text[i]) || *index > 99999)
            return false;
        *index = *index * 10 + (text[i] - '0');
    }
    return length > 0;
}

bool cla_selector_is_number(const char *selector)
{
    int index;
    return selector && read_index(selector, strlen(selector), &index);
}

static const struct device_entry *first_of_type(const struct device_entry *list, size_t count, cl_device_type type)
{
    for (size_t i = 0; i < count; i++)
        if (list[i].type & type)
            return &list[i];
    return NULL;
}

static const struct device_entry *default_of(const struct device_entry *list, size_t count)
{
    /* One implementation reports CPU, GPU and accelerator at once; a plain GPU is preferred. */
    for (size_t i = 0; i < count; i++)
        if ((list[i].type & CL_DEVICE_TYPE_GPU) && !(list[i].type & CL_DEVICE_TYPE_CPU))
            return &list[i];
    const struct device_entry *found = first_of_type(list, count, CL_DEVICE_TYPE_ACCELERATOR);
    if (!found || (found->type & CL_DEVICE_TYPE_CPU))
        found = first_of_type(list, count, CL_DEVICE_TYPE_CPU);
    return found ? found : count ? &list[0] : NULL;
}

/* Matches one half of "platform:device": a number, or a part of the name. */
static bool half_matches(const char *half, size_t length, int index, const char *name)
{
    int wanted;
    return read_index(half, length, &wanted) ? wanted == index : contains(name, half, length);
}

const struct device_entry *cla_device_match(const struct device_entry *list, size_t count, const char *selector)
{
    static const struct {
        const char *name;
        cl_device_type type;
    } types[] = {{"gpu", CL_DEVICE_TYPE_GPU}, {"cpu", CL_DEVICE_TYPE_CPU}, {"accelerator", CL_DEVICE_TYPE_ACCELERATOR}};
    if (!selector || !*selector || is_word(selector, "default"))
        return default_of(list, count);
    if (cla_selector_is_number(selector))
        return NULL;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (is_word(selector, types[i].name))
            return first_of_type(list, count, types[i].type);
    const char *colon = strchr(selector, ':');
    const size_t length = colon ? (size_t)(colon - selector) : strlen(selector);
    for (size_t i = 0; i < count; i++) {
        const struct device_entry *e = &list[i];
        const bool matches = colon ? half_matches(selector, length, e->platform_index, e->platform_name) &&
                                         half_matches(colon + 1, strlen(colon + 1), e->device_index, e->device_name)
                                   : contains(e->platform_name, selector, length) || contains(e->device_name, selector, length);
        if (matches)
            return e;
    }
    return NULL;
}

static void pass_over(struct device_list *list, const char *call, cl_int code)
{
    if (code != CL_SUCCESS && code != CL_DEVICE_NOT_FOUND) {
        list->failure = code;
        list->failed_call = call;
    }
}

/* False: out of memory. */
static bool add_devices(struct device_list *list, int platform_index, cl_platform_id platform)
{
    cl_uint count = 0;
    cl_int code = clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, NULL, &count);
    if (code != CL_SUCCESS || count == 0) {
        pass_over(list, "clGetDeviceIDs", code);
        return true;
    }
    cl_device_id *ids = calloc(count, sizeof *ids);
    struct device_entry *entries = ids ? realloc(list->entries, (list->count + count) * sizeof *entries) : NULL;
    if (entries)
        list->entries = entries;
    code = entries ? clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, count, ids, NULL) : CL_OUT_OF_HOST_MEMORY;
    if (code != CL_SUCCESS) {
        free(ids);
        pass_over(list, "clGetDeviceIDs", code);
        return entries != NULL;
    }
    for (cl_uint i = 0; i < count; i++) {
        cl_bool available = CL_TRUE;
        struct device_entry *e = &list->entries[list->count];
        memset(e, 0, sizeof *e);
        e->platform_index = platform_index;
        e->device_index = (int)i;
        e->platform = platform;
        e->device = ids[i];
        code = clGetDeviceInfo(ids[i], CL_DEVICE_TYPE, sizeof e->type, &e->type, NULL);
        if (code != CL_SUCCESS) {
            pass_over(list, "clGetDeviceInfo", code);
            continue;
        }
        clGetDeviceInfo(ids[i], CL_DEVICE_AVAILABLE, sizeof available, &available, NULL);
        cla_read_platform_text(platform, CL_PLATFORM_NAME, e->platform_name, sizeof e->platform_name);
        cla_read_device_text(ids[i], CL_DEVICE_NAME, e->device_name, sizeof e->device_name);
        list->count += available == CL_TRUE;
    }
    free(ids);
    return true;
}

static clattn_status no_platform(clattn_error *error, int32_t code)
{
    if (!cla_opencl_function("clGetPlatformIDs"))
        cla_fail(error, CLATTN_NO_PLATFORM, "",
                 "the OpenCL library was not found (clGetPlatformIDs: %s): install a loader (Debian, Ubuntu: apt-get install "
                 "ocl-icd-libopencl1) and a driver, or name the library in CLATTN_OPENCL_LIBRARY",
                 cla_cl_name(code));
    else
        cla_fail(
            error, CLATTN_NO_PLATFORM, "",
            "no OpenCL platform was found (clGetPlatformIDs: %s). The OpenCL loader looks for drivers in /etc/OpenCL/vendors, "
            "or where "
            "OCL_ICD_VENDORS points: "
            "install your device's driver, or PoCL for the processor (Debian, Ubuntu: apt-get install pocl-opencl-icd)",
            cla_cl_name(code));
    cla_set_cl_code(error, code);
    return CLATTN_NO_PLATFORM;
}

static clattn_status no_device(const struct device_list *list, unsigned platforms, clattn_error *error)
{
    struct text why = {0};
    if (list->failed_call)
        cla_text_add(&why, " (%s: %s)", list->failed_call, cla_cl_name(list->failure));
    cla_fail(error, CLATTN_NO_DEVICE, "",
             "%u OpenCL platform(s), but none offers a device that is available%s; run clinfo to see why", platforms,
             why.data ? why.data : "");
    cla_text_free(&why);
    return CLATTN_NO_DEVICE;
}

static clattn_status ask_platforms(struct device_list *list, clattn_error *error)
{
    cl_uint count = 0;
    cl_int code = clGetPlatformIDs(0, NULL, &count);
    memset(list, 0, sizeof *list);
    if (code == CL_OUT_OF_HOST_MEMORY)
        return cla_fail_cl(error, code, "clGetPlatformIDs");
    if (code != CL_SUCCESS || count == 0)
        return no_platform(error, code != CL_SUCCESS ? code : PLATFORM_NOT_FOUND_KHR);
    cl_platform_id *platforms = calloc(count, sizeof *platforms);
    if (!platforms)
        return cla_fail(error, CLATTN_OUT_OF_HOST_MEMORY, "", "out of host memory while listing devices");
    code = clGetPlatformIDs(count, platforms, NULL);
    if (code != CL_SUCCESS) {
        free(platforms);
        return cla_fail_cl(error, code, "clGetPlatformIDs");
    }
    bool complete = true;
    for (cl_uint i = 0; complete && i < count; i++)
        complete = add_devices(list, (int)i, platforms[i]);
    free(platforms);
    if (!complete) {
        free(list->entries);
        return cla_fail(error, CLATTN_OUT_OF_HOST_MEMORY, "", "out of host memory while listing devices");
    }
    if (list->count == 0) {
        free(list->entries);
        return no_device(list, (unsigned)count, error);
    }
    return CLATTN_SUCCESS;
}

/* One thread at a time: implementations initialize at the first query of a process. */
static clattn_status list_devices(struct device_list *list, clattn_error *error)
{
    cla_process_lock_take();
    const clattn_status status = ask_platforms(list, error);
    cla_process_lock_give();
    return status;
}

clattn_status clattn_devices(clattn_device_visitor visit, void *user, clattn_error *error)
{
    struct device_list list;
    cla_clear(error);
    if (!visit)
        return cla_fail(error, CLATTN_INVALID_ARGUMENT, "visit", "visit is NULL");
    TRY(list_devices(&list, error));
    for (size_t i = 0; i < list.count; i++)
        if (!visit(user, list.entries[i].platform_index, list.entries[i].device_index, list.entries[i].platform,
                   list.entries[i].device))
            break;
    free(list.entries);
    return CLATTN_SUCCESS;
}

/* `variable`: the environment variable that holds the selector, or NULL. */
static clattn_status find(const char *selector, const char *variable, cl_device_id *device, clattn_error *error)
{
    struct device_list list;
    TRY(list_devices(&list, error));
    const struct device_entry *found = cla_device_match(list.entries, list.count, selector);
    clattn_status status = CLATTN_SUCCESS;
    if (found) {
        *device = found->device;
    } else {
        struct text there = {0};
        for (size_t i = 0; i < list.count; i++)
            cla_text_add(&there, "\n  %d:%d  %s: %s", list.entries[i].platform_index, list.entries[i].device_index,
                         list.entries[i].platform_name, list.entries[i].device_name);
        status =
            cla_fail(error, CLATTN_NO_DEVICE, variable ? variable : "device", "%s%sno device matches \"%s\"%s; there are:%s",
                     variable ? variable : "", variable ? " in the environment: " : "", selector ? selector : "default",
                     cla_selector_is_number(selector) ? " (a number alone: write PLATFORM:DEVICE, such as 0:1)" : "",
                     there.data ? there.data : "");
        cla_text_free(&there);
    }
    free(list.entries);
    return status;
}

clattn_status cla_device_find(bool ignore_environment, const char *selector, cl_device_id *device, clattn_error *error)
{
    const bool named = selector && *selector;
    const char *other = named ? NULL : cla_variable(ignore_environment, VARIABLE_DEVICE);
    return other ? find(other, cla_variable_name(VARIABLE_DEVICE), device, error) : find(selector, NULL, device, error);
}

clattn_status clattn_device_find(const char *selector, cl_device_id *device, clattn_error *error)
{
    cla_clear(error);
    if (!device)
        return cla_fail(error, CLATTN_INVALID_ARGUMENT, "device", "device is NULL");
    return cla_device_find(false, selector, device, error);
}
