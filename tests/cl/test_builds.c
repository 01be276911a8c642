/* SPDX-License-Identifier: Apache-2.0
 * Kernel programs: how many are built, what a failing build says, which kernel source and options they come from. */
/* ctest: quick */
#define _POSIX_C_SOURCE 200809L
#include "buffers.h"
#include "files.h"

#include <unistd.h>

static clattn_error error;

static uint32_t seed = 2026;
static int64_t random_below(int64_t limit)
{
    seed = seed * 1664525u + 1013904223u;
    return (int64_t)(seed >> 8) % limit;
}

/* They differ in the tile, by powers of two for few rows, and in whether rows of K and V are four elements apart. */
enum { MOST_PROGRAMS = 16 };

/* 100 random lengths, strides, counts, offsets and scales at one type and head size: each engine builds a few programs. */
static void lengths_and_strides_build_no_new_programs(void **state)
{
    (void)state;
    FOR_EACH_ENGINE(engine)
    {
        struct bench own;
        bench_context_open(&own, NULL);
        seed = 2026;
        size_t served = 0;
        for (int i = 0; i < 100; i++) {
            struct trial trial;
            struct trial_result result;
            char text[200];
            const int64_t kv = 1 + random_below(3), q = 1 + random_below(60), k = 1 + random_below(90);
            clattn_error_init(&error);
            snprintf(text, sizeof text, "b%d hq%d hkv%d q%d k%d d24 dv40 fp16 lse seed=%d scale=0.%d%s", (int)random_below(3),
                     (int)(kv * (1 + random_below(3))), (int)kv, (int)q, (int)k, i, 1 + (int)random_below(9),
                     i % 3 == 0   ? " causal=bottom-right"
                     : i % 3 == 1 ? " causal=7"
                                  : "");
            assert_ok(trial_parse(text, &trial, &error), &error);
            /* A step of its own for every tensor, aligned or not. */
            clattn_tensor *all[] = {&trial.problem.q, &trial.problem.k, &trial.problem.v, &trial.problem.o};
            for (size_t j = 0; j < COUNT_OF(all); j++) {
                const int64_t gap = random_below(9);
                all[j]->strides.head += gap * all[j]->strides.head / (all[j]->strides.row > 0 ? all[j]->strides.row : 1);
                all[j]->strides.row += gap;
                all[j]->strides.head += random_below(5);
                all[j]->strides.batch = all[j]->strides.head * 9 + random_below(11);
            }
            trial_run_engine(own.context, own.queue, engine, &trial, &result);
            served += result.status != CLATTN_UNSUPPORTED;
            if (!result.ok && result.status != CLATTN_UNSUPPORTED) {
                fail_msg("%s, \"%s\": %s", engine, text, result.message);
            }
        }
        const size_t builds = clattn_context_build_count(own.context);
        if (builds < (served > 0) || builds > MOST_PROGRAMS) {
            fail_msg("%s: %zu builds", engine, builds);
        }
        bench_context_close(&own);
    }
}

/* The same through one plan's bounds. */
#define BOUNDS "b4 hq4 hkv2 q60 k90 d24 dv40 fp16 lse causal"
static void one_plan_serves_all_lengths(void **state)
{
    (void)state;
    FOR_EACH_ENGINE(engine)
    {
        if (!engine_serves(engine, BOUNDS)) {
            continue;
        }
        clattn_error_init(&error);
        clattn_plan *plan = plan_of(bench.context, BOUNDS, engine);
        const size_t builds = clattn_context_build_count(bench.context);
        for (int i = 0; i < 100; i++) {
            struct trial trial;
            struct trial_result result;
            char text[200];
            snprintf(text, sizeof text, BOUNDS " call=%d,%d,%d seed=%d", (int)random_below(5), (int)random_below(61),
                     (int)random_below(91), i);
            assert_ok(trial_parse(text, &trial, &error), &error);
            trial_run(bench.context, bench.queue, plan, &trial, &result);
            if (!result.ok) {
                fail_msg("%s, \"%s\": %s", engine, text, result.message);
            }
        }
        assert_int_equal(clattn_context_build_count(bench.context), builds);
        clattn_plan_destroy(plan);
    }
}

/* Decoding with a cache that grows by a token a call: one plan, no build, and one more visible key each time. */
static void a_growing_cache_builds_nothing(void **state)
{
    (void)state;
    enum { TOKENS = 60, DIM = 24 };
    static float ones[TOKENS * DIM];
    cl_int code;
    clattn_error_init(&error);
    cl_context cl = clattn_context_cl(bench.context);
    cl_mem zeros = clCreateBuffer(cl, CL_MEM_COPY_HOST_PTR, sizeof ones, ones, &code);
    for (int i = 0; i < TOKENS * DIM; i++) {
        ones[i] = (float)(i / DIM + 1);
    }
    cl_mem values = clCreateBuffer(cl, CL_MEM_COPY_HOST_PTR, sizeof ones, ones, &code),
           o = clCreateBuffer(cl, 0, DIM * 4, NULL, &code);
    clattn_plan *plan = plan_of(bench.context, "q1 k60 d24 causal=0", NULL);
    const size_t builds = clattn_context_build_count(bench.context);
    for (int past = 0; past < TOKENS; past++) {
        float out[DIM];
        clattn_call call;
        clattn_call_init(&call, plan);
        call.q = call.k = clattn_mem(zeros, 0);
        call.v = clattn_mem(values, 0);
        call.o = clattn_mem(o, 0);
        call.seq_kv = TOKENS; /* keys past the offset hold old data; the diagonal masks them */
        call.offset = past;
        assert_ok(clattn_enqueue(plan, bench.queue, &call, 0, NULL, NULL, &error), &error);
        clEnqueueReadBuffer(bench.queue, o, CL_TRUE, 0, sizeof out, out, 0, NULL, NULL);
        assert_near(out[DIM - 1], (past + 2) / 2.0, 1e-4);
    }
    assert_int_equal(clattn_context_build_count(bench.context), builds);
    clattn_plan_destroy(plan);
    clReleaseMemObject(zeros);
    clReleaseMemObject(values);
    clReleaseMemObject(o);
}

static void programs_are_shared_within_a_context(void **state)
{
    (void)state;
    struct bench own;
    clattn_error_init(&error);
    bench_context_open(&own, NULL);
    clattn_plan *first = plan_of(own.context, "q8 k9 d24", "reference");
    assert_int_equal(clattn_context_build_count(own.context), 1);
    clattn_plan *second = plan_of(own.context, "b5 hq6 hkv2 q800 k900 d24 causal scale=2", "reference");
    assert_int_equal(clattn_context_build_count(own.context), 1);
    clattn_plan *third = plan_of(own.context, "q8 k9 d32", "reference");
    assert_int_equal(clattn_context_build_count(own.context), 2);
    /* Asking what would serve builds nothing. */
    clattn_problem problem;
    assert_ok(clattn_problem_parse("q8 k9 d40", &problem, &error), &error);
    assert_ok(clattn_supported(own.context, &problem, NULL, &error), &error);
    assert_int_equal(clattn_context_build_count(own.context), 2);
    clattn_plan_destroy(first);
    clattn_plan_destroy(second);
    clattn_plan_destroy(third);
    bench_context_close(&own);
}

struct log {
    char text[65536];
    int errors, infos;
};

static void keep(void *user, clattn_log_level level, const char *text)
{
    struct log *log = user;
    strncat(log->text, text, sizeof log->text - strlen(log->text) - 1);
    log->errors += level == CLATTN_LOG_ERROR;
    log->infos += level == CLATTN_LOG_INFO;
}

static clattn_context *logged_context(struct log *log)
{
    clattn_context_options options;
    clattn_context *context = NULL;
    memset(log, 0, sizeof *log);
    clattn_error_init(&error);
    clattn_context_options_init(&options);
    options.log = keep;
    options.log_user = log;
    assert_ok(clattn_context_create(NULL, NULL, &options, &context, &error), &error);
    return context;
}

struct nested {
    clattn_context *context;
    clattn_status on_error, on_info;
    bool busy;
};

/* Plans within the log function: the kernel that the message is about, once a level, and another one. */
static void plan_again(void *user, clattn_log_level level, const char *text)
{
    (void)text;
    struct nested *nested = user;
    clattn_problem problem;
    clattn_plan *plan = NULL;
    clattn_plan_options options;
    clattn_status *status = level == CLATTN_LOG_ERROR ? &nested->on_error : &nested->on_info;
    if (nested->busy || nested->context == NULL) {
        return;
    }
    nested->busy = true;
    clattn_plan_options_init(&options);
    options.engine = "reference";
    assert_int_equal(clattn_problem_parse("q8 k9 d24", &problem, NULL), CLATTN_SUCCESS);
    assert_int_equal(clattn_supported(nested->context, &problem, NULL, NULL), CLATTN_SUCCESS);
    *status = clattn_plan_create(nested->context, &problem, &options, &plan, NULL);
    clattn_plan_destroy(plan);
    nested->busy = false;
}

/* A log function that calls the library does not wait for the build that called it. */
static void a_log_function_may_call_the_library(void **state)
{
    (void)state;
    struct nested nested = {NULL, CLATTN_SUCCESS, CLATTN_OPENCL, false};
    clattn_context_options options;
    clattn_problem problem;
    clattn_plan_options engine;
    clattn_plan *plan = NULL;
    char *root = sources_copy();
    clattn_error_init(&error);
    clattn_context_options_init(&options);
    options.log = plan_again;
    options.log_user = &nested;
    assert_ok(clattn_context_create(NULL, NULL, &options, &nested.context, &error), &error);
    assert_non_null(root);
    assert_true(sources_alter(root, "cl/softmax.cl", "m[r] = now;", "m[r] = nowhere_declared;"));
    clattn_plan_options_init(&engine);
    engine.engine = "reference";
    assert_ok(clattn_problem_parse("q8 k9 d24", &problem, &error), &error);
    setenv("CLATTN_SOURCE_DIR", root, 1);
    const clattn_status status = clattn_plan_create(nested.context, &problem, &engine, &plan, &error);
    unsetenv("CLATTN_SOURCE_DIR");
    assert_int_equal(status, CLATTN_BUILD_FAILED);
    assert_int_equal(nested.on_error, CLATTN_BUILD_FAILED);
    plan = plan_of(nested.context, "q8 k9 d24", "reference");
    assert_int_equal(nested.on_info, CLATTN_SUCCESS);
    clattn_plan_destroy(plan);
    clattn_context_destroy(nested.context);
    sources_remove(root);
}

static void the_log_tells_the_choice(void **state)
{
    (void)state;
    static struct log log;
    clattn_context *context = logged_context(&log);
    clattn_plan *plan = plan_of(context, "q8 k9 d24", "reference");
    assert_true(log.infos >= 1);
    assert_int_equal(log.errors, 0);
    assert_contains(log.text, "reference");
    clattn_plan_destroy(plan);
    clattn_context_destroy(context);
}

/* A failing build tells the user device, driver, kernel and options, and the log with files and lines. */
static void a_failing_build_is_reported_in_full(void **state)
{
    (void)state;
    static struct log log;
    char *root = sources_copy();
    clattn_problem problem;
    clattn_plan_options options;
    clattn_plan *plan = NULL;
    char name[256] = "", driver[256] = "";
    assert_non_null(root);
    clattn_context *context = logged_context(&log);
    clGetDeviceInfo(clattn_context_device(context), CL_DEVICE_NAME, sizeof name - 1, name, NULL);
    clGetDeviceInfo(clattn_context_device(context), CL_DRIVER_VERSION, sizeof driver - 1, driver, NULL);
    assert_true(sources_alter(root, "cl/softmax.cl", "m[r] = now;", "m[r] = nowhere_declared;"));
    assert_ok(clattn_problem_parse("q8 k9 d24", &problem, &error), &error);
    clattn_plan_options_init(&options);
    options.engine = "reference";
    setenv("CLATTN_SOURCE_DIR", root, 1);
    const clattn_status status = clattn_plan_create(context, &problem, &options, &plan, &error);
    clattn_error again;
    clattn_error_init(&again);
    assert_int_equal(clattn_plan_create(context, &problem, &options, &plan, &again), CLATTN_BUILD_FAILED);
    unsetenv("CLATTN_SOURCE_DIR");
    assert_int_equal(status, CLATTN_BUILD_FAILED);
    assert_null(plan);
    assert_int_equal(error.cl_code, CL_BUILD_PROGRAM_FAILURE);
    assert_contains(error.message, "CL_BUILD_PROGRAM_FAILURE");
    assert_contains(error.message, name);
    assert_contains(error.message, driver);
    assert_contains(error.message, "options");
    assert_contains(error.message, "nowhere_declared");
    assert_contains(error.message, "reference");
    /* The line of the file, not of the composed text. */
    char *path = path_join(root, "cl/softmax.cl"), *text = file_read(path);
    int line = 1;
    for (const char *c = text; c < strstr(text, "nowhere_declared"); c++) {
        line += *c == '\n';
    }
    char place[64];
    snprintf(place, sizeof place, "cl/softmax.cl:%d", line);
    assert_contains(error.message, place);
    assert_contains(log.text, place);
    assert_true(log.errors >= 1);
    /* A text that failed once fails again with the same words. */
    assert_string_equal(again.message, error.message);
    /* And the context still works. */
    plan = plan_of(context, "q8 k9 d24", "reference");
    clattn_plan_destroy(plan);
    free(text);
    free(path);
    sources_remove(root);
    clattn_context_destroy(context);
}

/* When one program fails to build, the next engine serves, and the description says what happened. */
static void the_next_engine_serves_where_a_build_fails(void **state)
{
    (void)state;
    char *root = sources_copy();
    char text[8192];
    clattn_error_init(&error);
    assert_non_null(root);
    clattn_plan *best = plan_of(bench.context, "q70 k90 d16", NULL);
    const char *first = clattn_plan_engine(best);
    clattn_plan_destroy(best);
    assert_string_not_equal(first, "reference");
    char file[128];
    snprintf(file, sizeof file, "%s", cla_engine_find(first)->file);
    char *path = path_join(root, file);
    assert_true(file_write(path, "#error \"this engine does not build here\"\n"));
    setenv("CLATTN_SOURCE_DIR", root, 1);
    /* With and without an error struct. */
    for (int i = 0; i < 2; i++) {
        clattn_problem problem;
        clattn_plan *plan = NULL;
        assert_ok(clattn_problem_parse("q70 k90 d16", &problem, &error), &error);
        assert_int_equal(clattn_plan_create(bench.context, &problem, NULL, &plan, i ? &error : NULL), CLATTN_SUCCESS);
        assert_string_not_equal(clattn_plan_engine(plan), first);
        assert_int_equal(clattn_plan_describe(plan, text, sizeof text, NULL), CLATTN_SUCCESS);
        assert_contains(text, first);
        assert_contains(text, "does not build: clBuildProgram");
        clattn_plan_destroy(plan);
    }
    unsetenv("CLATTN_SOURCE_DIR");
    free(path);
    sources_remove(root);
}

static void a_bad_source_folder_is_named(void **state)
{
    (void)state;
    clattn_problem problem;
    clattn_plan *plan = NULL;
    clattn_error_init(&error);
    assert_ok(clattn_problem_parse("q8 k9 d24", &problem, &error), &error);
    setenv("CLATTN_SOURCE_DIR", "/nonexistent", 1);
    const clattn_status status = clattn_plan_create(bench.context, &problem, NULL, &plan, &error);
    unsetenv("CLATTN_SOURCE_DIR");
    assert_refused(status, CLATTN_INVALID_ARGUMENT, &error, "CLATTN_SOURCE_DIR");
    assert_null(plan);
}

/* No file is looked up relative to the current folder. */
static void kernel_files_do_not_depend_on_the_working_folder(void **state)
{
    (void)state;
    char before[4096];
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir("/"), 0);
    struct bench own;
    bench_context_open(&own, NULL);
    clattn_plan *plan = plan_of(own.context, "q8 k9 d24", "reference");
    clattn_plan_destroy(plan);
    bench_context_close(&own);
    assert_int_equal(chdir(before), 0);
}

static cl_int build_with(const char *source, const char *options)
{
    cl_int code;
    cl_device_id device = clattn_context_device(bench.context);
    cl_program program = clCreateProgramWithSource(clattn_context_cl(bench.context), 1, &source, NULL, &code);
    assert_int_equal(code, CL_SUCCESS);
    code = clBuildProgram(program, 1, &device, options, NULL, NULL);
    clReleaseProgram(program);
    return code;
}

/* The engines that serve everything are OpenCL C 1.1 and build in every later version. fp64 may be missing, so a warning
 * about a double constant counts as an error. */
static void every_language_version_builds(void **state)
{
    (void)state;
    static const char *const options[] = {"-cl-std=CL1.1", "-cl-std=CL1.2", "-cl-std=CL3.0", "-cl-single-precision-constant",
                                          "-Werror"};
    static char text[262144];
    static const char *const engines[] = {"reference", "unfused"};
    for (size_t e = 0; e < COUNT_OF(engines); e++) {
        clattn_plan *plan = plan_of(bench.context, "q8 k9 d24 q=fp32 k=fp16 v=bf16 o=fp16", engines[e]);
        size_t needed = 0;
        assert_int_equal(clattn_plan_source(plan, text, sizeof text, &needed), CLATTN_SUCCESS);
        assert_true(needed <= sizeof text && strlen(text) + 1 == needed);
        for (size_t i = 0; i < COUNT_OF(options); i++) {
            if (build_with(text, options[i]) != CL_SUCCESS) {
                fail_msg("%s does not build with %s", engines[e], options[i]);
            }
        }
        clattn_plan_destroy(plan);
    }
}

/* The kernel source uses fma() where the device reports CL_FP_FMA and mad() elsewhere (cl/base.cl decides). */
static void fma_is_used_only_where_reported(void **state)
{
    (void)state;
    static char text[262144];
    static const char *const overrides[] = {"fma=0", "fma=1"};
    for (size_t i = 0; i < COUNT_OF(overrides); i++) {
        struct bench other;
        bench_context_open(&other, overrides[i]);
        clattn_plan *plan = plan_of(other.context, "q8 k9 d24", "reference");
        assert_int_equal(clattn_plan_source(plan, text, sizeof text, NULL), CLATTN_SUCCESS);
        assert_int_equal(strstr(text, "#define HAS_FMA") != NULL, i == 1);
        clattn_plan_destroy(plan);
        bench_context_close(&other);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lengths_and_strides_build_no_new_programs),
        cmocka_unit_test(one_plan_serves_all_lengths),
        cmocka_unit_test(a_growing_cache_builds_nothing),
        cmocka_unit_test(programs_are_shared_within_a_context),
        cmocka_unit_test(the_log_tells_the_choice),
        cmocka_unit_test(a_log_function_may_call_the_library),
        cmocka_unit_test(a_failing_build_is_reported_in_full),
        cmocka_unit_test(the_next_engine_serves_where_a_build_fails),
        cmocka_unit_test(a_bad_source_folder_is_named),
        cmocka_unit_test(kernel_files_do_not_depend_on_the_working_folder),
        cmocka_unit_test(every_language_version_builds),
        cmocka_unit_test(fma_is_used_only_where_reported),
    };
    return cmocka_run_group_tests(tests, bench_open, bench_close);
}
