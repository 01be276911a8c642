/* SPDX-License-Identifier: Apache-2.0 */
#include "source.h"

#include "embedded.h"
#include "os/os.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 16, MAX_FILE = 16 << 20 };

static bool start_run(struct source *source, const char *file, int file_line)
{
    if (source->run_count == source->run_capacity) {
        const size_t capacity = source->run_capacity * 2 + 32;
        struct line_run *runs = realloc(source->runs, capacity * sizeof *runs);
        if (!runs)
            return false;
        source->runs = runs;
        source->run_capacity = capacity;
    }
    struct line_run *run = &source->runs[source->run_count++];
    memset(run, 0, sizeof *run);
    run->first = source->lines + 1;
    run->file_line = file_line;
    strncpy(run->file, file, sizeof run->file - 1);
    return true;
}

static void add_line(struct source *source, const char *line, size_t length)
{
    cla_text_append(&source->text, line, length);
    cla_text_append(&source->text, "\n", 1);
    source->lines++;
}

/* Adds `#line` for drivers that honour it, and a run for the others. */
static clattn_status enter(struct source *source, const char *file, int file_line, clattn_error *error)
{
    cla_text_add(&source->text, "#line %d \"%s\"\n", file_line, file);
    source->lines++;
    if (!start_run(source, file, file_line))
        return cla_fail(error, CLATTN_OUT_OF_HOST_MEMORY, "", "out of host memory while composing kernel source");
    return CLATTN_SUCCESS;
}

static clattn_status load(const char *folder, const char *name, const char *includer, struct text *out, clattn_error *error)
{
    if (folder) {
        struct text path = {0};
        cla_text_add(&path, "%s/%s", folder, name);
        const bool found = path.data && cla_read_file(path.data, MAX_FILE, out);
        cla_text_free(&path);
        if (found)
            return CLATTN_SUCCESS;
        return cla_fail(error, CLATTN_INVALID_ARGUMENT, "CLATTN_SOURCE_DIR",
                        "%s (needed by %s) cannot be read in %s: CLATTN_SOURCE_DIR must name the "
                        "folder that holds cl/",
                        name, includer, folder);
    }
    for (size_t i = 0; i < cla_embedded_file_count; i++)
        if (strcmp(cla_embedded_files[i].name, name) == 0) {
            cla_text_append(out, (const char *)cla_embedded_files[i].data, cla_embedded_files[i].size);
            return CLATTN_SUCCESS;
        }
    return cla_fail(error, CLATTN_INTERNAL, "", "no kernel file %s (needed by %s)", name, includer);
}

/* The name in `#include "name"`, or NULL. */
static const char *included_name(const char *line, size_t length, size_t *name_length)
{
    const char *const end = line + length;
    while (line < end && isspace((unsigned char)*line))
        line++;
    if (end - line < 10 || memcmp(line, "#include", 8) != 0)
        return NULL;
    const char *open = memchr(line, '"', (size_t)(end - line));
    const char *close = open ? memchr(open + 1, '"', (size_t)(end - open - 1)) : NULL;
    if (!close)
        return NULL;
    *name_length = (size_t)(close - open - 1);
    return open + 1;
}

static bool was_included(const struct source *source, const char *name)
{
    for (size_t i = 0; i < source->run_count; i++)
        if (strcmp(source->runs[i].file, name) == 0)
            return true;
    return false;
}

static clattn_status include(struct source *source, const char *name, const char *includer, const char *folder, int depth,
                             clattn_error *error);

static clattn_status copy_lines(struct source *source, const char *name, const char *at, const char *folder, int depth,
                                clattn_error *error)
{
    for (int line = 1; *at; line++) {
        const size_t length = strcspn(at, "\n"), used = length && at[length - 1] == '\r' ? length - 1 : length;
        size_t name_length = 0;
        const char *wanted = included_name(at, used, &name_length);
        char file[sizeof source->runs->file] = "";
        if (wanted && name_length < sizeof file) {
            memcpy(file, wanted, name_length);
            TRY(include(source, file, name, folder, depth + 1, error));
            TRY(enter(source, name, line + 1, error));
        } else {
            add_line(source, at, used);
        }
        at += length + (at[length] == '\n');
    }
    return CLATTN_SUCCESS;
}

static clattn_status include(struct source *source, const char *name, const char *includer, const char *folder, int depth,
                             clattn_error *error)
{
    struct text file = {0};
    if (was_included(source, name))
        return CLATTN_SUCCESS;
    if (depth > MAX_DEPTH)
        return cla_fail(error, CLATTN_INTERNAL, "", "kernel files include each other more than %d deep at %s", MAX_DEPTH, name);
    clattn_status status = load(folder, name, includer, &file, error);
    if (status == CLATTN_SUCCESS)
        status = enter(source, name, 1, error);
    if (status == CLATTN_SUCCESS)
        status = file.failed ? cla_fail(error, CLATTN_OUT_OF_HOST_MEMORY, "", "out of host memory while reading %s", name)
                             : copy_lines(source, name, file.data ? file.data : "", folder, depth, error);
    cla_text_free(&file);
    return status;
}

clattn_status cla_source_compose(struct source *source, const char *defines, const char *const files[], size_t file_count,
                                 const char *folder, clattn_error *error)
{
    memset(source, 0, sizeof *source);
    if (!start_run(source, "", 1))
        return cla_fail(error, CLATTN_OUT_OF_HOST_MEMORY, "", "out of host memory while composing kernel source");
    while (*defines) {
        const size_t length = strcspn(defines, "\n");
        add_line(source, defines, length);
        defines += length + (defines[length] == '\n');
    }
    for (size_t i = 0; i < file_count; i++)
        TRY(include(source, files[i], "the library", folder, 0, error));
    if (source->text.failed)
        return cla_fail(error, CLATTN_OUT_OF_HOST_MEMORY, "", "out of host memory while composing kernel source");
    return CLATTN_SUCCESS;
}

bool cla_source_locate(const struct source *source, int line, const char **file, int *file_line)
{
    const struct line_run *run = NULL;
    for (size_t i = 0; i < source->run_count && source->runs[i].first <= line; i++)
        run = &source->runs[i];
    if (line < 1 || line > source->lines || !run || !run->file[0])
        return false;
    *file = run->file;
    *file_line = run->file_line + (line - run->first);
    return true;
}

/* The names that drivers give to source from memory. */
static size_t unnamed_prefix(const char *at)
{
    static const char *const names[] = {"<kernel>", "<source>",   "<program source>", "<stdin>",
                                        "input.cl", "program.cl", "source.cl"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const size_t length = strlen(names[i]);
        if (strncmp(at, names[i], length) == 0 && (at[length] == ':' || at[length] == '(') &&
            isdigit((unsigned char)at[length + 1]))
            return length + 1;
    }
    return 0;
}

void cla_source_translate(const struct source *source, const char *log, struct text *out)
{
    while (*log) {
        const size_t prefix = unnamed_prefix(log);
        const char *file;
        int file_line;
        char *end;
        const long line = prefix ? strtol(log + prefix, &end, 10) : 0;
        if (prefix && cla_source_locate(source, (int)line, &file, &file_line)) {
            cla_text_add(out, "%s%c%d", file, log[prefix - 1], file_line);
            log = end;
        } else {
            cla_text_append(out, log, 1);
            log++;
        }
    }
}

void cla_source_free(struct source *source)
{
    cla_text_free(&source->text);
    free(source->runs);
    memset(source, 0, sizeof *source);
}
