/* SPDX-License-Identifier: Apache-2.0
 * The tables of files in docs/design.md name each file of src/ and cl/ and each folder of tools/, and nothing that is not
 * there. */
/* ctest: posix */
#include "support.h"

#include "files.h"

#include <sys/stat.h>

/* The first column of the table whose head is "| HEAD |": its names in backquotes, a line each. Freed by the caller. */
static char *names_of_table(const char *page, const char *head)
{
    const char *row = strstr(page, head);
    assert_non_null(row);
    char *names = calloc(1, strlen(row) + 2), *to = names;
    assert_non_null(names);
    *to++ = '\n';
    row = strchr(row, '\n') + 1;
    for (row = strchr(row, '\n') + 1; *row == '|'; row = strchr(row, '\n') + 1) {
        const char *const end = strstr(row, " | ");
        assert_non_null(end);
        for (const char *at = row; (at = strchr(at, '`')) != NULL && at < end;) {
            const size_t length = strcspn(at + 1, "`");
            memcpy(to, at + 1, length);
            to += length;
            *to++ = '\n';
            at += length + 2;
        }
    }
    return names;
}

static bool has_name(const char *names, const char *name, size_t length)
{
    char *line = malloc(length + 3);
    assert_non_null(line);
    snprintf(line, length + 3, "\n%.*s\n", (int)length, name);
    const bool has = strstr(names, line) != NULL;
    free(line);
    return has;
}

/* All files of `room` are named, engines by their folder; a header by the name that it shares with its source file. */
static void check_files(const char *room, const char *head)
{
    char *page = file_read(CLATTN_SOURCE_DIR "/docs/design.md"), *folder = path_join(CLATTN_SOURCE_DIR, room);
    assert_non_null(page);
    char *named = names_of_table(page, head);
    struct names files;
    assert_true(folder_tree(folder, "", &files));
    assert_true(files.count >= 15);
    for (size_t i = 0; i < files.count; i++) {
        const char *file = files.list[i];
        const bool is_engine = strncmp(file, "engines/", strlen("engines/")) == 0;
        if (is_engine ? !has_name(named, "engines/*", strlen("engines/*")) : !has_name(named, file, strcspn(file, "."))) {
            fail_msg("docs/design.md does not name %s/%s", room, file);
        }
    }
    for (const char *at = named + 1; *at != '\0'; at += strcspn(at, "\n") + 1) {
        const size_t length = strcspn(at, "\n");
        bool found = strncmp(at, "engines/*\n", length + 1) == 0;
        for (size_t i = 0; i < files.count && !found; i++) {
            found = strncmp(files.list[i], at, length) == 0 && files.list[i][length] == '.';
        }
        if (!found) {
            fail_msg("docs/design.md names %s/%.*s, which is not there", room, (int)length, at);
        }
    }
    names_free(&files);
    free(named);
    free(folder);
    free(page);
}

static void each_source_file_is_named(void **state)
{
    (void)state;
    check_files("src", "| file (src/) |");
}

static void each_kernel_file_is_named(void **state)
{
    (void)state;
    check_files("cl", "| file (cl/) |");
}

static void each_room_of_the_tools_is_named(void **state)
{
    (void)state;
    char *page = file_read(CLATTN_SOURCE_DIR "/docs/design.md");
    assert_non_null(page);
    char *named = names_of_table(page, "| folder (tools/) |");
    struct names files;
    assert_true(folder_tree(CLATTN_SOURCE_DIR "/tools", "", &files));
    for (size_t i = 0; i < files.count; i++) {
        const size_t length = strcspn(files.list[i], "/");
        if (files.list[i][length] == '/' && !has_name(named, files.list[i], length)) {
            fail_msg("docs/design.md does not name the folder of tools/%s", files.list[i]);
        }
    }
    for (const char *at = named + 1; *at != '\0'; at += strcspn(at, "\n") + 1) {
        char path[512];
        struct stat info;
        snprintf(path, sizeof path, CLATTN_SOURCE_DIR "/tools/%.*s", (int)strcspn(at, "\n"), at);
        if (stat(path, &info) != 0 || !S_ISDIR(info.st_mode)) {
            fail_msg("docs/design.md names %s, which is not there", path);
        }
    }
    names_free(&files);
    free(named);
    free(page);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_source_file_is_named),
        cmocka_unit_test(each_kernel_file_is_named),
        cmocka_unit_test(each_room_of_the_tools_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
