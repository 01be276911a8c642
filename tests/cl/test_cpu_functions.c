/* SPDX-License-Identifier: Apache-2.0
 * The cpu engine's own exp2 and tanh against long double, over all arguments that occur. */
/* ctest: quick */
#include "attend.h"

#include "engines/cpu/cpu.h"
#include "choose.h"
#include "facts.h"
#include "kernel_text.h"

enum { COUNT = 1 << 20 };

/* Follows the engine's kernel source. */
static const char kernel_text[] =
    "__kernel void functions(__global const float *x, __global float *power, __global float *tangent)\n"
    "{\n"
    "    elem in;\n"
    "    const long at = (long)get_global_id(0) * LANES;\n"
    "    for (int i = 0; i < LANES; i++) { LANE(in, i) = x[at + i]; }\n"
    "    elem y = EXP2(in), z = TANH(in);\n"
    "    for (int i = 0; i < LANES; i++) {\n"
    "        power[at + i] = LANE(y, i);\n"
    "        tangent[at + i] = LANE(z, i);\n"
    "    }\n"
    "}\n";

static float x[COUNT], power[COUNT], tangent[COUNT];
static bool is_cpu;
static bool has_fma;

static cl_program build_functions(int *lanes)
{
    static char text[16384];
    char why[200];
    struct facts here;
    struct config list[CLA_MAX_CONFIGS];
    struct source source;
    struct text defines = {0};
    clattn_problem problem;
    clattn_error error;
    cl_int code;
    cl_device_id device = clattn_context_device(bench.context);
    clattn_error_init(&error);
    assert_int_equal(clattn_context_facts(bench.context, text, sizeof text, NULL), CLATTN_SUCCESS);
    assert_ok(cla_facts_parse(text, &here, &error), &error);
    assert_ok(clattn_problem_parse("q1 d8", &problem, &error), &error);
    is_cpu = cla_engine_cpu.serves(&here, &problem, why, sizeof why);
    has_fma = here.fma != 0;
    if (!is_cpu) {
        return NULL;
    }
    assert_true(cla_engine_cpu.configs(&here, &problem, list) >= 1);
    *lanes = cla_cpu_lanes(&here);
    cla_kernel_defines(&here, &problem, &list[0], &defines);
    const char *const files[] = {"cl/base.cl", "cl/args.cl", "cl/tile.cl", cla_engine_cpu.file};
    assert_ok(cla_source_compose(&source, defines.data, files, COUNT_OF(files), CLATTN_SOURCE_DIR, &error), &error);
    cla_text_add(&source.text, "%s", kernel_text);
    const char *composed = source.text.data;
    cl_program program = clCreateProgramWithSource(clattn_context_cl(bench.context), 1, &composed, NULL, &code);
    assert_int_equal(code, CL_SUCCESS);
    assert_int_equal(clBuildProgram(program, 1, &device, "", NULL, NULL), CL_SUCCESS);
    cla_text_free(&defines);
    cla_source_free(&source);
    return program;
}

static cl_mem new_buffer(void *data)
{
    cl_int code;
    cl_mem mem =
        clCreateBuffer(clattn_context_cl(bench.context), CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, sizeof x, data, &code);
    assert_int_equal(code, CL_SUCCESS);
    return mem;
}

static float from_bits(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

/* Both signs; the special ones; every binade from 2^-30 to 2^8 in steps that no power of two divides. */
static void fill(void)
{
    static const float special[] = {0.0f,    -0.0f,   INFINITY, -INFINITY, NAN,      -126.0f, -126.00001f, -127.0f,
                                    -149.0f, -150.0f, -1e30f,   -3.4e38f,  -125.99f, 1e-40f,  -1e-40f,     -0.5f};
    memcpy(x, special, sizeof special);
    const uint32_t first = 0x30800000u, last = 0x43800000u, step = (last - first) / (COUNT / 2);
    for (size_t i = COUNT_OF(special); i < COUNT; i++) {
        const float size = from_bits(first + (uint32_t)(i / 2) * step + (uint32_t)(i % 7));
        x[i] = i % 2 ? -size : size;
    }
}

static int open_all(void **state)
{
    if (bench_open(state) != 0) {
        return -1;
    }
    int lanes = 1;
    fill();
    cl_program program = build_functions(&lanes);
    if (program == NULL) {
        return 0;
    }
    cl_int code;
    cl_kernel kernel = clCreateKernel(program, "functions", &code);
    cl_mem mems[3] = {new_buffer(x), new_buffer(power), new_buffer(tangent)};
    for (cl_uint i = 0; i < 3; i++) {
        clSetKernelArg(kernel, i, sizeof(cl_mem), &mems[i]);
    }
    const size_t size = COUNT / (size_t)lanes;
    const bool ran =
        clEnqueueNDRangeKernel(bench.queue, kernel, 1, NULL, &size, NULL, 0, NULL, NULL) == CL_SUCCESS &&
        clEnqueueReadBuffer(bench.queue, mems[1], CL_TRUE, 0, sizeof power, power, 0, NULL, NULL) == CL_SUCCESS &&
        clEnqueueReadBuffer(bench.queue, mems[2], CL_TRUE, 0, sizeof tangent, tangent, 0, NULL, NULL) == CL_SUCCESS;
    for (size_t i = 0; i < 3; i++) {
        clReleaseMemObject(mems[i]);
    }
    clReleaseKernel(kernel);
    clReleaseProgram(program);
    return ran ? 0 : -1;
}

/* Distance in units of the last place of the exact value. */
static double ulps(float got, long double want)
{
    int exponent;
    frexpl(want, &exponent);
    return (double)(fabsl((long double)got - want) / ldexpl(1.0L, exponent - 24));
}

static void exp2_is_accurate_over_its_range(void **state)
{
    (void)state;
    const double most = has_fma ? 2.1 : 2.3;
    size_t checked = 0;
    if (!is_cpu) {
        skip();
    }
    for (size_t i = 0; i < COUNT; i++) {
        if (isnan(x[i])) {
            assert_true(isnan(power[i]));
        } else if (x[i] < -126.0f) {
            if (power[i] != 0.0f) {
                fail_msg("exp2(%.9g) is %.9g, wanted exactly 0", x[i], power[i]);
            }
        } else if (x[i] <= 127.0f) {
            const double error = ulps(power[i], exp2l(x[i]));
            if (!(error <= most)) {
                fail_msg("exp2(%.9g) is %.9g: %.2f ulp off", x[i], power[i], error);
            }
            checked++;
        }
    }
    assert_true(checked > COUNT / 2);
    assert_true(power[0] == 1.0f && power[1] == 1.0f);
}

static void tanh_is_accurate_everywhere(void **state)
{
    (void)state;
    if (!is_cpu) {
        skip();
    }
    for (size_t i = 0; i < COUNT; i++) {
        if (isnan(x[i])) {
            assert_true(isnan(tangent[i]));
        } else if (fabsf(x[i]) < 1e-30f) {
            /* A subnormal may have become 0. */
            assert_true(fabsf(tangent[i] - x[i]) <= 1e-38f);
        } else {
            const double error = ulps(tangent[i], tanhl(x[i]));
            if (!(error <= 2.5)) {
                fail_msg("tanh(%.9g) is %.9g: %.2f ulp off", x[i], tangent[i], error);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exp2_is_accurate_over_its_range),
        cmocka_unit_test(tanh_is_accurate_everywhere),
    };
    return cmocka_run_group_tests(tests, open_all, bench_close);
}
