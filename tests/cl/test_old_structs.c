/* SPDX-License-Identifier: Apache-2.0
 * A program built against the first version of the public structs, which were smaller: a library that writes past one is caught
 * by the guard behind it, one that reads past it by AddressSanitizer. */
/* ctest: quick */
#include "attend.h"

#include <stddef.h>

/* ------------------------------------------------------------------------------- the structs as they were; never edited */

struct old_context_options {
    size_t struct_size;
    const char *device;
    const char *overrides;
    clattn_log_fn log;
    void *log_user;
};

struct old_problem {
    size_t struct_size;
    int64_t batch, seq_q, seq_kv;
    int64_t heads_q, heads_kv;
    int64_t head_dim_qk, head_dim_v;
    clattn_tensor q, k, v, o;
    float scale;
    bool causal;
    clattn_corner corner;
    int64_t offset;
    struct {
        bool present;
        int64_t stride_batch, stride_head, stride_seq;
    } lse;
    struct {
        clattn_scores_kind kind;
        int64_t stride_batch, stride_head, stride_seq_q, stride_seq_kv;
    } scores;
};

struct old_plan_options {
    size_t struct_size;
    const char *engine;
    const char *avoid;
};

struct old_call {
    size_t struct_size;
    clattn_buffer q, k, v, o;
    clattn_buffer lse;
    clattn_buffer scores;
    clattn_buffer workspace;
    int64_t batch, seq_q, seq_kv;
    int64_t offset;
    float scale;
};

#define SAME(old, now, field)                                                                                                  \
    _Static_assert(offsetof(struct old, field) == offsetof(now, field) &&                                                      \
                       sizeof(((struct old *)0)->field) == sizeof(((now *)0)->field),                                          \
                   #now "." #field " has moved: programs built against older headers break")

SAME(old_context_options, clattn_context_options, device);
SAME(old_context_options, clattn_context_options, log_user);
SAME(old_problem, clattn_problem, batch);
SAME(old_problem, clattn_problem, head_dim_v);
SAME(old_problem, clattn_problem, q);
SAME(old_problem, clattn_problem, o);
SAME(old_problem, clattn_problem, scale);
SAME(old_problem, clattn_problem, causal);
SAME(old_problem, clattn_problem, corner);
SAME(old_problem, clattn_problem, offset);
SAME(old_problem, clattn_problem, lse);
SAME(old_problem, clattn_problem, scores);
SAME(old_plan_options, clattn_plan_options, engine);
SAME(old_plan_options, clattn_plan_options, avoid);
SAME(old_call, clattn_call, q);
SAME(old_call, clattn_call, workspace);
SAME(old_call, clattn_call, batch);
SAME(old_call, clattn_call, offset);
SAME(old_call, clattn_call, scale);

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

/* A block of `size` bytes with a guard right behind it. */
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
            fail_msg("byte %d behind a block of %zu was written", i, size);
        }
    }
    free(block);
}

#define NEW(type) ((struct type *)block_new(sizeof(struct type)))
#define FREE(pointer) block_free((pointer), sizeof *(pointer))

enum { QUERIES = 3, KEYS = 4, DIM = 8 };

static void an_old_program_runs(void **state)
{
    (void)state;
    static float ones[KEYS * DIM], o[QUERIES * DIM];
    clattn_context *context = NULL;
    clattn_plan *plan = NULL;
    clattn_error error;
    cl_int code;
    clattn_error_init(&error);
    for (int i = 0; i < KEYS * DIM; i++) {
        ones[i] = 1.0f;
    }
    struct old_context_options *context_options = NEW(old_context_options);
    clattn_context_options_init_sized((clattn_context_options *)context_options, sizeof *context_options);
    assert_ok(clattn_context_create(NULL, NULL, (clattn_context_options *)context_options, &context, &error), &error);

    struct old_problem *problem = NEW(old_problem);
    clattn_problem_init_sized((clattn_problem *)problem, sizeof *problem);
    problem->batch = problem->heads_q = problem->heads_kv = 1;
    problem->seq_q = QUERIES;
    problem->seq_kv = KEYS;
    problem->head_dim_qk = problem->head_dim_v = DIM;
    clattn_problem_set_layout((clattn_problem *)problem, CLATTN_BHSD);
    assert_int_equal(problem->v.stride_batch, KEYS * DIM);

    struct old_plan_options *plan_options = NEW(old_plan_options);
    clattn_plan_options_init_sized((clattn_plan_options *)plan_options, sizeof *plan_options);
    plan_options->engine = "reference";
    assert_ok(clattn_supported(context, (clattn_problem *)problem, (clattn_plan_options *)plan_options, &error), &error);
    assert_ok(clattn_plan_create(context, (clattn_problem *)problem, (clattn_plan_options *)plan_options, &plan, &error),
              &error);

    cl_context cl = clattn_context_cl(context);
    cl_command_queue queue = clCreateCommandQueue(cl, clattn_context_device(context), 0, &code);
    cl_mem in = clCreateBuffer(cl, CL_MEM_COPY_HOST_PTR, sizeof ones, ones, &code);
    cl_mem out = clCreateBuffer(cl, CL_MEM_COPY_HOST_PTR, sizeof o, o, &code);
    assert_int_equal(code, CL_SUCCESS);
    struct old_call *call = NEW(old_call);
    clattn_call_init_sized((clattn_call *)call, sizeof *call, plan);
    assert_int_equal(call->seq_kv, KEYS);
    call->q = call->k = call->v = clattn_mem(in, 0);
    call->o = clattn_mem(out, 0);
    assert_ok(clattn_enqueue(plan, queue, (clattn_call *)call, 0, NULL, NULL, &error), &error);
    assert_int_equal(clEnqueueReadBuffer(queue, out, CL_TRUE, 0, sizeof o, o, 0, NULL, NULL), CL_SUCCESS);
    for (int i = 0; i < QUERIES * DIM; i++) {
        assert_near(o[i], 1.0, 1e-6);
    }
    clReleaseMemObject(in);
    clReleaseMemObject(out);
    clReleaseCommandQueue(queue);
    clattn_plan_destroy(plan);
    clattn_context_destroy(context);
    FREE(context_options);
    FREE(problem);
    FREE(plan_options);
    FREE(call);
}

/* A shape text that needs what the old struct lacks is refused; another one fills it, and is printed. */
static void an_old_problem_is_parsed_and_printed(void **state)
{
    (void)state;
    clattn_error error;
    char text[200];
    clattn_error_init(&error);
    struct old_problem *problem = NEW(old_problem);
    clattn_problem_init_sized((clattn_problem *)problem, sizeof *problem);
    assert_ok(clattn_problem_parse_sized("b2 q3 k4 d8 causal", (clattn_problem *)problem, sizeof *problem, &error), &error);
    assert_int_equal(problem->struct_size, sizeof *problem);
    assert_int_equal(problem->batch, 2);
    assert_true(problem->causal);
    assert_int_equal(clattn_problem_print((clattn_problem *)problem, text, sizeof text, NULL), CLATTN_SUCCESS);
    assert_contains(text, "b2 hq1 hkv1 q3 k4 d8 dv8");
    assert_refused(clattn_problem_parse_sized("q3 d8 softcap=5", (clattn_problem *)problem, sizeof *problem, &error),
                   CLATTN_INVALID_ARGUMENT, &error, "shape");
    FREE(problem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_old_program_runs),
        cmocka_unit_test(an_old_problem_is_parsed_and_printed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
