/* SPDX-License-Identifier: Apache-2.0
 * A bool mask of 2.2 GiB, whose offsets go past 2^31. It takes memory and time that not every run of the tests has: skipped
 * unless CLATTN_TEST_BIG is set. */
#define _POSIX_C_SOURCE 200809L
#include "attend.h"

#include "random.h"

enum { QUERIES = 4096, KEYS = 576 * 1024, DIM = 8, KEPT = 16, SKIPPED = 77 };
#define MASK_BYTES ((size_t)QUERIES * KEYS)

/* Key number n that query i sees. */
static size_t kept_key(size_t i, size_t n) { return (size_t)(random_mix(i * KEPT + n) % KEYS); }

static float v_of(size_t key) { return random_signed(random_mix(key ^ 0x55)); }

static cl_mem make(cl_mem_flags flags, size_t bytes, void *data)
{
    cl_int code;
    cl_mem mem = clCreateBuffer(clattn_context_cl(bench.context), flags, bytes, data, &code);
    assert_int_equal(code, CL_SUCCESS);
    return mem;
}

/* Filled where it lies, so that there is one copy of it. */
static cl_mem make_mask(void)
{
    cl_int code;
    cl_mem mem = make(CL_MEM_READ_ONLY | CL_MEM_ALLOC_HOST_PTR, MASK_BYTES, NULL);
    uint8_t *mask = clEnqueueMapBuffer(bench.queue, mem, CL_TRUE, CL_MAP_WRITE, 0, MASK_BYTES, 0, NULL, NULL, &code);
    assert_int_equal(code, CL_SUCCESS);
    memset(mask, 0, MASK_BYTES);
    for (size_t i = 0; i < QUERIES; i++) {
        for (size_t n = 0; n < KEPT; n++) {
            mask[i * KEYS + kept_key(i, n)] = 1;
        }
    }
    assert_int_equal(clEnqueueUnmapMemObject(bench.queue, mem, mask, 0, NULL, NULL), CL_SUCCESS);
    assert_int_equal(clFinish(bench.queue), CL_SUCCESS);
    return mem;
}

static cl_mem make_floats(size_t count, bool values)
{
    float *data = calloc(count, sizeof *data);
    assert_non_null(data);
    for (size_t i = 0; values && i < count; i++) {
        data[i] = v_of(i / DIM);
    }
    cl_mem mem = make(CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, count * sizeof *data, data);
    free(data);
    return mem;
}

/* Every score is 0, so a row is the mean of the values that it sees, each once. */
static double wanted(size_t i)
{
    double sum = 0.0, count = 0.0;
    for (size_t n = 0; n < KEPT; n++) {
        bool again = false;
        for (size_t m = 0; m < n; m++) {
            again = again || kept_key(i, m) == kept_key(i, n);
        }
        sum += again ? 0.0 : (double)v_of(kept_key(i, n));
        count += again ? 0.0 : 1.0;
    }
    return sum / count;
}

static void check(const char *engine, int heads, cl_mem mask, cl_mem kv[2])
{
    char shape[128];
    clattn_problem p;
    clattn_plan_options options;
    clattn_plan *plan = NULL;
    clattn_call call;
    clattn_error error;
    clattn_error_init(&error);
    clattn_plan_options_init(&options);
    options.at_bounds = true;
    options.engine = engine;
    snprintf(shape, sizeof shape, "hq%d hkv1 q%d k%d d%d mask=qk", heads, (int)QUERIES, (int)KEYS, (int)DIM);
    assert_ok(clattn_problem_parse(shape, &p, &error), &error);
    assert_ok(clattn_plan_create(bench.context, &p, &options, &plan, &error), &error);
    const size_t count = (size_t)heads * QUERIES * DIM;
    cl_mem q = make_floats(count, false), o = make_floats(count, false);
    float *out = malloc(count * sizeof *out);
    assert_non_null(out);
    clattn_call_init(&call, plan);
    call.q = clattn_mem(q, 0);
    call.k = clattn_mem(kv[0], 0);
    call.v = clattn_mem(kv[1], 0);
    call.o = clattn_mem(o, 0);
    call.mask = clattn_mem(mask, 0);
    assert_ok(clattn_enqueue(plan, bench.queue, &call, 0, NULL, NULL, &error), &error);
    assert_int_equal(clEnqueueReadBuffer(bench.queue, o, CL_TRUE, 0, count * sizeof *out, out, 0, NULL, NULL), CL_SUCCESS);
    for (size_t i = 0; i < count; i++) {
        assert_near((double)out[i], wanted(i / DIM % QUERIES), 1e-6);
    }
    free(out);
    clReleaseMemObject(q);
    clReleaseMemObject(o);
    clattn_plan_destroy(plan);
}

/* With one head the kernel reads the mask itself. Four heads share it, so a pass classifies its tiles first. */
static void mask_offsets_past_two_to_the_31_are_right(void **state)
{
    (void)state;
    cl_ulong largest = 0;
    clGetDeviceInfo(clattn_context_device(bench.context), CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof largest, &largest, NULL);
    if (largest < MASK_BYTES) {
        fail_msg("this device's largest buffer has %llu bytes; %llu are needed", (unsigned long long)largest,
                 (unsigned long long)MASK_BYTES);
    }
    cl_mem mask = make_mask(), kv[2] = {make_floats((size_t)KEYS * DIM, false), make_floats((size_t)KEYS * DIM, true)};
    check(NULL, 1, mask, kv);
    check(NULL, 4, mask, kv);
    check("reference", 1, mask, kv);
    clReleaseMemObject(mask);
    clReleaseMemObject(kv[0]);
    clReleaseMemObject(kv[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(mask_offsets_past_two_to_the_31_are_right)};
    if (getenv("CLATTN_TEST_BIG") == NULL) {
        printf("skipped: set CLATTN_TEST_BIG=1 to run it; it takes 3 GiB and some minutes\n");
        return SKIPPED;
    }
    return cmocka_run_group_tests(tests, bench_open, bench_close);
}
