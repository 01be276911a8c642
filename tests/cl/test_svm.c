/* SPDX-License-Identifier: Apache-2.0
 * Shared virtual memory: pointers as buffers give the bits that buffers give, and are refused where a device has none. */
/* ctest: quick */
#include "attend.h"

#include "os/os.h"

#define SHAPE "b2 hq4 hkv2 q5 k70 d8 dv12 lse"
enum { SLOTS = 5, SLACK = 3 };

typedef void *(CL_API_CALL *alloc_fn)(cl_context, cl_bitfield, size_t, cl_uint);
typedef void(CL_API_CALL *free_fn)(cl_context, void *);
typedef cl_int(CL_API_CALL *copy_fn)(cl_command_queue, cl_bool, void *, const void *, size_t, cl_uint, const cl_event *,
                                     cl_event *);

static alloc_fn svm_alloc;
static free_fn svm_free;
static copy_fn svm_copy;
static clattn_problem problem;
static clattn_error error;
static size_t counts[SLOTS]; /* elements of q, k, v, o, lse */

static bool device_has_svm(void)
{
    cl_bitfield bits = 0;
    return clGetDeviceInfo(clattn_context_device(bench.context), 0x1053, sizeof bits, &bits, NULL) == CL_SUCCESS && bits != 0;
}

static int open_all(void **state)
{
    if (bench_open(state) != 0) {
        return -1;
    }
    clattn_error_init(&error);
    assert_ok(clattn_problem_parse(SHAPE, &problem, &error), &error);
    svm_alloc = (alloc_fn)cla_opencl_function("clSVMAlloc");
    svm_free = (free_fn)cla_opencl_function("clSVMFree");
    svm_copy = (copy_fn)cla_opencl_function("clEnqueueSVMMemcpy");
    const int64_t rows = problem.batch * problem.heads_q * problem.seq_q;
    const int64_t keys = problem.batch * problem.heads_kv * problem.seq_kv;
    const int64_t sizes[SLOTS] = {rows * problem.head_dim_qk, keys * problem.head_dim_qk, keys * problem.head_dim_v,
                                  rows * problem.head_dim_v, rows};
    for (int i = 0; i < SLOTS; i++) {
        counts[i] = (size_t)sizes[i] + SLACK;
    }
    return 0;
}

/* Numbers for a slot; the outputs start as NaN. */
static void fill(float *data, int slot)
{
    uint32_t number = (uint32_t)slot + 1;
    for (size_t i = 0; i < counts[slot]; i++) {
        number = number * 1664525u + 1013904223u;
        data[i] = slot < 3 ? (float)(number >> 8) * 0x1p-24f - 0.5f : NAN;
    }
}

static void set_buffers(clattn_call *call, const clattn_buffer slots[SLOTS])
{
    call->q = slots[0];
    call->k = slots[1];
    call->v = slots[2];
    call->o = slots[3];
    call->lse = slots[4];
}

static clattn_status run(clattn_context *context, cl_command_queue queue, const char *engine, const clattn_buffer slots[SLOTS])
{
    clattn_plan *plan = NULL;
    clattn_plan_options options;
    clattn_call call;
    clattn_plan_options_init(&options);
    options.at_bounds = true;
    options.engine = engine;
    options.chunk = 32;
    assert_ok(clattn_plan_create(context, &problem, &options, &plan, &error), &error);
    clattn_call_init(&call, plan);
    set_buffers(&call, slots);
    const clattn_status status = clattn_enqueue(plan, queue, &call, 0, NULL, NULL, &error);
    assert_int_equal(clFinish(queue), CL_SUCCESS);
    clattn_plan_destroy(plan);
    return status;
}

/* Runs on memory whose kind each slot's bit says, and reads the outputs. `offset` in elements, of every slot. */
static void run_on(unsigned pointers, size_t offset, float *o, float *lse)
{
    cl_context cl = clattn_context_cl(bench.context);
    clattn_buffer slots[SLOTS];
    void *memory[SLOTS];
    float *data = malloc((counts[1] + counts[2]) * sizeof *data);
    assert_non_null(data);
    for (int i = 0; i < SLOTS; i++) {
        const size_t bytes = counts[i] * sizeof(float), skip = offset * sizeof(float);
        cl_int code = CL_SUCCESS;
        fill(data, i);
        if (pointers >> i & 1) {
            memory[i] = svm_alloc(cl, CL_MEM_READ_WRITE, bytes + skip, 0);
            assert_non_null(memory[i]);
            assert_int_equal(svm_copy(bench.queue, CL_TRUE, (char *)memory[i] + skip, data, bytes, 0, NULL, NULL), CL_SUCCESS);
            slots[i] = clattn_svm(memory[i], skip);
        } else {
            memory[i] = clCreateBuffer(cl, CL_MEM_READ_WRITE, bytes + skip, NULL, &code);
            assert_int_equal(code, CL_SUCCESS);
            assert_int_equal(clEnqueueWriteBuffer(bench.queue, memory[i], CL_TRUE, skip, bytes, data, 0, NULL, NULL),
                             CL_SUCCESS);
            slots[i] = clattn_mem(memory[i], skip);
        }
    }
    assert_ok(run(bench.context, bench.queue, "reference", slots), &error);
    float *const outputs[] = {o, lse};
    for (int i = 3; i < SLOTS; i++) {
        const size_t bytes = counts[i] * sizeof(float), skip = offset * sizeof(float);
        const cl_int code =
            pointers >> i & 1
                ? svm_copy(bench.queue, CL_TRUE, outputs[i - 3], (char *)memory[i] + skip, bytes, 0, NULL, NULL)
                : clEnqueueReadBuffer(bench.queue, memory[i], CL_TRUE, skip, bytes, outputs[i - 3], 0, NULL, NULL);
        assert_int_equal(code, CL_SUCCESS);
    }
    for (int i = 0; i < SLOTS; i++) {
        pointers >> i & 1 ? svm_free(cl, memory[i]) : (void)clReleaseMemObject(memory[i]);
    }
    free(data);
}

static void pointers_give_the_bits_of_buffers(void **state)
{
    (void)state;
    static const struct {
        unsigned pointers;
        size_t offset;
    } rows[] = {{0x1f, 0}, {0x1f, 3}, {0x06, 0}, {0x19, 1}};
    if (!device_has_svm()) {
        skip();
    }
    float *want = calloc(2 * (counts[3] + counts[4]), sizeof *want), *want_lse = want + counts[3];
    assert_non_null(want);
    float *got = want_lse + counts[4], *got_lse = got + counts[3];
    run_on(0, 0, want, want_lse);
    assert_false(isnan(want[0]));
    assert_true(isnan(want[counts[3] - 1])); /* past the end */
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        run_on(rows[i].pointers, rows[i].offset, got, got_lse);
        assert_memory_equal(got, want, counts[3] * sizeof *got);
        assert_memory_equal(got_lse, want_lse, counts[4] * sizeof *got);
    }
    free(want);
}

/* Some address that is never read. */
static void slots_at(clattn_buffer slots[SLOTS], void *pointer)
{
    for (int i = 0; i < SLOTS; i++) {
        slots[i] = clattn_svm(pointer, 0);
    }
}

static void wrong_pointers_are_named(void **state)
{
    (void)state;
    static float memory[4];
    clattn_buffer slots[SLOTS];
    struct bench other;
    slots_at(slots, memory);
    bench_context_open(&other, "svm=0");
    assert_refused(run(other.context, other.queue, "reference", slots), CLATTN_UNSUPPORTED, &error, "call.q");
    bench_context_close(&other);
    if (!device_has_svm()) {
        skip();
    }
    slots[1] = clattn_svm(NULL, 0);
    assert_refused(run(bench.context, bench.queue, "reference", slots), CLATTN_INVALID_ARGUMENT, &error, "call.k");
    slots[1] = clattn_svm((char *)memory + 1, 0);
    assert_refused(run(bench.context, bench.queue, "reference", slots), CLATTN_INVALID_ARGUMENT, &error, "call.k");
    slots[1] = clattn_svm(memory, 2);
    assert_refused(run(bench.context, bench.queue, "reference", slots), CLATTN_INVALID_ARGUMENT, &error, "call.k");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pointers_give_the_bits_of_buffers),
        cmocka_unit_test(wrong_pointers_are_named),
    };
    return cmocka_run_group_tests(tests, open_all, bench_close);
}
