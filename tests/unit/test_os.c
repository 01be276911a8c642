/* SPDX-License-Identifier: Apache-2.0
 * Files and folders. */
#include "support.h"

#include "files.h"
#include "os/os.h"

static char *root;
static struct cla_folder folder; /* the root, opened */

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

static void assert_entry(const char *name, const char *wanted)
{
    struct text text = {0};
    assert_true(cla_folder_read(&folder, name, 100, &text));
    assert_int_equal(text.length, strlen(wanted));
    assert_memory_equal(text.data ? text.data : "", wanted, text.length);
    cla_text_free(&text);
}

/* A folder that was just made takes a file and gives it back. */
static void assert_usable(const char *path)
{
    struct cla_folder made;
    struct text text = {0};
    assert_int_equal(cla_folder_open(path, &made), CLA_FOLDER_OPEN);
    assert_true(cla_folder_replace(&made, "f", "z", 1));
    assert_true(cla_folder_read(&made, "f", 1, &text));
    assert_string_equal(text.data, "z");
    cla_text_free(&text);
    cla_folder_close(&made);
}

static void a_file_is_replaced_whole(void **state)
{
    (void)state;
    struct names names;
    assert_true(cla_folder_replace(&folder, "one", "first", 5));
    assert_entry("one", "first");
    assert_true(cla_folder_replace(&folder, "one", "2nd", 3));
    assert_entry("one", "2nd");
    assert_true(folder_list(root, "", &names));
    assert_int_equal(names.count, 1);
    names_free(&names);
    cla_folder_remove(&folder, "one");
    assert_true(folder_list(root, "", &names));
    assert_int_equal(names.count, 0);
    names_free(&names);
}

static void folders_are_made_with_their_parents(void **state)
{
    (void)state;
    static const char *const names[] = {"a/b/c", "with blanks/-g", "\xc3\xb6 \xe6\xb5\x8b\xe8\xaf\x95/\xd0\xba\xd1\x8d\xd1\x88",
                                        "a/b/c"};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        char *path = path_join(root, names[i]);
        assert_true(cla_make_folder(path));
        assert_usable(path);
        free(path);
    }
    char name[201];
    memset(name, 'n', 200);
    name[200] = '\0';
    char *path = path_join(root, name);
    assert_true(cla_make_folder(path));
    assert_usable(path);
    free(path);
}

struct seen {
    size_t files, bytes;
};

static void look(void *user, const char *name, uint64_t size, uint64_t age)
{
    struct seen *seen = user;
    if (name[0] == 'f') {
        seen->files++;
        seen->bytes += size;
        assert_true(age < 3600);
    }
}

static void all_files_of_a_folder_are_visited(void **state)
{
    (void)state;
    struct seen seen = {0, 0};
    assert_true(cla_folder_replace(&folder, "f1", "abc", 3));
    assert_true(cla_folder_replace(&folder, "f2", "defg", 4));
    cla_folder_visit(&folder, look, &seen);
    assert_int_equal(seen.files, 2);
    assert_int_equal(seen.bytes, 7);
}

static void absolute_paths_are_known(void **state)
{
    (void)state;
    assert_true(cla_path_is_absolute("/a"));
    assert_false(cla_path_is_absolute("a/b"));
    assert_false(cla_path_is_absolute(""));
}

static void impossible_folders_are_refused(void **state)
{
    (void)state;
    struct cla_folder none;
    char *file = path_join(root, "file"), *below = path_join(root, "file/below"), *absent = path_join(root, "absent");
    assert_true(file_write(file, ""));
    assert_false(cla_make_folder(file));
    assert_false(cla_make_folder(below));
    assert_false(cla_make_folder(""));
    assert_int_equal(cla_folder_open(file, &none), CLA_FOLDER_ABSENT);
    assert_int_equal(cla_folder_open(below, &none), CLA_FOLDER_ABSENT);
    assert_int_equal(cla_folder_open(absent, &none), CLA_FOLDER_ABSENT);
    free(file);
    free(below);
    free(absent);
}

#define WITH_ROOT(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_ROOT(a_file_is_replaced_whole),          WITH_ROOT(folders_are_made_with_their_parents),
        WITH_ROOT(all_files_of_a_folder_are_visited), WITH_ROOT(impossible_folders_are_refused),
        cmocka_unit_test(absolute_paths_are_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
