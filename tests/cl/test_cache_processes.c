/* SPDX-License-Identifier: Apache-2.0
 * Sixteen processes of eight threads each share one cache folder, and some are killed: no result is wrong, no broken file is
 * left. */
/* ctest: pocl-race */
/* The race of PoCL 3.1: a build that fails next to others, without a word in its log. */
#include "attend.h"

#include "cache.h"
#include "files.h"
#include "os/os.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PROCESSES = 16, THREADS = 8 };

/* Few programs, many shapes. */
static const char *const trials[] = {"hq2 q5 k7 d8", "hq2 q3 k9 d8", "hq2 hkv1 q4 k4 d16", "q1 k33 d16"};

static const char *attend(clattn_context *context, const char *text)
{
    struct trial trial;
    static _Thread_local struct trial_result result;
    clattn_error error;
    cl_int code = CL_SUCCESS;
    clattn_error_init(&error);
    cl_command_queue queue = clCreateCommandQueue(clattn_context_cl(context), clattn_context_device(context), 0, &code);
    if (code != CL_SUCCESS || trial_parse(text, &trial, &error) != CLATTN_SUCCESS) {
        return "no queue, or no trial";
    }
    trial_run_engine(context, queue, "reference", &trial, &result);
    clReleaseCommandQueue(queue);
    return result.ok ? NULL : result.message;
}

struct thread {
    pthread_t id;
    clattn_context *context;
    size_t index;
    bool bad;
};

static void *work(void *user)
{
    struct thread *thread = user;
    for (size_t i = 0; i < COUNT_OF(trials); i++) {
        const char *wrong = attend(thread->context, trials[(i + thread->index) % COUNT_OF(trials)]);
        if (wrong != NULL) {
            fprintf(stderr, "%s\n", wrong);
            thread->bad = true;
        }
    }
    return NULL;
}

/* The driver's own cache is not tested, and a killed process may leave it broken: each process has its own. */
static void use_own_driver_cache(const char *folder, size_t number)
{
    char name[32];
    snprintf(name, sizeof name, "pocl-%zu", number);
    char *driver_folder = path_join(folder, name);
    if (driver_folder == NULL || !cla_make_folder(driver_folder)) {
        _exit(4);
    }
    setenv("POCL_CACHE_DIR", driver_folder, 1);
    free(driver_folder);
}

static void be_a_process(const char *folder)
{
    struct thread threads[THREADS];
    clattn_context_options options;
    clattn_context *context;
    bool bad = false;
    clattn_context_options_init(&options);
    options.cache_folder = folder;
    if (clattn_context_create(NULL, NULL, &options, &context, NULL) != CLATTN_SUCCESS) {
        _exit(2);
    }
    for (size_t i = 0; i < THREADS; i++) {
        threads[i] = (struct thread){.context = context, .index = i};
        if (pthread_create(&threads[i].id, NULL, work, &threads[i]) != 0) {
            _exit(3);
        }
    }
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i].id, NULL);
        bad = bad || threads[i].bad;
    }
    clattn_context_save(context);
    clattn_context_destroy(context);
    _exit(bad ? 1 : 0);
}

static void need_whole_files(const char *folder)
{
    struct names names;
    assert_true(folder_list(folder, ".clb", &names));
    assert_true(names.count > 0);
    for (size_t i = 0; i < names.count; i++) {
        struct text file = {0};
        struct cache_key key;
        const char *content = NULL;
        size_t size = 0;
        char *path = path_join(folder, names.list[i]);
        assert_true(cla_read_file(path, SIZE_MAX, &file));
        assert_true(file.length > CLA_CACHE_HEADER);
        memcpy(key.bytes, file.data + 16, sizeof key.bytes);
        if (!cla_cache_decode(&key, &file, &content, &size)) {
            fail_msg("%s is broken", names.list[i]);
        }
        cla_text_free(&file);
        free(path);
    }
    names_free(&names);
}

static void processes_that_share_a_cache_give_right_results(void **state)
{
    (void)state;
    pid_t children[PROCESSES];
    size_t killed = 0;
    char *folder = folder_create();
    assert_non_null(folder);
    unsetenv("CLATTN_CACHE");
    unsetenv("CLATTN_CACHE_DIR");
    for (size_t i = 0; i < PROCESSES; i++) {
        children[i] = fork(); /* before any OpenCL call of this process */
        assert_true(children[i] >= 0);
        if (children[i] == 0) {
            use_own_driver_cache(folder, i);
            be_a_process(folder);
        }
    }
    for (size_t i = 0; i < PROCESSES; i += 3) {
        const struct timespec time = {0, 200000000};
        nanosleep(&time, NULL);
        kill(children[i], SIGKILL);
    }
    for (size_t i = 0; i < PROCESSES; i++) {
        int status = 0;
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        killed += WIFSIGNALED(status);
        if (WIFSIGNALED(status) ? i % 3 != 0 : WEXITSTATUS(status) != 0) {
            fail_msg("process %zu ended with %d", i, status);
        }
    }
    print_message("%zu processes were killed while working\n", killed);
    assert_true(killed > 0);
    need_whole_files(folder);
    folder_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(processes_that_share_a_cache_give_right_results)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
