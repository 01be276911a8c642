/* SPDX-License-Identifier: Apache-2.0
 * Files, folders and the environment on POSIX systems: files that other users may write are not read, and a failure while
 * writing leaves the old file. */
/* ctest: posix */
#define _GNU_SOURCE /* syscall */
#include "support.h"

#include "files.h"
#include "os/os.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { NOBODY = 65534 };

static char *root;
static struct cla_folder folder; /* the root, opened */

/* Takes the place of the system's while this program runs. */
static bool rename_fails;
int renameat(int from_folder, const char *from, int to_folder, const char *to)
{
    if (rename_fails) {
        errno = EIO;
        return -1;
    }
    return (int)syscall(SYS_renameat2, from_folder, from, to_folder, to, 0);
}

static int set_up(void **state)
{
    (void)state;
    root = folder_create();
    return root != NULL && cla_folder_open(root, &folder) == CLA_FOLDER_OPEN ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    cla_folder_close(&folder);
    folder_remove(root);
    return 0;
}

static bool is_read(const char *name)
{
    struct text text = {0};
    const bool read = cla_folder_read(&folder, name, 100, &text);
    cla_text_free(&text);
    return read;
}

static void assert_entry(const char *name, const char *wanted)
{
    struct text text = {0};
    assert_true(cla_folder_read(&folder, name, 100, &text));
    assert_int_equal(text.length, strlen(wanted));
    assert_memory_equal(text.data ? text.data : "", wanted, text.length);
    cla_text_free(&text);
}

static void assert_entry_count(size_t count)
{
    struct names names;
    assert_true(folder_list(root, "", &names));
    assert_int_equal(names.count, count);
    names_free(&names);
}

static void need_root(void)
{
    if (geteuid() != 0) {
        print_message("only root can give files away\n");
        skip();
    }
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
    assert_false(cla_folder_read(&folder, "entry", 4, &text));
    assert_true(cla_folder_read(&folder, "entry", 5, &text));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_false(cla_read_file(path, 100, &text));
    assert_false(is_read("entry"));
    assert_true(cla_folder_replace(&folder, "entry", "x", 1)); /* an empty folder in the file's place is replaced */
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_false(cla_read_file(path, 100, &text)); /* and does not wait for a writer */
    assert_false(is_read("entry"));
    assert_true(cla_folder_replace(&folder, "entry", "y", 1));
    assert_entry("entry", "y");
    cla_text_free(&text);
    free(path);
}

/* /proc/self/pagemap is a plain file of size 0 that has 256 TB. */
static void a_file_without_an_end_is_read_to_the_limit_only(void **state)
{
    (void)state;
    struct text text = {0};
    struct cla_folder process;
    if (access("/proc/self/pagemap", R_OK) != 0 || cla_folder_open("/proc/self", &process) != CLA_FOLDER_OPEN) {
        skip();
    }
    assert_false(cla_read_file("/proc/self/pagemap", 100000, &text));
    assert_true(text.length <= 100000);
    assert_false(cla_folder_read(&process, "pagemap", 100000, &text));
    assert_true(text.length <= 200000);
    cla_folder_close(&process);
    cla_text_free(&text);
}

static void symbolic_links_are_not_followed(void **state)
{
    (void)state;
    static const char *const targets[] = {"real", "/dev/zero", "/proc/self/pagemap", "absent"};
    char *path = path_join(root, "link");
    assert_true(cla_folder_replace(&folder, "real", "r", 1));
    for (size_t i = 0; i < COUNT_OF(targets); i++) {
        assert_int_equal(symlink(targets[i], path), 0);
        assert_false(is_read("link"));
        assert_true(cla_folder_replace(&folder, "link", "x", 1)); /* takes the link's place, not its target's */
        assert_entry("link", "x");
        assert_entry("real", "r");
        assert_int_equal(unlink(path), 0);
    }
    free(path);
}

static void a_folder_of_another_user_is_refused(void **state)
{
    (void)state;
    struct cla_folder other;
    need_root();
    assert_int_equal(chown(root, NOBODY, 0), 0);
    assert_int_equal(cla_folder_open(root, &other), CLA_FOLDER_FOREIGN);
    assert_int_equal(chown(root, 0, NOBODY), 0);
    assert_int_equal(cla_folder_open(root, &other), CLA_FOLDER_OPEN);
    cla_folder_close(&other);
}

static void a_folder_that_others_may_write_to_is_refused(void **state)
{
    (void)state;
    static const struct {
        mode_t mode;
        enum cla_folder_state state;
    } rows[] = {{0777, CLA_FOLDER_SHARED},  {0770, CLA_FOLDER_SHARED}, {0702, CLA_FOLDER_SHARED},
                {01777, CLA_FOLDER_SHARED}, {0755, CLA_FOLDER_OPEN},   {0700, CLA_FOLDER_OPEN}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct cla_folder found;
        assert_int_equal(chmod(root, rows[i].mode), 0);
        const enum cla_folder_state as = cla_folder_open(root, &found);
        if (as != rows[i].state) {
            fail_msg("mode %o: state %d", (unsigned)rows[i].mode, (int)as);
        }
        if (as == CLA_FOLDER_OPEN) {
            cla_folder_close(&found);
        }
    }
    assert_int_equal(chmod(root, 0700), 0);
}

static void an_entry_that_others_own_or_may_write_to_is_not_read(void **state)
{
    (void)state;
    char *path = path_join(root, "entry");
    assert_true(cla_folder_replace(&folder, "entry", "x", 1));
    static const mode_t shared[] = {0666, 0620, 0602}, own[] = {0600, 0644, 0400};
    for (size_t i = 0; i < COUNT_OF(shared); i++) {
        assert_int_equal(chmod(path, shared[i]), 0);
        assert_false(is_read("entry"));
        assert_int_equal(chmod(path, own[i]), 0);
        assert_true(is_read("entry"));
    }
    if (geteuid() == 0) {
        assert_int_equal(chown(path, NOBODY, 0), 0);
        assert_false(is_read("entry"));
        assert_true(cla_folder_replace(&folder, "entry", "y", 1));
        assert_entry("entry", "y");
    }
    free(path);
}

/* A file or folder that replaces the path meanwhile is not used. */
static void an_open_folder_stays_the_one_that_was_checked(void **state)
{
    (void)state;
    char *inner = path_join(root, "inner"), *moved = path_join(root, "moved");
    struct cla_folder opened;
    struct text text = {0};
    assert_int_equal(mkdir(inner, 0700), 0);
    assert_int_equal(cla_folder_open(inner, &opened), CLA_FOLDER_OPEN);
    assert_int_equal(rename(inner, moved), 0);
    assert_int_equal(mkdir(inner, 0777), 0);
    assert_true(cla_folder_replace(&opened, "f", "z", 1));
    assert_true(cla_folder_read(&opened, "f", 1, &text));
    char *path = path_join(moved, "f");
    assert_int_equal(access(path, F_OK), 0);
    cla_folder_close(&opened);
    cla_text_free(&text);
    free(inner);
    free(moved);
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
    const bool superuser = geteuid() == 0;
    assert_int_equal(chmod(root, 0555), 0);
    if (superuser) {
        assert_int_equal(seteuid(65534), 0);
    }
    const bool written = cla_folder_replace(&folder, "f", "z", 1);
    if (superuser) {
        assert_int_equal(seteuid(0), 0);
    }
    assert_int_equal(chmod(root, 0700), 0);
    assert_false(written);
    assert_entry_count(0);
}

static volatile sig_atomic_t signals;
static void count_signal(int number) { signals += number == SIGXFSZ; }

/* Writing stops in the middle, as on a full disk; the signal of the limit, which would end the process, is blocked. */
static void a_full_disk_leaves_the_old_file(void **state)
{
    (void)state;
    struct rlimit old, tight;
    sigset_t waiting;
    static char bytes[10000];
    assert_true(cla_folder_replace(&folder, "f", "old", 3));
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    tight = old;
    tight.rlim_cur = 5000;
    signals = 0;
    void (*handler)(int) = signal(SIGXFSZ, count_signal);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
    const bool written = cla_folder_replace(&folder, "f", bytes, sizeof bytes);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_int_equal(sigpending(&waiting), 0);
    assert_false(sigismember(&waiting, SIGXFSZ));
    assert_int_equal(signals, 0);
    assert_int_equal(raise(SIGXFSZ), 0); /* and is let through again */
    assert_int_equal(signals, 1);
    signal(SIGXFSZ, handler);
    assert_false(written);
    assert_entry("f", "old");
    assert_entry_count(1);
}

static void a_failed_rename_leaves_the_old_file(void **state)
{
    (void)state;
    assert_true(cla_folder_replace(&folder, "f", "old", 3));
    rename_fails = true;
    const bool written = cla_folder_replace(&folder, "f", "new", 3);
    rename_fails = false;
    assert_false(written);
    assert_entry("f", "old");
    assert_entry_count(1);
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
        WITH_ROOT(a_file_without_an_end_is_read_to_the_limit_only),
        WITH_ROOT(symbolic_links_are_not_followed),
        WITH_ROOT(a_folder_of_another_user_is_refused),
        WITH_ROOT(a_folder_that_others_may_write_to_is_refused),
        WITH_ROOT(an_entry_that_others_own_or_may_write_to_is_not_read),
        WITH_ROOT(an_open_folder_stays_the_one_that_was_checked),
        WITH_ROOT(new_folders_are_the_users_alone),
        WITH_ROOT(a_read_only_folder_is_left_alone),
        WITH_ROOT(a_full_disk_leaves_the_old_file),
        WITH_ROOT(a_failed_rename_leaves_the_old_file),
        cmocka_unit_test(the_cache_folder_follows_the_environment),
        cmocka_unit_test(functions_of_opencl_are_found_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
