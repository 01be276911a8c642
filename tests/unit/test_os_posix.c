/* SPDX-License-Identifier: Apache-2.0
 * Files, folders and the environment, as POSIX systems have them. */
/* ctest: posix */
#include "support.h"

#include "files.h"
#include "os/os.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static char *root;

static int set_up(void **state)
{
    (void)state;
    root = folder_create();
    return root != NULL ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    folder_remove(root);
    return 0;
}

static void assert_file(const char *folder, const char *name, const char *wanted)
{
    struct text text = {0};
    char *path = path_join(folder, name);
    assert_true(cla_read_file(path, 100, &text));
    assert_int_equal(text.length, strlen(wanted));
    assert_memory_equal(text.data ? text.data : "", wanted, text.length);
    cla_text_free(&text);
    free(path);
}

static void only_plain_files_within_the_limit_are_read(void **state)
{
    (void)state;
    struct text text = {0};
    char *path = path_join(root, "entry");
    assert_false(cla_read_file(path, 100, &text));
    assert_true(file_write(path, "12345"));
    assert_false(cla_read_file(path, 4, &text));
    assert_true(cla_read_file(path, 5, &text));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_false(cla_read_file(path, 100, &text));
    assert_true(cla_replace_file(root, "entry", "x", 1)); /* an empty folder in the file's place gives way */
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_false(cla_read_file(path, 100, &text)); /* and does not wait for a writer */
    assert_true(cla_replace_file(root, "entry", "y", 1));
    assert_file(root, "entry", "y");
    cla_text_free(&text);
    free(path);
}

static void new_folders_are_the_users_alone(void **state)
{
    (void)state;
    struct stat info;
    char *path = path_join(root, "a/b");
    assert_true(cla_make_folder(path));
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0700);
    free(path);
}

/* A folder that may not be written to: the superuser may write anywhere, so this looks from below. */
static void a_read_only_folder_is_left_alone(void **state)
{
    (void)state;
    struct names names;
    const bool superuser = geteuid() == 0;
    assert_int_equal(chmod(root, 0555), 0);
    if (superuser) {
        assert_int_equal(seteuid(65534), 0);
    }
    const bool written = cla_replace_file(root, "f", "z", 1);
    if (superuser) {
        assert_int_equal(seteuid(0), 0);
    }
    assert_int_equal(chmod(root, 0700), 0);
    assert_false(written);
    assert_true(folder_list(root, "", &names));
    assert_int_equal(names.count, 0);
    names_free(&names);
}

/* Writing stops in the middle, as on a full disk. */
static void a_full_disk_leaves_the_old_file(void **state)
{
    (void)state;
    struct names names;
    struct rlimit old, tight;
    static char bytes[10000];
    assert_true(cla_replace_file(root, "f", "old", 3));
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    tight = old;
    tight.rlim_cur = 5000;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
    const bool written = cla_replace_file(root, "f", bytes, sizeof bytes);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    signal(SIGXFSZ, handler);
    assert_false(written);
    assert_file(root, "f", "old");
    assert_true(folder_list(root, "", &names));
    assert_int_equal(names.count, 1);
    names_free(&names);
}

static const char *home_with(const char *xdg, const char *home)
{
    static char found[200];
    struct text text = {0};
    xdg != NULL ? setenv("XDG_CACHE_HOME", xdg, 1) : unsetenv("XDG_CACHE_HOME");
    home != NULL ? setenv("HOME", home, 1) : unsetenv("HOME");
    const bool ok = cla_cache_home(&text);
    snprintf(found, sizeof found, "%s", ok ? text.data : "none");
    cla_text_free(&text);
    return found;
}

static void the_cache_folder_follows_the_environment(void **state)
{
    (void)state;
    assert_string_equal(home_with("/x", "/h"), "/x");
    assert_string_equal(home_with("", "/h"), "/h/.cache");
    assert_string_equal(home_with("relative", "/h"), "/h/.cache");
    assert_string_equal(home_with(NULL, "/h"), "/h/.cache");
    assert_string_equal(home_with(NULL, ""), "none");
    assert_string_equal(home_with(NULL, "relative"), "none");
    assert_string_equal(home_with(NULL, NULL), "none");
    assert_string_equal(home_with("/x", NULL), "/x");
}

static void functions_of_opencl_are_found_by_name(void **state)
{
    (void)state;
    assert_true(cla_opencl_function("clGetPlatformIDs") != NULL);
    assert_true(cla_opencl_function("clNoSuchFunction") == NULL);
}

#define WITH_ROOT(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_ROOT(only_plain_files_within_the_limit_are_read),
        WITH_ROOT(new_folders_are_the_users_alone),
        WITH_ROOT(a_read_only_folder_is_left_alone),
        WITH_ROOT(a_full_disk_leaves_the_old_file),
        cmocka_unit_test(the_cache_folder_follows_the_environment),
        cmocka_unit_test(functions_of_opencl_are_found_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
