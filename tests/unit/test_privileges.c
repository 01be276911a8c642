/* SPDX-License-Identifier: Apache-2.0
 * A program that has more rights than the user who starts it takes nothing from that user's environment. A copy of this test
 * program, with a setuid bit or a file capability, is started by another user; without either, as the control. */
/* ctest: posix */
#include "support.h"

#include "files.h"
#include "os/os.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/xattr.h>
#endif

enum { NOBODY = 65534 };

static char *root, *program;

/* What the copy prints: the variables as the library sees them. */
static void print_environment(void)
{
    struct text path = {0}, home = {0};
    const char *word = cla_environment("CLATTN_SOURCE_DIR");
    const bool has_path = cla_environment_path("CLATTN_OPENCL_LIBRARY", &path), has_home = cla_cache_home(&home);
    printf("%d %s %s %s\n", cla_is_privileged(), word != NULL ? word : "-", has_path ? path.data : "-",
           has_home ? home.data : "-");
    cla_text_free(&path);
    cla_text_free(&home);
    fflush(stdout);
    _exit(0); /* a leak checker that runs at exit may not inspect a privileged process */
}

static bool copy_self(const char *to)
{
    char block[65536];
    size_t got = 0;
    FILE *from = fopen("/proc/self/exe", "rb"), *copy = fopen(to, "wb");
    bool ok = from != NULL && copy != NULL;
    while (ok && (got = fread(block, 1, sizeof block, from)) > 0) {
        ok = fwrite(block, 1, got, copy) == got;
    }
    ok = copy != NULL && fclose(copy) == 0 && ok;
    if (from != NULL) {
        fclose(from);
    }
    return ok;
}

static int set_up(void **state)
{
    (void)state;
    root = folder_create();
    program = root != NULL ? path_join(root, "program") : NULL;
    return program != NULL && copy_self(program) && chmod(root, 0755) == 0 && chmod(program, 0755) == 0 ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    free(program);
    folder_remove(root);
    return 0;
}

/* What the copy prints when another user starts it with every variable set. */
static void start(char *said, size_t size)
{
    int ends[2], status = 0;
    assert_int_equal(pipe(ends), 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        char *const arguments[] = {program, "environment", NULL};
        char *const environment[] = {"CLATTN_SOURCE_DIR=/of/the/user", "CLATTN_OPENCL_LIBRARY=/of/the/user.so",
                                     "XDG_CACHE_HOME=/of/the/user/cache", "HOME=/of/the/user", NULL};
        dup2(ends[1], 1);
        close(ends[0]);
        if (setgid(NOBODY) == 0 && setuid(NOBODY) == 0) {
            execve(program, arguments, environment);
        }
        _exit(126);
    }
    close(ends[1]);
    size_t length = 0;
    for (ssize_t got; length + 1 < size && (got = read(ends[0], said + length, size - length - 1)) > 0;) {
        length += (size_t)got;
    }
    said[length] = '\0';
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 126) { /* /tmp belongs to another namespace or is mounted noexec */
        skip();
    }
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void need_root(void)
{
    if (geteuid() != 0) {
        print_message("only root can make a program of other rights\n");
        skip();
    }
}

static void an_ordinary_program_reads_its_environment(void **state)
{
    (void)state;
    char said[256];
    need_root();
    start(said, sizeof said);
    assert_string_equal(said, "0 /of/the/user /of/the/user.so /of/the/user/cache\n");
}

static void a_setuid_program_takes_nothing_from_the_environment(void **state)
{
    (void)state;
    char said[256];
    need_root();
    assert_int_equal(chmod(program, 04755), 0);
    start(said, sizeof said);
    assert_string_equal(said, "1 - - -\n");
}

static void a_setgid_program_takes_nothing_from_the_environment(void **state)
{
    (void)state;
    char said[256];
    need_root();
    assert_int_equal(chmod(program, 02755), 0);
    start(said, sizeof said);
    assert_string_equal(said, "1 - - -\n");
}

/* CAP_NET_RAW, permitted and effective: the program's uid and gid are the user's own. */
static void a_program_with_file_capabilities_takes_nothing_from_the_environment(void **state)
{
    (void)state;
#ifdef __linux__
    static const unsigned char capability[20] = {0x01, 0x00, 0x00, 0x02, 0x00, 0x20};
    char said[256];
    need_root();
    if (setxattr(program, "security.capability", capability, sizeof capability, 0) != 0) {
        print_message("this file system or container has no file capabilities\n");
        skip();
    }
    start(said, sizeof said);
    assert_string_equal(said, "1 - - -\n");
#else
    skip();
#endif
}

#define WITH_PROGRAM(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "environment") == 0) {
        print_environment();
    }
    const struct CMUnitTest tests[] = {
        WITH_PROGRAM(an_ordinary_program_reads_its_environment),
        WITH_PROGRAM(a_setuid_program_takes_nothing_from_the_environment),
        WITH_PROGRAM(a_setgid_program_takes_nothing_from_the_environment),
        WITH_PROGRAM(a_program_with_file_capabilities_takes_nothing_from_the_environment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
