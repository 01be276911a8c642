/* SPDX-License-Identifier: Apache-2.0 */
#include "output.h"

#include "interrupt.h"
#include "system.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool refuse(char why[OUTPUT_WHY_SIZE], int code)
{
    snprintf(why, OUTPUT_WHY_SIZE, "cannot be written: %s", code != 0 ? strerror(code) : "is the disk full?");
    return false;
}

static bool is_standard_output(const char *path)
{
    static const char *const names[] = {"-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(path, names[i]) == 0)
            return true;
    return system_is_standard_output(path);
}

bool output_is_same(const char *a, const char *b)
{
    if (is_standard_output(a) || is_standard_output(b))
        return is_standard_output(a) && is_standard_output(b);
    char *const first = system_follow_links(a), *const second = system_follow_links(b);
    const bool same = first != NULL && second != NULL && system_is_same_file(first, second);
    free(first);
    free(second);
    return same;
}

/* A name in the folder of `path`, of a length that every file system takes. */
static char *temporary_name(const char *path, unsigned number)
{
    const char *const slash = strrchr(path, '/');
    const size_t folder = slash ? (size_t)(slash + 1 - path) : 0, size = folder + 48;
    char *const name = malloc(size);
    if (name == NULL)
        return NULL;
    memcpy(name, path, folder);
    snprintf(name + folder, size - folder, ".clattn-%ld-%u.tmp", system_process(), number);
    return name;
}

static bool open_temporary(struct output *o)
{
    for (unsigned number = 0; o->file == NULL && number < 1000; number++) {
        o->temporary = temporary_name(o->path, number);
        if (o->temporary == NULL)
            return false;
        o->slot = interrupt_remove(o->temporary);
        o->file = system_create(o->temporary, o->path);
        if (o->file != NULL)
            return true;
        const int code = errno;
        interrupt_forget(o->slot);
        free(o->temporary);
        o->temporary = NULL;
        errno = code;
        if (code != EEXIST)
            return false;
    }
    return false;
}

bool output_open(struct output *o, const char *path, char why[OUTPUT_WHY_SIZE])
{
    memset(o, 0, sizeof *o);
    errno = 0;
    if (is_standard_output(path)) {
        fflush(stdout);
        o->file = system_take_standard_output();
        return o->file != NULL || refuse(why, errno);
    }
    o->path = system_follow_links(path);
    if (o->path == NULL)
        return refuse(why, errno);
    if (system_exists(o->path) && !system_is_file(o->path)) { /* a device or a pipe has no other name to be written under */
        free(o->path);
        o->path = NULL;
        o->file = fopen(path, "wb");
    } else {
        (void)open_temporary(o);
    }
    if (o->file != NULL)
        return true;
    const int code = errno;
    output_abandon(o);
    return refuse(why, code);
}

void output_abandon(struct output *o)
{
    if (o->file != NULL)
        fclose(o->file);
    if (o->temporary != NULL) {
        remove(o->temporary);
        interrupt_forget(o->slot);
    }
    free(o->temporary);
    free(o->path);
    memset(o, 0, sizeof *o);
}

bool output_commit(struct output *o, char why[OUTPUT_WHY_SIZE])
{
    errno = 0;
    bool right = fflush(o->file) == 0 && !ferror(o->file);
    right = right && (o->temporary == NULL || system_sync(o->file));
    int code = errno;
    const bool closed = fclose(o->file) == 0; /* some file systems report a full disk only now */
    code = right && !closed ? errno : code;
    o->file = NULL;
    right = right && closed;
    if (right && o->temporary != NULL && !system_rename(o->temporary, o->path)) {
        right = false;
        code = errno;
    }
    if (right && o->temporary != NULL) {
        interrupt_forget(o->slot);
        free(o->temporary);
        o->temporary = NULL;
    }
    output_abandon(o);
    return right || refuse(why, code);
}
