/* SPDX-License-Identifier: Apache-2.0
 * Platforms that answer oddly, from an OpenCL implementation that belongs to the tests. A loader reads its vendor folder once a
 * process, so this program starts itself again with a folder that holds only that implementation. */
#define _POSIX_C_SOURCE 200809L
#include "attend.h"
#include "facts.h"
#include "files.h"

#include <sys/wait.h>
#include <unistd.h>

static clattn_error error;

struct visited {
    int count;
    cl_device_id last;
};

static bool visit(void *user, int platform_index, int device_index, cl_platform_id platform, cl_device_id device)
{
    struct visited *visited = user;
    (void)platform_index, (void)device_index, (void)platform;
    visited->count++;
    visited->last = device;
    return true;
}

/* Without this test the others would pass even where the loader did not find the implementation. */
static void three_platforms_are_there(void **state)
{
    (void)state;
    cl_uint count = 0;
    assert_int_equal(clGetPlatformIDs(0, NULL, &count), CL_SUCCESS);
    assert_int_equal(count, 3);
}

static void platforms_without_devices_are_skipped(void **state)
{
    (void)state;
    struct visited visited = {0};
    cl_device_id device = NULL;
    clattn_error_init(&error);
    assert_ok(clattn_devices(visit, &visited, &error), &error);
    assert_int_equal(visited.count, 1);
    assert_ok(clattn_device_find(NULL, &device, &error), &error);
    assert_ptr_equal(device, visited.last);
    assert_ok(clattn_device_find("stub with one", &device, &error), &error);
    assert_ptr_equal(device, visited.last);
    assert_int_equal(clattn_device_find("stub without", &device, &error), CLATTN_NO_DEVICE);
    assert_contains(error.message, "Only device"); /* the message lists what there is */
}

static void a_device_that_answers_little_has_facts(void **state)
{
    (void)state;
    static char text[16384];
    struct facts facts;
    cl_device_id device = NULL;
    clattn_error_init(&error);
    assert_ok(clattn_device_find(NULL, &device, &error), &error);
    assert_ok(clattn_device_facts(device, NULL, text, sizeof text, NULL, &error), &error);
    assert_ok(cla_facts_parse(text, &facts, &error), &error);
    assert_string_equal(facts.device_name, "Only device");
    assert_int_equal(facts.max_work_group, 1);
    assert_int_equal(facts.local_mem, 0);
}

static int start_again(const char *path)
{
    int status = 1;
    char *folder = folder_create();
    if (folder == NULL) {
        return 1;
    }
    char *file = path_join(folder, "stub.icd");
    if (file != NULL && file_write(file, CLATTN_STUB_ICD "\n")) {
        const pid_t child = fork();
        if (child == 0) {
            setenv("OCL_ICD_VENDORS", folder, 1);
            unsetenv("OCL_ICD_FILENAMES");
            unsetenv("CLATTN_DEVICE");
            execl(path, path, "here", (char *)NULL);
            _exit(99);
        }
        waitpid(child, &status, 0);
    }
    free(file);
    folder_remove(folder);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(three_platforms_are_there),
        cmocka_unit_test(platforms_without_devices_are_skipped),
        cmocka_unit_test(a_device_that_answers_little_has_facts),
    };
    return argc > 1 ? cmocka_run_group_tests(tests, NULL, NULL) : start_again(argv[0]);
}
