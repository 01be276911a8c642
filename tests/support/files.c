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

bool folder_list(const char *folder, const char *suffix, struct names *names)
{
    memset(names, 0, sizeof *names);
    DIR *open_folder = opendir(folder);
    if (open_folder == NULL) {
        return false;
    }
    bool ok = true;
    for (struct dirent *entry; ok && (entry = readdir(open_folder)) != NULL;) {
        char *path = path_join(folder, entry->d_name);
        struct stat info;
        if (path != NULL && stat(path, &info) == 0 && S_ISREG(info.st_mode) && ends_in(entry->d_name, suffix)) {
            ok = names_add(names, entry->d_name);
        }
        free(path);
    }
    closedir(open_folder);
    if (names->count > 0) {
        qsort(names->list, names->count, sizeof *names->list, by_name);
    }
    return ok;
}

void names_free(struct names *names)
{
    for (size_t i = 0; i < names->count; i++) {
        free(names->list[i]);
    }
    free(names->list);
    memset(names, 0, sizeof *names);
}

const char *const source_folders[SOURCE_FOLDERS] = {
    "cl",
    "cl/split",
    "cl/engines",
    "cl/engines/reference",
    "cl/engines/simt",
    "cl/engines/unfused",
    "cl/engines/cpu",
    "cl/engines/nvidia",
    "cl/engines/nvidia/mma",
    "cl/engines/nvidia/wgmma",
};

static bool copy_folder(const char *from, const char *to)
{
    struct names names;
    bool ok = mkdir(to, 0700) == 0 && folder_list(from, ".cl", &names);
    if (!ok) {
        return false;
    }
    for (size_t i = 0; ok && i < names.count; i++) {
        char *source = path_join(from, names.list[i]), *target = path_join(to, names.list[i]);
        char *text = source != NULL ? file_read(source) : NULL;
        ok = text != NULL && target != NULL && file_write(target, text);
        free(text);
        free(source);
        free(target);
    }
    names_free(&names);
    return ok;
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
    char *root = folder_create();
    if (root == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < SOURCE_FOLDERS; i++) {
        char *from = path_join(CLATTN_SOURCE_DIR, source_folders[i]), *to = path_join(root, source_folders[i]);
        const bool ok = from != NULL && to != NULL && copy_folder(from, to);
        free(from);
        free(to);
        if (!ok) {
            sources_remove(root);
            return NULL;
        }
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
