/* SPDX-License-Identifier: Apache-2.0
 * The cache's folder under use by many, and kept in order.  */
/* ctest: threads posix */
#define _GNU_SOURCE /* syscall */
#include "support.h"

#include "cache.h"
#include "files.h"
#include "os/os.h"

#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <utime.h>

static char *root;
static struct cache cache;

static int set_up(void **state)
{
    (void)state;
    root = folder_create();
    memset(&cache, 0, sizeof cache);
    cla_text_add(&cache.folder, "%s/new/folder", root);
    cla_text_add(&cache.identity, "a device");
    return root != NULL && !cache.folder.failed ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    cla_cache_close(&cache);
    folder_remove(root);
    return 0;
}

static struct cache_key key_of(const char *options, const char *text)
{
    struct cache_key key;
    struct text all = {0};
    cla_text_add(&all, "%s", text);
    assert_true(cla_cache_key_of(&cache, "program", options, &all, &key));
    cla_text_free(&all);
    return key;
}

static bool holds(const struct cache_key *key, const char *wanted)
{
    struct text content = {0};
    const bool loaded = cla_cache_load(&cache, key, &content);
    const bool same = loaded && content.length == strlen(wanted) && memcmp(content.data, wanted, content.length) == 0;
    cla_text_free(&content);
    return same;
}

static void entries_come_back_by_their_key(void **state)
{
    (void)state;
    const struct cache_key one = key_of("", "text"), two = key_of("-cl-x", "text"), three = key_of("", "other");
    assert_false(holds(&one, "1"));
    cla_cache_store(&cache, &one, "1", 1);
    cla_cache_store(&cache, &two, "22", 2);
    assert_true(holds(&one, "1"));
    assert_true(holds(&two, "22"));
    assert_false(holds(&three, "1"));
    cla_cache_store(&cache, &one, "new", 3);
    assert_true(holds(&one, "new"));
    cla_text_add(&cache.identity, ", with another driver");
    const struct cache_key updated = key_of("", "text");
    assert_memory_not_equal(&updated, &one, sizeof one);
}

static void another_entry_in_its_place_is_refused(void **state)
{
    (void)state;
    char from[CLA_CACHE_NAME_SIZE], to[CLA_CACHE_NAME_SIZE];
    const struct cache_key one = key_of("", "1"), two = key_of("", "2");
    cla_cache_store(&cache, &one, "1", 1);
    cla_cache_store(&cache, &two, "2", 1);
    cla_cache_name(&one, from);
    cla_cache_name(&two, to);
    char *source = path_join(cache.folder.data, from), *target = path_join(cache.folder.data, to);
    assert_int_equal(rename(source, target), 0);
    assert_false(holds(&two, "1"));
    assert_false(holds(&two, "2"));
    cla_cache_store(&cache, &two, "2", 1);
    assert_true(holds(&two, "2"));
    free(source);
    free(target);
}

static void without_a_store_nothing_happens(void **state)
{
    (void)state;
    const struct cache_key key = key_of("", "text");
    struct text text = {0};
    struct cache_key none;
    cla_cache_close(&cache);
    cla_cache_store(&cache, &key, "1", 1);
    assert_false(holds(&key, "1"));
    assert_false(cla_cache_key_of(&cache, "program", "", &text, &none));
}

/* A folder or an entry that another user could have written is neither read nor changed. */
static void what_others_may_write_to_is_not_used(void **state)
{
    (void)state;
    const struct cache_key key = key_of("", "text");
    char name[CLA_CACHE_NAME_SIZE];
    cla_cache_name(&key, name);
    cla_cache_store(&cache, &key, "1", 1);
    assert_true(holds(&key, "1"));
    assert_int_equal(chmod(cache.folder.data, 0777), 0);
    assert_false(holds(&key, "1"));
    cla_cache_store(&cache, &key, "2", 1);
    assert_int_equal(chmod(cache.folder.data, 0700), 0);
    assert_true(holds(&key, "1"));
    char *path = path_join(cache.folder.data, name), *other = path_join(root, "other");
    assert_int_equal(chmod(path, 0666), 0);
    assert_false(holds(&key, "1"));
    cla_cache_store(&cache, &key, "3", 1); /* made anew */
    assert_true(holds(&key, "3"));
    assert_int_equal(rename(path, other), 0);
    assert_int_equal(symlink(other, path), 0);
    assert_false(holds(&key, "3"));
    free(other);
    free(path);
}

static void plant(const char *name, off_t size, time_t age)
{
    char *path = path_join(cache.folder.data, name);
    struct utimbuf times;
    assert_true(file_write(path, "x"));
    assert_int_equal(truncate(path, size), 0);
    times.actime = times.modtime = time(NULL) - age;
    assert_int_equal(utime(path, &times), 0);
    free(path);
}

static bool is_there(const char *name)
{
    struct stat info;
    char *path = path_join(cache.folder.data, name);
    const bool there = stat(path, &info) == 0;
    free(path);
    return there;
}

static void the_folder_is_kept_in_order(void **state)
{
    (void)state;
    const off_t big = (off_t)200 << 20; /* of holes: no disk is used */
    const struct cache_key key = key_of("", "text");
    assert_true(cla_make_folder(cache.folder.data));
    plant("00112233445566778899aabbccddeeff.clb.1.0.tmp", 5, 3600);
    plant("00112233445566778899aabbccddeeff.clb.2.0.tmp", 5, 0);
    plant("00000000000000000000000000000001.clb", big, 30);
    plant("00000000000000000000000000000002.clb", big, 20);
    plant("00000000000000000000000000000003.clb", big, 10);
    plant("not-ours.clb", big, 90000);
    plant("letters.tmp", 5, 90000);
    cla_cache_store(&cache, &key, "1", 1);
    assert_false(is_there("00112233445566778899aabbccddeeff.clb.1.0.tmp"));
    assert_true(is_there("00112233445566778899aabbccddeeff.clb.2.0.tmp")); /* perhaps still being written */
    assert_false(is_there("00000000000000000000000000000001.clb"));        /* the oldest makes room */
    assert_true(is_there("00000000000000000000000000000002.clb"));
    assert_true(is_there("00000000000000000000000000000003.clb"));
    assert_true(is_there("not-ours.clb"));
    assert_true(is_there("letters.tmp"));
    assert_true(holds(&key, "1"));
}

/* An entry that was used since it was written stays; one written later but never used is removed. */
static void a_used_entry_is_young_again(void **state)
{
    (void)state;
    const struct cache_key used = key_of("", "used"), unused = key_of("", "unused"), added = key_of("", "added");
    char used_name[CLA_CACHE_NAME_SIZE], unused_name[CLA_CACHE_NAME_SIZE];
    cla_cache_name(&used, used_name);
    cla_cache_name(&unused, unused_name);
    cla_cache_store(&cache, &used, "1", 1);
    char *path = path_join(cache.folder.data, used_name);
    const struct utimbuf old = {time(NULL) - 90, time(NULL) - 90};
    assert_int_equal(utime(path, &old), 0);
    free(path);
    plant(unused_name, (off_t)510 << 20, 60);
    assert_true(holds(&used, "1"));
    plant("00000000000000000000000000000001.clb", (off_t)100 << 20, 0);
    cla_cache_store(&cache, &added, "1", 1);
    assert_false(is_there(unused_name));
    assert_true(is_there(used_name));
}

/* ------------------------------------------------------------------------------------------------------ many at once */

enum { PROCESSES = 16, THREADS = 8, ENTRIES = 4, ROUNDS = 60, CONTENT = 20000 };

static struct cache_key keys[ENTRIES];

/* Every byte of an entry's content tells which entry it is. */
static void fill(char *content, size_t entry) { memset(content, 'a' + (int)entry, CONTENT); }

static void *use_the_folder(void *seed)
{
    uint32_t number = *(const uint32_t *)seed;
    char *bad = NULL, *wanted = malloc(CONTENT);
    for (int round = 0; wanted != NULL && round < ROUNDS && bad == NULL; round++) {
        number = number * 1664525u + 1013904223u;
        const size_t entry = (number >> 16) % ENTRIES;
        struct text content = {0};
        fill(wanted, entry);
        if ((number >> 24) % 3 == 0) {
            cla_cache_store(&cache, &keys[entry], wanted, CONTENT);
        } else if (cla_cache_load(&cache, &keys[entry], &content) &&
                   (content.length != CONTENT || memcmp(content.data, wanted, CONTENT) != 0)) {
            bad = wanted;
        }
        cla_text_free(&content);
    }
    free(wanted);
    return bad;
}

static void use_by_threads(uint32_t seed)
{
    pthread_t threads[THREADS];
    uint32_t seeds[THREADS];
    bool bad = false;
    for (size_t i = 0; i < THREADS; i++) {
        seeds[i] = seed * 100 + (uint32_t)i;
        bad = pthread_create(&threads[i], NULL, use_the_folder, &seeds[i]) != 0 || bad;
    }
    for (size_t i = 0; i < THREADS; i++) {
        void *result = NULL;
        bad = pthread_join(threads[i], &result) != 0 || result != NULL || bad;
    }
    _exit(bad ? 1 : 0);
}

static void nap(long milliseconds)
{
    const struct timespec time = {0, milliseconds * 1000000};
    nanosleep(&time, NULL);
}

static bool dies_at_rename;
int renameat(int from_folder, const char *from, int to_folder, const char *to)
{
    if (dies_at_rename) {
        kill(getpid(), SIGKILL);
    }
    return (int)syscall(SYS_renameat2, from_folder, from, to_folder, to, 0);
}

/* The previous entry stays, and the file that the process left is removed once it is old. */
static void a_writer_killed_before_the_rename_costs_its_own_entry_only(void **state)
{
    (void)state;
    const struct cache_key key = key_of("", "text");
    char name[CLA_CACHE_NAME_SIZE + 32];
    int status = 0;
    cla_cache_store(&cache, &key, "old", 3);
    cla_cache_name(&key, name);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dies_at_rename = true;
        cla_cache_store(&cache, &key, "new", 3);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    assert_true(holds(&key, "old"));
    snprintf(name + CLA_CACHE_NAME_SIZE - 1, 32, ".%ld.0.tmp", (long)child);
    assert_true(is_there(name));
    char *path = path_join(cache.folder.data, name);
    const struct utimbuf old = {time(NULL) - 3600, time(NULL) - 3600};
    assert_int_equal(utime(path, &old), 0);
    cla_cache_store(&cache, &key, "next", 4);
    assert_false(is_there(name));
    assert_true(holds(&key, "next"));
    free(path);
}

static void many_processes_share_a_folder_and_some_are_killed(void **state)
{
    (void)state;
    pid_t children[PROCESSES];
    struct names names;
    char text[] = "0", wanted[CONTENT];
    size_t killed = 0;
    for (size_t i = 0; i < ENTRIES; i++) {
        text[0] = (char)('0' + i);
        keys[i] = key_of("", text);
    }
    for (size_t i = 0; i < PROCESSES; i++) {
        children[i] = fork();
        assert_true(children[i] >= 0);
        if (children[i] == 0) {
            use_by_threads((uint32_t)i);
        }
    }
    for (size_t i = 0; i < PROCESSES; i += 4) {
        nap(15);
        kill(children[i], SIGKILL);
    }
    for (size_t i = 0; i < PROCESSES; i++) {
        int status = 0;
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        killed += WIFSIGNALED(status);
        assert_true(WIFSIGNALED(status) ? i % 4 == 0 : WEXITSTATUS(status) == 0);
    }
    print_message("%zu of %d processes were killed while working\n", killed, (int)PROCESSES);
    assert_true(folder_list(cache.folder.data, ".clb", &names));
    for (size_t i = 0; i < ENTRIES; i++) {
        struct text content = {0};
        char name[CLA_CACHE_NAME_SIZE];
        cla_cache_name(&keys[i], name);
        fill(wanted, i);
        if (is_there(name)) {
            assert_true(cla_cache_load(&cache, &keys[i], &content));
            assert_int_equal(content.length, CONTENT);
            assert_memory_equal(content.data, wanted, CONTENT);
        }
        cla_text_free(&content);
    }
    assert_int_equal(names.count, ENTRIES);
    names_free(&names);
}

#define WITH_ROOT(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_ROOT(entries_come_back_by_their_key),       WITH_ROOT(another_entry_in_its_place_is_refused),
        WITH_ROOT(without_a_store_nothing_happens),      WITH_ROOT(the_folder_is_kept_in_order),
        WITH_ROOT(what_others_may_write_to_is_not_used), WITH_ROOT(a_writer_killed_before_the_rename_costs_its_own_entry_only),
        WITH_ROOT(a_used_entry_is_young_again),          WITH_ROOT(many_processes_share_a_folder_and_some_are_killed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
