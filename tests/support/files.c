/* SPDX-License-Identifier: Apache-2.0 */
#define _XOPEN_SOURCE 700
#include "files.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef _WIN32
#include <direct.h>
#define lstat stat
#define mkdir(path, mode) _mkdir(path)
#define TEMPORARY "."
#else
#define TEMPORARY "/tmp"
#endif

char *file_read(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        return NULL;
    }
    size_t length = 0, capacity = 4096;
    char *text = malloc(capacity);
    while (text != NULL) {
        length += fread(text + length, 1, capacity - length - 1, file);
        if (length < capacity - 1) {
            text[length] = '\0';
            break;
        }
        char *larger = realloc(text, capacity *= 2);
        if (larger == NULL) {
            free(text);
        }
        text = larger;
    }
    fclose(file);
    return text;
}

bool file_write(const char *path, const char *text)
{
    FILE *file = fopen(path, "wb");
    if (file == NULL) {
        return false;
    }
    const size_t length = strlen(text);
    const bool written = fwrite(text, 1, length, file) == length;
    return fclose(file) == 0 && written;
}

char *path_join(const char *folder, const char *name)
{
    const size_t size = strlen(folder) + strlen(name) + 2;
    char *path = malloc(size);
    if (path != NULL) {
        snprintf(path, size, "%s/%s", folder, name);
    }
    return path;
}

static bool ends_in(const char *name, const char *suffix)
{
    const size_t length = strlen(name), tail = strlen(suffix);
    return length >= tail && strcmp(name + length - tail, suffix) == 0;
}

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static bool names_add(struct names *names, const char *name)
{
    char **list = realloc(names->list, (names->count + 1) * sizeof *list);
    if (list == NULL) {
        return false;
    }
    names->list = list;
    names->list[names->count] = strdup(name);
    return names->list[names->count++] != NULL;
}

/* Adds the files of folder/below; `below` is "" or ends in a slash. */
static bool list_below(const char *folder, const char *below, const char *suffix, bool deep, struct names *names)
{
    char *here = path_join(folder, below);
    DIR *open_folder = here != NULL ? opendir(here) : NULL;
    free(here);
    if (open_folder == NULL) {
        return false;
    }
    bool ok = true;
    for (struct dirent *entry; ok && (entry = readdir(open_folder)) != NULL;) {
        const size_t size = strlen(below) + strlen(entry->d_name) + 2;
        char *name = malloc(size);
        ok = name != NULL && snprintf(name, size, "%s%s", below, entry->d_name) > 0;
        char *path = ok ? path_join(folder, name) : NULL;
        struct stat info;
        if (path == NULL || stat(path, &info) != 0) {
            ok = ok && path != NULL;
        } else if (S_ISREG(info.st_mode) && ends_in(name, suffix)) {
            ok = names_add(names, name);
        } else if (deep && S_ISDIR(info.st_mode) && entry->d_name[0] != '.') {
            memcpy(name + size - 2, "/", 2);
            ok = list_below(folder, name, suffix, deep, names);
        }
        free(path);
        free(name);
    }
    closedir(open_folder);
    return ok;
}

static bool list_sorted(const char *folder, const char *suffix, bool deep, struct names *names)
{
    memset(names, 0, sizeof *names);
    const bool ok = list_below(folder, "", suffix, deep, names);
    if (names->count > 0) {
        qsort(names->list, names->count, sizeof *names->list, by_name);
    }
    return ok;
}

bool folder_list(const char *folder, const char *suffix, struct names *names)
{
    return list_sorted(folder, suffix, false, names);
}

bool folder_tree(const char *folder, const char *suffix, struct names *names)
{
    return list_sorted(folder, suffix, true, names);
}

void names_free(struct names *names)
{
    for (size_t i = 0; i < names->count; i++) {
        free(names->list[i]);
    }
    free(names->list);
    memset(names, 0, sizeof *names);
}

/* Makes the folders that `path` names below `root`, which is there. */
static bool make_folders(const char *root, char *path)
{
    for (char *slash = path + strlen(root) + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
        *slash = '\0';
        const bool ok = mkdir(path, 0700) == 0 || errno == EEXIST;
        *slash = '/';
        if (!ok) {
            return false;
        }
    }
    return true;
}

char *folder_create(void)
{
    static unsigned count;
    const char *temporary = getenv("TMPDIR");
    for (;;) {
        char name[64];
        snprintf(name, sizeof name, "clattn-test-%ld-%u", (long)getpid(), count++);
        char *folder = path_join(temporary != NULL ? temporary : TEMPORARY, name);
        if (folder == NULL || mkdir(folder, 0700) == 0) {
            return folder;
        }
        free(folder);
        if (errno != EEXIST) {
            return NULL;
        }
    }
}

static void remove_entry(const char *path)
{
    struct stat info;
    if (lstat(path, &info) != 0) {
        return;
    }
    DIR *folder = S_ISDIR(info.st_mode) ? opendir(path) : NULL;
    for (struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
        char *below = path_join(path, entry->d_name);
        if (below != NULL && strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            remove_entry(below);
        }
        free(below);
    }
    if (folder != NULL) {
        closedir(folder);
        rmdir(path);
    } else {
        unlink(path);
    }
}

void folder_remove(char *folder)
{
    if (folder != NULL) {
        remove_entry(folder);
    }
    free(folder);
}

char *sources_copy(void)
{
    struct names names = {0};
    char *root = folder_create(), *from = path_join(CLATTN_SOURCE_DIR, "cl"), *to = root != NULL ? path_join(root, "cl") : NULL;
    bool ok = from != NULL && to != NULL && folder_tree(from, ".cl", &names);
    for (size_t i = 0; ok && i < names.count; i++) {
        char *source = path_join(from, names.list[i]), *target = path_join(to, names.list[i]);
        char *text = source != NULL ? file_read(source) : NULL;
        ok = text != NULL && target != NULL && make_folders(root, target) && file_write(target, text);
        free(text);
        free(source);
        free(target);
    }
    names_free(&names);
    free(from);
    free(to);
    if (!ok) {
        sources_remove(root);
        return NULL;
    }
    return root;
}

void sources_remove(char *root) { folder_remove(root); }

static char *replace_once(const char *text, const char *from, const char *to)
{
    const char *at = strstr(text, from);
    if (at == NULL || strstr(at + 1, from) != NULL) {
        return NULL;
    }
    const size_t size = strlen(text) - strlen(from) + strlen(to) + 1;
    char *result = malloc(size);
    if (result != NULL) {
        snprintf(result, size, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    }
    return result;
}

bool sources_alter(const char *root, const char *file, const char *from, const char *to)
{
    char *path = path_join(root, file);
    char *text = path != NULL ? file_read(path) : NULL;
    char *altered = text != NULL ? replace_once(text, from, to) : NULL;
    const bool ok = altered != NULL && file_write(path, altered);
    free(altered);
    free(text);
    free(path);
    return ok;
}
