/* SPDX-License-Identifier: Apache-2.0 */
#include "binary.h"

#include "cache_file.h"

#include <stdlib.h>

#define MAX_DEVICES 64
#define MAX_KERNELS 16

/* The index of this device among the program's devices, which are all those of its OpenCL context. */
static bool find_device(cl_program program, cl_device_id device, size_t *index, size_t *count)
{
    cl_device_id devices[MAX_DEVICES];
    size_t bytes = 0;
    if (clGetProgramInfo(program, CL_PROGRAM_DEVICES, sizeof devices, devices, &bytes) != CL_SUCCESS)
        return false;
    *count = bytes / sizeof *devices;
    for (*index = 0; *index < *count; ++*index)
        if (devices[*index] == device)
            return true;
    return false;
}

bool cla_binary_get(cl_program program, cl_device_id device, struct text *binary)
{
    size_t sizes[MAX_DEVICES] = {0}, index = 0, count = 0;
    unsigned char *binaries[MAX_DEVICES] = {NULL}; /* NULL: not requested for this device */
    if (!find_device(program, device, &index, &count) ||
        clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, count * sizeof *sizes, sizes, NULL) != CL_SUCCESS ||
        sizes[index] == 0 || sizes[index] > CLA_CACHE_MAX_CONTENT)
        return false;
    binaries[index] = malloc(sizes[index]);
    const bool got = binaries[index] &&
                     clGetProgramInfo(program, CL_PROGRAM_BINARIES, count * sizeof *binaries, binaries, NULL) == CL_SUCCESS;
    if (got)
        cla_text_append(binary, (char *)binaries[index], sizes[index]);
    free(binaries[index]);
    return got && !binary->failed;
}

static bool kernels_can_be_created(cl_program program)
{
    cl_kernel kernels[MAX_KERNELS];
    cl_uint count = 0;
    if (clCreateKernelsInProgram(program, MAX_KERNELS, kernels, &count) != CL_SUCCESS)
        return false;
    for (cl_uint i = 0; i < count && i < MAX_KERNELS; i++)
        clReleaseKernel(kernels[i]);
    return count > 0;
}

cl_program cla_binary_load(cl_context cl, cl_device_id device, const char *options, const struct text *binary)
{
    const unsigned char *bytes = (const unsigned char *)binary->data;
    const size_t size = binary->length;
    cl_int status = CL_SUCCESS, code = CL_SUCCESS;
    cl_program program = clCreateProgramWithBinary(cl, 1, &device, &size, &bytes, &status, &code);
    if (!program || code != CL_SUCCESS)
        return NULL;
    if (status == CL_SUCCESS && clBuildProgram(program, 1, &device, options, NULL, NULL) == CL_SUCCESS &&
        kernels_can_be_created(program))
        return program;
    clReleaseProgram(program);
    return NULL;
}
