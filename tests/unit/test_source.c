/* SPDX-License-Identifier: Apache-2.0
 * src/source.c: kernel source composed from files, and the map from its lines back to files. */
#include "support.h"

#include "embedded.h"
#include "files.h"
#include "source.h"

static clattn_error error;
static char *root; /* a folder whose cl/ belongs to one test */

static int make_root(void **state)
{
    (void)state;
    clattn_error_init(&error);
    root = sources_copy();
    return root == NULL ? -1 : 0;
}

static int remove_root(void **state)
{
    (void)state;
    sources_remove(root);
    root = NULL;
    return 0;
}

static void put(const char *name, const char *text)
{
    char *path = path_join(root, name);
    assert_true(file_write(path, text));
    free(path);
}

static size_t occurrences(const char *text, const char *part)
{
    size_t count = 0;
    for (const char *at = text; (at = strstr(at, part)) != NULL; at += strlen(part)) {
        count++;
    }
    return count;
}

/* The number of the line, from 1, in which `part` first occurs. */
static int line_of(const char *text, const char *part)
{
    const char *at = strstr(text, part);
    assert_non_null(at);
    int line = 1;
    for (const char *c = text; c < at; c++) {
        line += *c == '\n';
    }
    return line;
}

static void defines_come_first_and_files_in_order(void **state)
{
    (void)state;
    put("cl/a.cl", "int in_a;\n");
    put("cl/b.cl", "int in_b;\n");
    struct source source;
    const char *const files[] = {"cl/b.cl", "cl/a.cl"};
    assert_ok(cla_source_compose(&source, "#define X 1\n#define Y 2\n", files, 2, root, &error), &error);
    assert_memory_equal(source.text.data, "#define X 1\n#define Y 2\n", 24);
    assert_true(line_of(source.text.data, "in_b") < line_of(source.text.data, "in_a"));
    assert_contains(source.text.data, "#line 1 \"cl/b.cl\"\nint in_b;\n");
    assert_contains(source.text.data, "#line 1 \"cl/a.cl\"\nint in_a;\n");
    cla_source_free(&source);
}

static void each_file_is_included_once(void **state)
{
    (void)state;
    put("cl/a.cl", "#include \"cl/c.cl\"\nint in_a;\n  #include   \"cl/c.cl\"\nint after_a;\n");
    put("cl/b.cl", "#include \"cl/c.cl\"\n#include \"cl/a.cl\"\nint in_b;\n");
    put("cl/c.cl", "int in_c;\n#include \"cl/c.cl\"\n");
    struct source source;
    const char *const files[] = {"cl/a.cl", "cl/b.cl", "cl/c.cl"};
    assert_ok(cla_source_compose(&source, "", files, 3, root, &error), &error);
    assert_int_equal(occurrences(source.text.data, "in_a"), 1);
    assert_int_equal(occurrences(source.text.data, "in_b"), 1);
    assert_int_equal(occurrences(source.text.data, "in_c"), 1);
    assert_lacks(source.text.data, "#include");
    assert_true(line_of(source.text.data, "in_c") < line_of(source.text.data, "in_a"));
    /* Back in the including file, after the line of the #include. */
    assert_contains(source.text.data, "#line 2 \"cl/a.cl\"\nint in_a;\n");
    assert_contains(source.text.data, "#line 4 \"cl/a.cl\"\nint after_a;\n");
    cla_source_free(&source);
}

static void lines_find_their_files(void **state)
{
    (void)state;
    put("cl/c.cl", "int c_1;\nint c_2;\n");
    put("cl/a.cl", "int a_1;\n#include \"cl/c.cl\"\nint a_3;\n\nint a_5;\n");
    struct source source;
    const char *const files[] = {"cl/a.cl"};
    assert_ok(cla_source_compose(&source, "#define D 1\n", files, 1, root, &error), &error);
    static const struct {
        const char *part, *file;
        int line;
    } rows[] = {
        {"a_1", "cl/a.cl", 1}, {"c_1", "cl/c.cl", 1}, {"c_2", "cl/c.cl", 2}, {"a_3", "cl/a.cl", 3}, {"a_5", "cl/a.cl", 5}};
    const char *file;
    int line;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        assert_true(cla_source_locate(&source, line_of(source.text.data, rows[i].part), &file, &line));
        assert_string_equal(file, rows[i].file);
        assert_int_equal(line, rows[i].line);
    }
    assert_false(cla_source_locate(&source, 1, &file, &line));
    assert_false(cla_source_locate(&source, 0, &file, &line));
    assert_false(cla_source_locate(&source, -5, &file, &line));
    assert_false(cla_source_locate(&source, 1000000, &file, &line));
    cla_source_free(&source);
}

/* The map finds the file and line of every line of the real files, for drivers that ignore #line. */
static void every_line_of_the_real_files_is_found(void **state)
{
    (void)state;
    struct source source;
    const char *const files[] = {"cl/base.cl",     "cl/args.cl",  "cl/tile.cl",    "cl/engines/reference/reference.cl",
                                 "cl/contract.cl", "cl/score.cl", "cl/softmax.cl", "cl/epilogue.cl",
                                 "cl/attention.cl"};
    assert_ok(cla_source_compose(&source, "#define D 1\n", files, COUNT_OF(files), NULL, &error), &error);
    int number = 0, found = 0;
    for (const char *at = source.text.data; *at != '\0'; at += strcspn(at, "\n") + 1) {
        const char *file;
        int line;
        number++;
        if (strncmp(at, "#line", 5) == 0 || !cla_source_locate(&source, number, &file, &line)) {
            continue;
        }
        char *path = path_join(CLATTN_SOURCE_DIR, file);
        char *text = file_read(path);
        assert_non_null(text);
        const char *there = text;
        for (int i = 1; i < line; i++) {
            there += strcspn(there, "\n") + 1;
        }
        assert_int_equal(strcspn(at, "\n"), strcspn(there, "\n"));
        assert_memory_equal(at, there, strcspn(at, "\n"));
        found++;
        free(text);
        free(path);
    }
    assert_true(found > 300);
    cla_source_free(&source);
}

static void logs_name_files_and_lines(void **state)
{
    (void)state;
    put("cl/a.cl", "int a_1;\nint a_2;\n");
    struct source source;
    const char *const files[] = {"cl/a.cl"};
    assert_ok(cla_source_compose(&source, "#define D 1\n", files, 1, root, &error), &error);
    const int line = line_of(source.text.data, "a_2");
    static const char *const forms[] = {"<kernel>:%d:9: error: x", "input.cl:%d:9: error: x", "<source>:%d:9: error: x"};
    for (size_t i = 0; i < COUNT_OF(forms); i++) {
        char log[200];
        int length = snprintf(log, sizeof log, "before\n");
        length += snprintf(log + length, sizeof log - (size_t)length, forms[i], line);
        snprintf(log + length, sizeof log - (size_t)length, "\nafter <kernel> and %% 12:3\n");
        struct text out = {0};
        cla_source_translate(&source, log, &out);
        assert_string_equal(out.data, "before\ncl/a.cl:2:9: error: x\nafter <kernel> and % 12:3\n");
        cla_text_free(&out);
    }
    struct text out = {0};
    cla_source_translate(&source, "<kernel>:1:1: in the defines\n<kernel>:99999:1: past the end\ncl/a.cl:7:1: kept", &out);
    assert_string_equal(out.data, "<kernel>:1:1: in the defines\n<kernel>:99999:1: past the end\ncl/a.cl:7:1: kept");
    cla_text_free(&out);
    cla_source_free(&source);
}

static void a_log_of_a_megabyte_is_translated(void **state)
{
    (void)state;
    struct source source;
    const char *const files[] = {"cl/base.cl"};
    assert_ok(cla_source_compose(&source, "", files, 1, NULL, &error), &error);
    char *log = malloc(1000001);
    assert_non_null(log);
    memset(log, '<', 1000000);
    log[1000000] = '\0';
    struct text out = {0};
    cla_source_translate(&source, log, &out);
    assert_int_equal(out.length, 1000000);
    cla_text_free(&out);
    cla_source_translate(&source, "", &out);
    assert_int_equal(out.length, 0);
    cla_text_free(&out);
    free(log);
    cla_source_free(&source);
}

static void a_bad_folder_is_named(void **state)
{
    (void)state;
    struct source source;
    const char *const files[] = {"cl/base.cl"}, *const missing[] = {"cl/nowhere.cl"};
    assert_refused(cla_source_compose(&source, "", files, 1, "/nonexistent/folder", &error), CLATTN_INVALID_ARGUMENT, &error,
                   "CLATTN_SOURCE_DIR");
    assert_contains(error.message, "/nonexistent/folder");
    cla_source_free(&source);
    assert_int_equal(cla_source_compose(&source, "", missing, 1, NULL, &error), CLATTN_INTERNAL);
    assert_contains(error.message, "cl/nowhere.cl");
    cla_source_free(&source);
}

static void windows_line_ends_and_a_missing_last_one_are_accepted(void **state)
{
    (void)state;
    put("cl/a.cl", "int a_1;\r\n#include \"cl/c.cl\"\r\nint a_3;");
    put("cl/c.cl", "int c_1;");
    struct source source;
    const char *const files[] = {"cl/a.cl"};
    assert_ok(cla_source_compose(&source, "", files, 1, root, &error), &error);
    assert_lacks(source.text.data, "\r");
    assert_contains(source.text.data, "int c_1;\n#line 3 \"cl/a.cl\"\nint a_3;\n");
    cla_source_free(&source);
}

static void the_embedded_files_are_those_of_the_tree(void **state)
{
    (void)state;
    assert_true(cla_embedded_file_count >= 9);
    for (size_t i = 0; i < cla_embedded_file_count; i++) {
        char *path = path_join(CLATTN_SOURCE_DIR, cla_embedded_files[i].name);
        char *text = file_read(path);
        assert_non_null(text);
        assert_int_equal(strlen(text), cla_embedded_files[i].size);
        assert_memory_equal(text, cla_embedded_files[i].data, cla_embedded_files[i].size);
        if (i > 0) {
            assert_true(strcmp(cla_embedded_files[i - 1].name, cla_embedded_files[i].name) < 0);
        }
        free(text);
        free(path);
    }
}

#define WITH_ROOT(test) cmocka_unit_test_setup_teardown(test, make_root, remove_root)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_ROOT(defines_come_first_and_files_in_order),
        WITH_ROOT(each_file_is_included_once),
        WITH_ROOT(lines_find_their_files),
        WITH_ROOT(every_line_of_the_real_files_is_found),
        WITH_ROOT(logs_name_files_and_lines),
        WITH_ROOT(a_log_of_a_megabyte_is_translated),
        WITH_ROOT(a_bad_folder_is_named),
        WITH_ROOT(windows_line_ends_and_a_missing_last_one_are_accepted),
        WITH_ROOT(the_embedded_files_are_those_of_the_tree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
