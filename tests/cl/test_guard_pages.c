/* SPDX-License-Identifier: Apache-2.0
 * Every buffer ends at a protected page (tests/layer/guard.c), and its last byte is the last of its tensor: a part of the
 * matrix's sample on each engine. Only for drivers whose kernels run in this process. */
/* ctest: posix timeout=600 */
#include "attend.h"

#include "matrix.h"

#include <dlfcn.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

/* Groups whose trials share few programs: those of head sizes and types build one a trial. */
static const char *const groups[] = {"lengths", "causal", "layouts", "packed", "split"};

enum { EVERY = 7 };

extern char **environ;
static const char *program;

struct run {
    const char *engine;
    size_t seen, ran, failed;
};

static void check(struct run *run, const char *text)
{
    struct trial trial;
    struct trial_result result;
    assert_int_equal(trial_parse(text, &trial, NULL), CLATTN_SUCCESS);
    if (trial.override[0] != '\0') /* needs a context of its own: the programs again */
        return;
    trial.tight = true;
    trial_run_engine(bench.context, bench.queue, run->engine, &trial, &result);
    run->ran += result.status != CLATTN_UNSUPPORTED;
    if (!result.ok && result.status != CLATTN_UNSUPPORTED) {
        run->failed++;
        print_error("%s: \"%s\": %s\n", run->engine, text, result.message);
    }
}

static bool visit(void *user, const struct matrix_group *group, const char *text)
{
    struct run *run = user;
    (void)group;
    if (run->seen++ % EVERY == 0)
        check(run, text);
    return true;
}

static size_t buffers_between_pages(void)
{
    void *library = dlopen(CLATTN_GUARD, RTLD_NOLOAD | RTLD_NOW);
    const size_t *count = library ? dlsym(library, "guard_buffers") : NULL;
    return count ? *count : 0;
}

static void no_engine_touches_a_byte_past_a_tensor(void **state)
{
    (void)state;
    FOR_EACH_ENGINE(engine)
    {
        struct run run = {.engine = engine};
        for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++)
            matrix_walk(matrix_find(groups[i]), false, 11, visit, &run);
        print_message("%s: %zu trials, %zu failed\n", engine, run.ran, run.failed);
        assert_int_equal(run.failed, 0);
        if (strcmp(engine, "reference") == 0)
            assert_true(run.ran >= 12);
    }
    assert_true(buffers_between_pages() >= 100);
}

/* ----------------------------------------------------------------------------------------------- that the pages are guarded */

enum { SIZE = 100 };

/* Reads the byte at `index` of a buffer of SIZE bytes. */
static int read_byte(cl_int index)
{
    static const char *source = "__kernel void copy(__global const uchar *in, __global uchar *out, int at) { *out = in[at]; }";
    cl_int code;
    bench_open(NULL);
    cl_context cl = clattn_context_cl(bench.context);
    cl_mem in = clCreateBuffer(cl, CL_MEM_READ_WRITE, SIZE, NULL, &code);
    cl_mem out = clCreateBuffer(cl, CL_MEM_READ_WRITE, 1, NULL, &code);
    cl_program built = clCreateProgramWithSource(cl, 1, &source, NULL, &code);
    clBuildProgram(built, 0, NULL, "", NULL, NULL);
    cl_kernel kernel = clCreateKernel(built, "copy", &code);
    const size_t one = 1;
    clSetKernelArg(kernel, 0, sizeof(cl_mem), &in);
    clSetKernelArg(kernel, 1, sizeof(cl_mem), &out);
    clSetKernelArg(kernel, 2, sizeof index, &index);
    code = clEnqueueNDRangeKernel(bench.queue, kernel, 1, NULL, &one, NULL, 0, NULL, NULL);
    const bool ran = code == CL_SUCCESS && clFinish(bench.queue) == CL_SUCCESS;
    _Exit(ran ? 0 : 1);
}

/* Runs in a child process and returns how it ended. */
static int status_of(const char *index)
{
    char *words[] = {(char *)(uintptr_t)program, (char *)(uintptr_t)index, NULL};
    pid_t child;
    int status = 0;
    assert_int_equal(posix_spawn(&child, program, NULL, NULL, words, environ), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void a_byte_past_a_buffer_ends_the_process(void **state)
{
    (void)state;
    assert_int_equal(status_of("99"), 0);
    const int status = status_of("100");
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_byte_past_a_buffer_ends_the_process),
        cmocka_unit_test_setup_teardown(no_engine_touches_a_byte_past_a_tensor, bench_open, bench_close),
    };
    program = argv[0];
    setenv("OPENCL_LAYERS", CLATTN_GUARD, 1);
    if (argc == 2)
        return read_byte(atoi(argv[1]));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
