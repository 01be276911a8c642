/* SPDX-License-Identifier: Apache-2.0
 * Structs of another version of the header, shorter or longer than the library's: a library that writes past one is caught by
 * the guard after it, one that reads past it by AddressSanitizer. */
/* ctest: quick */
#include "attend.h"

#include <stddef.h>

/* What a header before the options had. */
enum {
    SHORT_CONTEXT_OPTIONS = offsetof(clattn_context_options, cache_off),
    SHORT_PROBLEM = offsetof(clattn_problem, softcap),
    SHORT_PLAN_OPTIONS = offsetof(clattn_plan_options, chunk),
    SHORT_CALL = offsetof(clattn_call, window_left),
};

/* What a later header may have added to each of them. */
enum { ADDED = 40 };

/* ---------------------------------------------------------------------------------------------------------------- blocks */

#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define EXACT_BLOCKS
#endif
#endif
#if defined(EXACT_BLOCKS) || defined(__SANITIZE_ADDRESS__)
enum { GUARD = 0 };
#else
enum { GUARD = 64 };
#endif

/* A block of `size` bytes with a guard right after it. */
static void *block_new(size_t size)
{
    unsigned char *block = malloc(size + GUARD);
    assert_non_null(block);
    memset(block, 0xa5, size + GUARD);
    return block;
}

static void block_free(void *block, size_t size)
{
    const unsigned char *guard = (const unsigned char *)block + size;
    for (int i = 0; i < GUARD; i++) {
        if (guard[i] != 0xa5) {
            fail_msg("byte %d after a block of %zu was written", i, size);
        }
    }
    free(block);
}

enum { QUERIES = 3, KEYS = 4, DIM = 8 };

/* One attention over ones, through structs of these sizes. */
static void attend_with(size_t context_size, size_t problem_size, size_t plan_size, size_t call_size)
{
    static float ones[KEYS * DIM], o[QUERIES * DIM];
    clattn_context *context = NULL;
    clattn_plan *plan = NULL;
    clattn_error error;
    cl_int code;
    clattn_error_init(&error);
    memset(o, 0, sizeof o);
    for (int i = 0; i < KEYS * DIM; i++) {
        ones[i] = 1.0f;
    }
    clattn_context_options *context_options = block_new(context_size);
    clattn_context_options_init_sized(context_options, context_size);
    assert_ok(clattn_context_create(NULL, NULL, context_options, &context, &error), &error);

    clattn_problem *problem = block_new(problem_size);
    clattn_problem_init_sized(problem, problem_size);
    problem->batch = problem->heads_q = problem->heads_kv = 1;
    problem->seq_q = QUERIES;
    problem->seq_kv = KEYS;
    problem->head_dim_qk = problem->head_dim_v = DIM;
    clattn_problem_set_layout(problem, CLATTN_BHSD);
    assert_int_equal(problem->v.strides.batch, KEYS * DIM);
    assert_int_equal(problem->scores.strides.row, KEYS);

    clattn_plan_options *plan_options = block_new(plan_size);
    clattn_plan_options_init_sized(plan_options, plan_size);
    plan_options->engine = "reference";
    assert_ok(clattn_supported(context, problem, plan_options, &error), &error);
    assert_ok(clattn_plan_create(context, problem, plan_options, &plan, &error), &error);

    cl_context cl = clattn_context_cl(context);
    cl_command_queue queue = clCreateCommandQueue(cl, clattn_context_device(context), 0, &code);
    cl_mem in = clCreateBuffer(cl, CL_MEM_COPY_HOST_PTR, sizeof ones, ones, &code);
    cl_mem out = clCreateBuffer(cl, CL_MEM_COPY_HOST_PTR, sizeof o, o, &code);
    assert_int_equal(code, CL_SUCCESS);
    clattn_call *call = block_new(call_size);
    clattn_call_init_sized(call, call_size, plan);
    assert_int_equal(call->seq_kv, KEYS);
    clattn_call_set_problem(call, problem);
    assert_int_equal(call->struct_size, call_size);
    call->q = call->k = call->v = clattn_mem(in, 0);
    call->o = clattn_mem(out, 0);
    assert_ok(clattn_enqueue(plan, queue, call, 0, NULL, NULL, &error), &error);
    assert_int_equal(clEnqueueReadBuffer(queue, out, CL_TRUE, 0, sizeof o, o, 0, NULL, NULL), CL_SUCCESS);
    for (int i = 0; i < QUERIES * DIM; i++) {
        assert_near(o[i], 1.0, 1e-6);
    }
    clReleaseMemObject(in);
    clReleaseMemObject(out);
    clReleaseCommandQueue(queue);
    clattn_plan_destroy(plan);
    clattn_context_destroy(context);
    block_free(context_options, context_size);
    block_free(problem, problem_size);
    block_free(plan_options, plan_size);
    block_free(call, call_size);
}

static void a_program_with_an_older_header_runs(void **state)
{
    (void)state;
    attend_with(SHORT_CONTEXT_OPTIONS, SHORT_PROBLEM, SHORT_PLAN_OPTIONS, SHORT_CALL);
}

static void a_program_with_a_newer_header_runs(void **state)
{
    (void)state;
    attend_with(sizeof(clattn_context_options) + ADDED, sizeof(clattn_problem) + ADDED, sizeof(clattn_plan_options) + ADDED,
                sizeof(clattn_call) + ADDED);
}

/* A shape text that needs what the shorter struct lacks is refused; another one fills it, and is printed. */
static void a_shorter_problem_is_parsed_and_printed(void **state)
{
    (void)state;
    volatile size_t short_size = SHORT_PROBLEM; /* or compilers warn of a block that is smaller than its type */
    const size_t size = short_size;
    clattn_error error;
    char text[200];
    clattn_error_init(&error);
    clattn_problem *problem = block_new(size);
    clattn_problem_init_sized(problem, size);
    assert_ok(clattn_problem_parse_sized("b2 q3 k4 d8 causal", problem, size, &error), &error);
    assert_int_equal(problem->struct_size, size);
    assert_int_equal(problem->batch, 2);
    assert_true(problem->causal);
    assert_int_equal(clattn_problem_print(problem, text, sizeof text, NULL), CLATTN_SUCCESS);
    assert_contains(text, "b2 hq1 hkv1 q3 k4 d8 dv8");
    assert_refused(clattn_problem_parse_sized("q3 d8 softcap=5", problem, size, &error), CLATTN_INVALID_ARGUMENT, &error,
                   "shape");
    block_free(problem, size);
}

static void merges_and_errors_of_a_newer_header_work(void **state)
{
    (void)state;
    const size_t merge_size = sizeof(clattn_merge) + ADDED, error_size = sizeof(clattn_error) + ADDED;
    cl_int code;
    clattn_context *context = NULL;
    clattn_error *error = block_new(error_size);
    clattn_merge *merge = block_new(merge_size);
    clattn_error_init_sized(error, error_size);
    clattn_merge_init_sized(merge, merge_size);
    assert_int_equal(merge->struct_size, merge_size);
    assert_int_equal(merge->out.o_layout.type, CLATTN_FP32);
    assert_ok(clattn_context_create(NULL, NULL, NULL, &context, error), error);
    cl_command_queue queue = clCreateCommandQueue(clattn_context_cl(context), clattn_context_device(context), 0, &code);
    assert_int_equal(code, CL_SUCCESS);
    assert_ok(clattn_enqueue_merge(context, queue, merge, 0, NULL, NULL, error), error);
    merge->heads = -1;
    assert_refused(clattn_enqueue_merge(context, queue, merge, 0, NULL, NULL, error), CLATTN_INVALID_ARGUMENT, error,
                   "merge.heads");
    assert_int_equal(error->struct_size, error_size);
    clReleaseCommandQueue(queue);
    clattn_context_destroy(context);
    block_free(merge, merge_size);
    block_free(error, error_size);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_program_with_an_older_header_runs),
        cmocka_unit_test(a_program_with_a_newer_header_runs),
        cmocka_unit_test(a_shorter_problem_is_parsed_and_printed),
        cmocka_unit_test(merges_and_errors_of_a_newer_header_work),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
