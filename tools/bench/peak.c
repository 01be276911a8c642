/* SPDX-License-Identifier: Apache-2.0 */
#include "peak.h"

#include <stdio.h>
#include <string.h>

enum { REPEATS = 8, CPU_GROUPS = 4, GPU_GROUPS = 64, GPU_WORK_GROUP = 256, ACCUMULATORS = 12, WIDEST = 16 };

/* V is the vector type, FMA the multiply-add. The accumulators tend to y / (1 - x), so that no number becomes subnormal. A
 * group works on one stretch of memory, its items side by side. */
static const char kernels[] =
    "#define STEP(a) a = FMA(a, x, y);\n"
    "#define ALL STEP(a0) STEP(a1) STEP(a2) STEP(a3) STEP(a4) STEP(a5) STEP(a6) STEP(a7) STEP(a8) STEP(a9) STEP(a10) "
    "STEP(a11)\n"
    "__kernel void multiply_add(__global V *out, uint count, float seed)\n"
    "{\n"
    "    const V x = (V)(0.9f + seed), y = (V)(0.1f);\n"
    "    V a0 = x + 1.0f, a1 = x + 2.0f, a2 = x + 3.0f, a3 = x + 4.0f, a4 = x + 5.0f, a5 = x + 6.0f;\n"
    "    V a6 = x + 7.0f, a7 = x + 8.0f, a8 = x + 9.0f, a9 = x + 10.0f, a10 = x + 11.0f, a11 = x + 12.0f;\n"
    "    for (uint i = 0; i < count; i += 4) {\n"
    "        ALL ALL ALL ALL\n"
    "    }\n"
    "    out[get_global_id(0)] = a0 + a1 + a2 + a3 + a4 + a5 + a6 + a7 + a8 + a9 + a10 + a11;\n"
    "}\n"
    "#define BOUNDS \\\n"
    "    const ulong step = get_local_size(0), share = (count + get_num_groups(0) - 1) / get_num_groups(0); \\\n"
    "    const ulong first = share * get_group_id(0), end = min(first + share, count); \\\n"
    "    ulong i = first + get_local_id(0);\n"
    "__kernel void read(__global const V *in, __global V *out, ulong count)\n"
    "{\n"
    "    BOUNDS\n"
    "    V a = (V)(0.0f), b = a, c = a, d = a;\n"
    "    for (; i + 3 * step < end; i += 4 * step) {\n"
    "        a += in[i];\n"
    "        b += in[i + step];\n"
    "        c += in[i + 2 * step];\n"
    "        d += in[i + 3 * step];\n"
    "    }\n"
    "    for (; i < end; i += step)\n"
    "        a += in[i];\n"
    "    out[get_global_id(0)] = a + b + c + d;\n"
    "}\n"
    "__kernel void copy(__global const V *in, __global V *out, ulong count)\n"
    "{\n"
    "    BOUNDS\n"
    "    for (; i < end; i += step)\n"
    "        out[i] = in[i];\n"
    "}\n";

struct meter {
    struct session *session;
    cl_device_id device;
    bool is_cpu, has_fma;
    size_t groups, work_group, bytes; /* bytes of each memory buffer */
    cl_mem in, out;
    struct peak *peak;
};

static int fail(const struct meter *m, const char *call, cl_int code) { return cli_fail_cl(m->session->command, call, code); }

/* Seconds of a finished command; releases the event. 0: no time was shown. */
static double time_of(cl_event event)
{
    cl_ulong start = 0, end = 0;
    const bool known = clWaitForEvents(1, &event) == CL_SUCCESS &&
                       clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_START, sizeof start, &start, NULL) == CL_SUCCESS &&
                       clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof end, &end, NULL) == CL_SUCCESS;
    clReleaseEvent(event);
    return known && end > start ? 1e-9 * (double)(end - start) : 0.0;
}

static int launch_groups(const struct session *session, cl_kernel kernel, size_t groups, size_t work_group, double *seconds)
{
    const size_t global = groups * work_group;
    cl_event event;
    const cl_int code = clEnqueueNDRangeKernel(session->queue, kernel, 1, NULL, &global, &work_group, 0, NULL, &event);
    if (code != CL_SUCCESS)
        return cli_fail_cl(session->command, "clEnqueueNDRangeKernel", code);
    *seconds = time_of(event);
    return CLI_OK;
}

static int launch(const struct meter *m, cl_kernel kernel, double *seconds)
{
    return launch_groups(m->session, kernel, m->groups, m->work_group, seconds);
}

/* The best of several launches, and work / time of it, if that is more than *rate. */
static int best_rate(const struct meter *m, cl_kernel kernel, double work, double *rate)
{
    for (int i = 0; i < REPEATS; i++) {
        double seconds = 0;
        const int code = launch(m, kernel, &seconds);
        if (code != CLI_OK)
            return code;
        if (seconds > 0 && work / seconds > *rate)
            *rate = work / seconds;
    }
    return CLI_OK;
}

/* ------------------------------------------------------------------------------------------------------------- arithmetic */

/* Keeps this kernel with its arguments, instead of a slower one. */
static void keep(const struct meter *m, cl_kernel kernel, double operations)
{
    struct peak *const peak = m->peak;
    if (peak->again.kernel != NULL)
        clReleaseKernel(peak->again.kernel);
    peak->again.kernel = kernel;
    peak->again.groups = m->groups;
    peak->again.work_group = m->work_group;
    peak->again.operations = operations;
}

/* As many rounds as last a while, then the best of several. */
static int measure_fma(const struct meter *m, cl_kernel kernel, int width)
{
    const cl_float seed = 0.0f;
    const double before = m->peak->fma;
    cl_uint count = 1024;
    double seconds = 0;
    clSetKernelArg(kernel, 0, sizeof m->peak->again.sums, &m->peak->again.sums);
    clSetKernelArg(kernel, 2, sizeof seed, &seed);
    for (;; count *= 2) {
        clSetKernelArg(kernel, 1, sizeof count, &count);
        int code = launch(m, kernel, &seconds); /* the first of all may hold the device's own compiling */
        code = code != CLI_OK ? code : launch(m, kernel, &seconds);
        if (code != CLI_OK)
            return code;
        if (seconds > 15e-3 || count >= 1u << 28)
            break;
    }
    const double work = 2.0 * ACCUMULATORS * width * (double)count * (double)(m->groups * m->work_group);
    const int code = best_rate(m, kernel, work, &m->peak->fma);
    if (m->peak->fma > before)
        keep(m, kernel, work);
    return code;
}

/* ----------------------------------------------------------------------------------------------------------------- memory */

static void set_memory_args(const struct meter *m, cl_kernel kernel, int width, size_t bytes)
{
    const cl_ulong count = bytes / sizeof(float) / (size_t)width;
    clSetKernelArg(kernel, 0, sizeof m->in, &m->in);
    clSetKernelArg(kernel, 1, sizeof m->out, &m->out);
    clSetKernelArg(kernel, 2, sizeof count, &count);
}

/* A device that would take too long over so much memory (a simulator) gets less. */
static int bear_bytes(struct meter *m, cl_kernel kernel, int width)
{
    for (size_t bytes = (size_t)1 << 20; bytes < m->bytes; bytes *= 4) {
        double seconds = 0;
        set_memory_args(m, kernel, width, bytes);
        int code = launch(m, kernel, &seconds); /* the first of all may hold the device's own compiling */
        code = code != CLI_OK ? code : launch(m, kernel, &seconds);
        if (code != CLI_OK)
            return code;
        if (seconds > 0.1)
            m->bytes = bytes;
    }
    return CLI_OK;
}

static int measure_memory(struct meter *m, cl_kernel kernel, int width, double passes, double *rate)
{
    const int code = bear_bytes(m, kernel, width);
    if (code != CLI_OK)
        return code;
    set_memory_args(m, kernel, width, m->bytes);
    return best_rate(m, kernel, passes * (double)m->bytes, rate);
}

static int measure_copy_command(const struct meter *m)
{
    for (int i = 0; i < REPEATS; i++) {
        cl_event event;
        const cl_int code = clEnqueueCopyBuffer(m->session->queue, m->in, m->out, 0, 0, m->bytes, 0, NULL, &event);
        if (code != CL_SUCCESS)
            return fail(m, "clEnqueueCopyBuffer", code);
        const double seconds = time_of(event);
        if (seconds > 0 && 2.0 * (double)m->bytes / seconds > m->peak->copy)
            m->peak->copy = 2.0 * (double)m->bytes / seconds;
    }
    return CLI_OK;
}

/* ----------------------------------------------------------------------------------------------------------------- kernels */

/* One kernel for one vector width; each is created only when it is measured, since some devices compile it then. */
static int with_kernel(struct meter *m, cl_program program, const char *name, int width)
{
    cl_int code;
    cl_kernel kernel = clCreateKernel(program, name, &code);
    if (kernel == NULL)
        return fail(m, "clCreateKernel", code);
    int result;
    if (strcmp(name, "multiply_add") == 0)
        result = measure_fma(m, kernel, width);
    else if (strcmp(name, "read") == 0)
        result = measure_memory(m, kernel, width, 1.0, &m->peak->read);
    else
        result = measure_memory(m, kernel, width, 2.0, &m->peak->copy);
    if (kernel != m->peak->again.kernel)
        clReleaseKernel(kernel);
    return result;
}

static int with_width(struct meter *m, int width, bool memory_too)
{
    static const char *const names[] = {"multiply_add", "read", "copy"};
    const char *text = kernels;
    char options[64], type[16] = "float";
    cl_int code;
    if (width > 1)
        snprintf(type, sizeof type, "float%d", width);
    snprintf(options, sizeof options, "-DV=%s -DFMA=%s", type, m->has_fma ? "fma" : "mad");
    cl_program program = clCreateProgramWithSource(clattn_context_cl(m->session->context), 1, &text, NULL, &code);
    if (program == NULL)
        return fail(m, "clCreateProgramWithSource", code);
    code = clBuildProgram(program, 1, &m->device, options, NULL, NULL);
    int result = code == CL_SUCCESS ? CLI_OK : fail(m, "clBuildProgram", code);
    for (int i = 0; i < (memory_too ? 3 : 1) && result == CLI_OK; i++)
        result = with_kernel(m, program, names[i], width);
    clReleaseProgram(program);
    return result;
}

/* --------------------------------------------------------------------------------------------------------------- the whole */

static void know_device(struct meter *m)
{
    cl_device_type type = 0;
    cl_device_fp_config single = 0;
    cl_uint units = 1;
    size_t most = 1;
    cl_ulong largest = 0, all = 0;
    (void)clGetDeviceInfo(m->device, CL_DEVICE_TYPE, sizeof type, &type, NULL);
    (void)clGetDeviceInfo(m->device, CL_DEVICE_SINGLE_FP_CONFIG, sizeof single, &single, NULL);
    (void)clGetDeviceInfo(m->device, CL_DEVICE_MAX_COMPUTE_UNITS, sizeof units, &units, NULL);
    (void)clGetDeviceInfo(m->device, CL_DEVICE_MAX_WORK_GROUP_SIZE, sizeof most, &most, NULL);
    (void)clGetDeviceInfo(m->device, CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof largest, &largest, NULL);
    (void)clGetDeviceInfo(m->device, CL_DEVICE_GLOBAL_MEM_SIZE, sizeof all, &all, NULL);
    m->is_cpu = (type & CL_DEVICE_TYPE_CPU) != 0;
    m->has_fma = (single & CL_FP_FMA) != 0;
    m->groups = units * (size_t)(m->is_cpu ? CPU_GROUPS : GPU_GROUPS);
    m->work_group = m->is_cpu ? 1 : most < GPU_WORK_GROUP ? most : GPU_WORK_GROUP;
    m->bytes = (size_t)(m->is_cpu ? 256 : 1024) << 20;
    while (m->bytes > (size_t)1 << 20 && (m->bytes > largest / 2 || m->bytes > all / 8))
        m->bytes /= 2;
}

static int make_buffers(struct meter *m)
{
    const cl_uint zero = 0;
    const size_t sums = m->groups * m->work_group * WIDEST * sizeof(cl_float);
    cl_int code;
    const cl_context context = clattn_context_cl(m->session->context);
    m->in = clCreateBuffer(context, CL_MEM_READ_WRITE, m->bytes, NULL, &code);
    m->out = m->in != NULL ? clCreateBuffer(context, CL_MEM_READ_WRITE, m->bytes, NULL, &code) : NULL;
    m->peak->again.sums = m->out != NULL ? clCreateBuffer(context, CL_MEM_READ_WRITE, sums, NULL, &code) : NULL;
    if (m->peak->again.sums == NULL)
        return fail(m, "clCreateBuffer", code);
    code = clEnqueueFillBuffer(m->session->queue, m->in, &zero, sizeof zero, 0, m->bytes, 0, NULL, NULL);
    if (code == CL_SUCCESS)
        code = clEnqueueFillBuffer(m->session->queue, m->out, &zero, sizeof zero, 0, m->bytes, 0, NULL, NULL);
    return code == CL_SUCCESS ? CLI_OK : fail(m, "clEnqueueFillBuffer", code);
}

int peak_measure(struct session *session, struct peak *peak)
{
    struct meter m = {.session = session, .device = clattn_context_device(session->context), .peak = peak};
    memset(peak, 0, sizeof *peak);
    know_device(&m);
    int code = make_buffers(&m);
    code = code != CLI_OK ? code : with_width(&m, m.is_cpu ? WIDEST : 4, true);
    code = code != CLI_OK ? code : with_width(&m, m.is_cpu ? 8 : 1, false);
    code = code != CLI_OK ? code : measure_copy_command(&m);
    if (m.in != NULL)
        clReleaseMemObject(m.in);
    if (m.out != NULL)
        clReleaseMemObject(m.out);
    return code;
}

int peak_fma_now(struct session *session, const struct peak *peak, double *rate)
{
    double seconds = 0;
    const int code = launch_groups(session, peak->again.kernel, peak->again.groups, peak->again.work_group, &seconds);
    *rate = seconds > 0 ? peak->again.operations / seconds : 0.0;
    return code;
}

void peak_free(struct peak *peak)
{
    if (peak->again.kernel != NULL)
        clReleaseKernel(peak->again.kernel);
    if (peak->again.sums != NULL)
        clReleaseMemObject(peak->again.sums);
    memset(peak, 0, sizeof *peak);
}
