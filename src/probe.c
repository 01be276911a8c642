/* SPDX-License-Identifier: Apache-2.0 */
#include "probe.h"
#include "environment.h"

#include "os/os.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Values of newer headers and of cl_nv_device_attribute_query, which the OpenCL 1.2 headers lack. */
#define DEVICE_NATIVE_VECTOR_WIDTH_FLOAT 0x103A
#define DEVICE_SVM_CAPABILITIES 0x1053
#define DEVICE_COMPUTE_CAPABILITY_MAJOR_NV 0x4000
#define DEVICE_COMPUTE_CAPABILITY_MINOR_NV 0x4001
#define DEVICE_WARP_SIZE_NV 0x4003
#define DEVICE_WAVEFRONT_WIDTH_AMD 0x4043

/* A string of the device, or of the platform if `device` is NULL. */
static void read_text(cl_device_id device, cl_platform_id platform, cl_uint name, char *out, size_t size)
{
    size_t needed = 0;
    out[0] = '\0';
    const cl_int asked =
        device ? clGetDeviceInfo(device, name, 0, NULL, &needed) : clGetPlatformInfo(platform, name, 0, NULL, &needed);
    if (asked != CL_SUCCESS || needed == 0)
        return;
    char *value = calloc(needed + 1, 1);
    if (value && (device ? clGetDeviceInfo(device, name, needed, value, NULL)
                         : clGetPlatformInfo(platform, name, needed, value, NULL)) == CL_SUCCESS) {
        /* Made one line, since each fact is printed on one line. */
        for (char *c = value; *c; c++)
            if (*c == '\n' || *c == '\r')
                *c = ' ';
        snprintf(out, size, "%s", value);
        for (size_t length = strlen(out); length && out[length - 1] == ' '; length--)
            out[length - 1] = '\0';
    }
    free(value);
}

void cla_read_device_text(cl_device_id device, cl_device_info name, char *out, size_t size)
{
    read_text(device, NULL, name, out, size);
}

void cla_read_platform_text(cl_platform_id platform, cl_platform_info name, char *out, size_t size)
{
    read_text(NULL, platform, name, out, size);
}

/* Any unsigned scalar, of any width on this device; 0 if the query fails. */
static uint64_t read_number(cl_device_id device, cl_device_info name)
{
    union {
        cl_uint narrow;
        cl_ulong wide;
        unsigned char bytes[64];
    } value;
    size_t size = 0;
    memset(&value, 0, sizeof value);
    if (clGetDeviceInfo(device, name, sizeof value, &value, &size) != CL_SUCCESS)
        return 0;
    return size == sizeof value.narrow ? value.narrow : size == sizeof value.wide ? value.wide : 0;
}

static uint64_t read_first_item_limit(cl_device_id device)
{
    size_t sizes[16] = {0};
    if (clGetDeviceInfo(device, CL_DEVICE_MAX_WORK_ITEM_SIZES, sizeof sizes, sizes, NULL) != CL_SUCCESS)
        return 0;
    return sizes[0];
}

static void read_platform(cl_device_id device, struct facts *facts)
{
    cl_platform_id platform = NULL;
    if (clGetDeviceInfo(device, CL_DEVICE_PLATFORM, sizeof platform, &platform, NULL) != CL_SUCCESS || !platform)
        return;
    cla_read_platform_text(platform, CL_PLATFORM_NAME, facts->platform_name, sizeof facts->platform_name);
    cla_read_platform_text(platform, CL_PLATFORM_VERSION, facts->platform_version, sizeof facts->platform_version);
}

static uint64_t device_kind(uint64_t type)
{
    /* An implementation may report several kinds at once: a device that is also a CPU is treated as a CPU. */
    return type & CL_DEVICE_TYPE_CPU           ? DEVICE_CPU
           : type & CL_DEVICE_TYPE_GPU         ? DEVICE_GPU
           : type & CL_DEVICE_TYPE_ACCELERATOR ? DEVICE_ACCELERATOR
                                               : DEVICE_OTHER;
}

static void read_nvidia(cl_device_id device, struct facts *facts)
{
    if (!cla_facts_has_extension(facts, "cl_nv_device_attribute_query"))
        return;
    facts->nv_compute =
        read_number(device, DEVICE_COMPUTE_CAPABILITY_MAJOR_NV) * 10 + read_number(device, DEVICE_COMPUTE_CAPABILITY_MINOR_NV);
    facts->preferred_multiple = read_number(device, DEVICE_WARP_SIZE_NV);
    /* CL_DEVICE_LOCAL_MEM_SIZE is 48 KiB, the limit of a __local argument. A static array may use all that the chip allows a
     * thread block: measured on sm_90 (226 KiB builds and runs, 227 fails); the other values are from the table of compute
     * capabilities in the CUDA programming guide, less the 1 KiB that the system reserves. */
    const uint64_t kib = facts->nv_compute == 80 || facts->nv_compute == 87   ? 163
                         : facts->nv_compute == 86 || facts->nv_compute == 89 ? 99
                         : facts->nv_compute >= 90 && facts->nv_compute < 120 ? 226
                         : facts->nv_compute >= 120                           ? 99
                                                                              : 0;
    if (kib * 1024 > facts->local_mem_static)
        facts->local_mem_static = kib * 1024;
}

static void read_limits(cl_device_id device, struct facts *facts)
{
    facts->device_kind = device_kind(read_number(device, CL_DEVICE_TYPE));
    facts->vendor_id = read_number(device, CL_DEVICE_VENDOR_ID);
    facts->address_bits = read_number(device, CL_DEVICE_ADDRESS_BITS);
    facts->compute_units = read_number(device, CL_DEVICE_MAX_COMPUTE_UNITS);
    facts->clock_mhz = read_number(device, CL_DEVICE_MAX_CLOCK_FREQUENCY);
    facts->max_work_group = read_number(device, CL_DEVICE_MAX_WORK_GROUP_SIZE);
    facts->max_work_item_0 = read_first_item_limit(device);
    facts->local_mem_is_global = read_number(device, CL_DEVICE_LOCAL_MEM_TYPE) == CL_GLOBAL;
    facts->local_mem = read_number(device, CL_DEVICE_LOCAL_MEM_SIZE);
    facts->local_mem_static = facts->local_mem;
    facts->global_mem = read_number(device, CL_DEVICE_GLOBAL_MEM_SIZE);
    facts->max_alloc = read_number(device, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
    facts->cache = read_number(device, CL_DEVICE_GLOBAL_MEM_CACHE_SIZE);
    facts->max_parameters = read_number(device, CL_DEVICE_MAX_PARAMETER_SIZE);
    facts->base_align_bits = read_number(device, CL_DEVICE_MEM_BASE_ADDR_ALIGN);
    facts->vector_width = read_number(device, DEVICE_NATIVE_VECTOR_WIDTH_FLOAT);
    facts->svm = read_number(device, DEVICE_SVM_CAPABILITIES);
    facts->fma = (read_number(device, CL_DEVICE_SINGLE_FP_CONFIG) & CL_FP_FMA) != 0;
    /* A limit that could not be read must not exclude every engine: 1 always works. */
    facts->max_work_group = facts->max_work_group ? facts->max_work_group : 1;
    facts->max_work_item_0 = facts->max_work_item_0 ? facts->max_work_item_0 : facts->max_work_group;
}

static clattn_status override_from_environment(struct facts *facts, bool ignored, clattn_error *error)
{
    clattn_error cause;
    clattn_error_init(&cause);
    return cla_facts_override(facts, cla_variable(ignored, VARIABLE_DEVICE_OVERRIDE), &cause) == CLATTN_SUCCESS
               ? CLATTN_SUCCESS
               : cla_fail_variable(error, VARIABLE_DEVICE_OVERRIDE, &cause);
}

clattn_status cla_probe(cl_device_id device, const char *overrides, bool ignore_environment, struct facts *facts,
                        clattn_error *error)
{
    memset(facts, 0, sizeof *facts);
    read_platform(device, facts);
    cla_read_device_text(device, CL_DEVICE_NAME, facts->device_name, sizeof facts->device_name);
    cla_read_device_text(device, CL_DEVICE_VENDOR, facts->device_vendor, sizeof facts->device_vendor);
    cla_read_device_text(device, CL_DEVICE_VERSION, facts->device_version, sizeof facts->device_version);
    cla_read_device_text(device, CL_DRIVER_VERSION, facts->driver_version, sizeof facts->driver_version);
    cla_read_device_text(device, CL_DEVICE_OPENCL_C_VERSION, facts->c_version, sizeof facts->c_version);
    cla_read_device_text(device, CL_DEVICE_EXTENSIONS, facts->extensions, sizeof facts->extensions);
    read_limits(device, facts);
    read_nvidia(device, facts);
    if (facts->preferred_multiple == 0 && cla_facts_has_extension(facts, "cl_amd_device_attribute_query"))
        facts->preferred_multiple = read_number(device, DEVICE_WAVEFRONT_WIDTH_AMD);
    /* CPU devices of PoCL and of Intel's runtime are the host's processor; these two have no remote CPU devices. */
    facts->host_cpu = facts->device_kind == DEVICE_CPU && (cla_facts_is_pocl(facts) || cla_facts_is_intel_runtime(facts));
    facts->x86_bf16 = facts->host_cpu && (cla_processor_features() & CLA_AVX512_BF16) != 0;
    facts->x86_amx = facts->host_cpu && (cla_processor_features() & CLA_AMX_BF16) != 0;
    TRY(cla_facts_override(facts, overrides, error));
    return override_from_environment(facts, ignore_environment, error);
}
