/* SPDX-License-Identifier: Apache-2.0
 * The environment variables of the library: one table in the code, one in each document. */
/* ctest: posix */
#include "support.h"

#include "environment.h"
#include "files.h"

#include <ctype.h>

static char *read_source(const char *name)
{
    char *path = path_join(CLATTN_SOURCE_DIR, name);
    char *text = file_read(path);
    free(path);
    assert_non_null(text);
    return text;
}

static bool is_known(const char *name, size_t length)
{
    for (int i = 0; i < VARIABLE_COUNT; i++) {
        const char *known = cla_variable_name((enum cla_variable)i);
        if (strlen(known) == length && strncmp(known, name, length) == 0) {
            return true;
        }
    }
    return false;
}

/* Every name that follows `mark` in the text is a variable, and there are as many as variables. */
static void check_table(const char *text, const char *mark)
{
    int found = 0;
    for (const char *at = strstr(text, mark); at != NULL; at = strstr(at, mark)) {
        at += strlen(mark);
        size_t length = 0;
        while (isupper((unsigned char)at[length]) || at[length] == '_') {
            length++;
        }
        if (!is_known(at, length)) {
            fail_msg("\"%.*s\" is described and not read", (int)length, at);
        }
        found++;
    }
    assert_int_equal(found, VARIABLE_COUNT);
}

static void the_packaging_page_describes_every_variable(void **state)
{
    (void)state;
    char *text = read_source("docs/packaging.md"), *table = strstr(text, "\n## Environment variables\n");
    assert_non_null(table);
    *strstr(table + 1, "\n## ") = '\0';
    check_table(table, "\n| `");
    free(text);
}

static void the_manual_page_describes_every_variable(void **state)
{
    (void)state;
    char *text = read_source("docs/clattn.1"), *section = strstr(text, "\n.SH ENVIRONMENT\n");
    assert_non_null(section);
    *strstr(section + 1, "\n.SH ") = '\0';
    char *own = strstr(section, "\n.B NO_COLOR\n"); /* the program's, not the library's */
    assert_non_null(own);
    *own = '\0';
    check_table(section, "\n.TP\n.B ");
    free(text);
}

/* Only one file reads variables, so that an application can have all of them ignored. */
static void no_other_file_reads_variables(void **state)
{
    (void)state;
    char *path = path_join(CLATTN_SOURCE_DIR, "src");
    struct names names;
    assert_true(folder_tree(path, ".c", &names));
    for (size_t i = 0; i < names.count; i++) {
        char *file = path_join(path, names.list[i]), *text = file_read(file);
        assert_non_null(text);
        /* src/os has what environment.c calls. */
        const bool may = strcmp(names.list[i], "environment.c") == 0 || strncmp(names.list[i], "os/", 3) == 0;
        if (!may && (strstr(text, "getenv(") != NULL || strstr(text, "cla_environment") != NULL)) {
            fail_msg("src/%s reads the environment by itself", names.list[i]);
        }
        free(text);
        free(file);
    }
    assert_true(names.count >= 40);
    names_free(&names);
    free(path);
}

static void an_ignored_environment_has_no_values(void **state)
{
    (void)state;
    setenv("CLATTN_ENGINE", "cpu", 1);
    assert_string_equal(cla_variable(false, VARIABLE_ENGINE), "cpu");
    assert_true(cla_variable_is(false, VARIABLE_ENGINE, "cpu"));
    assert_null(cla_variable(true, VARIABLE_ENGINE));
    assert_false(cla_variable_is(true, VARIABLE_ENGINE, "cpu"));
    setenv("CLATTN_ENGINE", "", 1);
    assert_null(cla_variable(false, VARIABLE_ENGINE));
    unsetenv("CLATTN_ENGINE");
    assert_null(cla_variable(false, VARIABLE_ENGINE));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_packaging_page_describes_every_variable),
        cmocka_unit_test(the_manual_page_describes_every_variable),
        cmocka_unit_test(no_other_file_reads_variables),
        cmocka_unit_test(an_ignored_environment_has_no_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
