/* SPDX-License-Identifier: Apache-2.0
 * An OpenCL implementation for tests, of three platforms: one whose device query fails and leaves the count as it was, one that
 * succeeds and has no device, and one with a device. It can be listed and asked, and nothing else. */
#include <CL/cl.h>
#include <CL/cl_icd.h>

#include <string.h>

/* A handle begins with the table of its implementation, through which the loader calls. */
struct _cl_platform_id {
    const cl_icd_dispatch *dispatch;
    const char *name;
};
struct _cl_device_id {
    const cl_icd_dispatch *dispatch;
};

static cl_icd_dispatch table;
static struct _cl_platform_id platforms[] = {{&table, "Stub that fails"}, {&table, "Stub without"}, {&table, "Stub with one"}};
static struct _cl_device_id device = {&table};

enum { PLATFORMS = sizeof platforms / sizeof *platforms };

static cl_int answer(const void *value, size_t length, size_t size, void *out, size_t *needed)
{
    if (needed)
        *needed = length;
    if (out && size < length)
        return CL_INVALID_VALUE;
    if (out)
        memcpy(out, value, length);
    return CL_SUCCESS;
}

static cl_int answer_text(const char *text, size_t size, void *out, size_t *needed)
{
    return answer(text, strlen(text) + 1, size, out, needed);
}

static cl_int CL_API_CALL get_platform_info(cl_platform_id platform, cl_platform_info name, size_t size, void *out,
                                            size_t *needed)
{
    switch (name) {
    case CL_PLATFORM_NAME:
        return answer_text(platform->name, size, out, needed);
    case CL_PLATFORM_VERSION:
        return answer_text("OpenCL 1.2 stub", size, out, needed);
    case CL_PLATFORM_EXTENSIONS:
        return answer_text("cl_khr_icd", size, out, needed);
    case CL_PLATFORM_ICD_SUFFIX_KHR:
        return answer_text("STUB", size, out, needed);
    case CL_PLATFORM_PROFILE:
        return answer_text("FULL_PROFILE", size, out, needed);
    case CL_PLATFORM_VENDOR:
        return answer_text("clattn", size, out, needed);
    default:
        return CL_INVALID_VALUE;
    }
}

static cl_int CL_API_CALL get_device_ids(cl_platform_id platform, cl_device_type type, cl_uint size, cl_device_id *out,
                                         cl_uint *count)
{
    (void)type;
    if (platform == &platforms[0])
        return CL_DEVICE_NOT_FOUND;
    const cl_uint there = platform == &platforms[2];
    if (count)
        *count = there;
    if (out && size > 0 && there)
        *out = &device;
    return CL_SUCCESS;
}

/* Other queries are refused, as by a driver that lacks them. */
static cl_int CL_API_CALL get_device_info(cl_device_id id, cl_device_info name, size_t size, void *out, size_t *needed)
{
    const cl_device_type type = CL_DEVICE_TYPE_ACCELERATOR;
    const cl_bool available = CL_TRUE;
    const cl_platform_id platform = &platforms[2];
    (void)id;
    switch (name) {
    case CL_DEVICE_TYPE:
        return answer(&type, sizeof type, size, out, needed);
    case CL_DEVICE_AVAILABLE:
        return answer(&available, sizeof available, size, out, needed);
    case CL_DEVICE_PLATFORM:
        return answer(&platform, sizeof platform, size, out, needed);
    case CL_DEVICE_NAME:
        return answer_text("Only device", size, out, needed);
    default:
        return CL_INVALID_VALUE;
    }
}

static cl_int CL_API_CALL get_platforms(cl_uint size, cl_platform_id *out, cl_uint *count)
{
    table.clGetPlatformInfo = get_platform_info;
    table.clGetDeviceIDs = get_device_ids;
    table.clGetDeviceInfo = get_device_info;
    if (count)
        *count = PLATFORMS;
    for (cl_uint i = 0; out && i < size && i < PLATFORMS; i++)
        out[i] = &platforms[i];
    return CL_SUCCESS;
}

/* The two names that the loaders look up. */
#define SHOWN __attribute__((visibility("default")))
SHOWN cl_int CL_API_CALL clIcdGetPlatformIDsKHR(cl_uint size, cl_platform_id *out, cl_uint *count);
SHOWN cl_int CL_API_CALL clIcdGetPlatformIDsKHR(cl_uint size, cl_platform_id *out, cl_uint *count)
{
    return get_platforms(size, out, count);
}

SHOWN void *CL_API_CALL clGetExtensionFunctionAddress(const char *name)
{
    if (strcmp(name, "clGetPlatformInfo") == 0)
        return (void *)get_platform_info;
    return strcmp(name, "clIcdGetPlatformIDsKHR") == 0 ? (void *)clIcdGetPlatformIDsKHR : NULL;
}
