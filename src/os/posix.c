/* SPDX-License-Identifier: Apache-2.0
 * os.h on POSIX systems. */
#define _GNU_SOURCE      /* RTLD_DEFAULT */
#define _DARWIN_C_SOURCE /* issetugid there, and on the BSDs: */
#define __BSD_VISIBLE 1
#include "os.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/auxv.h>
#endif

/* A new file is name.PROCESS.NUMBER.tmp until it is whole; the number is not taken yet. */
#define TEMPORARY_TRIES 1000

bool cla_is_privileged(void)
{
#ifdef __linux__
    return getauxval(AT_SECURE) != 0;
#elif defined(__APPLE__) || defined(__FreeBSD__) || defined(__NetBSD__) || defined(__OpenBSD__)
    return issetugid() != 0;
#else
    return geteuid() != getuid() || getegid() != getgid();
#endif
}

const char *cla_environment(const char *name)
{
    const char *value = cla_is_privileged() ? NULL : getenv(name);
    return value && *value ? value : NULL;
}

bool cla_lock_init(struct cla_lock *lock) { return pthread_mutex_init(&lock->mutex, NULL) == 0; }
void cla_lock_destroy(struct cla_lock *lock) { pthread_mutex_destroy(&lock->mutex); }
void cla_lock_take(struct cla_lock *lock) { pthread_mutex_lock(&lock->mutex); }
void cla_lock_give(struct cla_lock *lock) { pthread_mutex_unlock(&lock->mutex); }

bool cla_signal_init(struct cla_signal *signal) { return pthread_cond_init(&signal->condition, NULL) == 0; }
void cla_signal_destroy(struct cla_signal *signal) { pthread_cond_destroy(&signal->condition); }
void cla_signal_wait(struct cla_signal *signal, struct cla_lock *lock) { pthread_cond_wait(&signal->condition, &lock->mutex); }
void cla_signal_all(struct cla_signal *signal) { pthread_cond_broadcast(&signal->condition); }

uintptr_t cla_thread_self(void) { return (uintptr_t)pthread_self(); }

uint64_t cla_clock(void)
{
    struct timespec now = {0};
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

bool cla_environment_path(const char *name, struct text *out)
{
    const char *value = cla_environment(name);
    if (value)
        cla_text_append(out, value, strlen(value));
    return value != NULL;
}

bool cla_path_is_absolute(const char *path) { return path[0] == '/'; }

bool cla_cache_home(struct text *out)
{
    /* The XDG base directory specification asks to ignore relative paths. */
    const char *xdg = cla_environment("XDG_CACHE_HOME"), *home = cla_environment("HOME");
    if (xdg && cla_path_is_absolute(xdg))
        cla_text_add(out, "%s", xdg);
    else if (home && cla_path_is_absolute(home))
        cla_text_add(out, "%s/.cache", home);
    else
        return false;
    return true;
}

bool cla_read_file(const char *path, size_t limit, struct text *out)
{
    char block[4096];
    struct stat info;
    ssize_t got = 0;
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe in the file's place must not block */
    if (file < 0)
        return false;
    bool whole = fstat(file, &info) == 0 && S_ISREG(info.st_mode) && (uint64_t)info.st_size <= limit;
    while (whole && ((got = read(file, block, sizeof block)) > 0 || (got < 0 && errno == EINTR)))
        if (got > 0)
            cla_text_append(out, block, (size_t)got);
    close(file);
    return whole && got == 0;
}

static bool write_all(int file, const char *bytes, size_t size)
{
    while (size > 0) {
        const ssize_t written = write(file, bytes, size);
        if (written <= 0 && errno != EINTR)
            return false;
        if (written > 0) {
            bytes += written;
            size -= (size_t)written;
        }
    }
    return true;
}

/* A new file of its own name in the folder. */
static int open_temporary(const char *folder, const char *name, struct text *path)
{
    int file = -1;
    for (int i = 0; i < TEMPORARY_TRIES && file < 0; i++) {
        path->length = 0;
        cla_text_add(path, "%s/%s.%ld.%d.tmp", folder, name, (long)getpid(), i);
        if (path->failed)
            break;
        file = open(path->data, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (file < 0 && errno != EEXIST)
            break;
    }
    return file;
}

bool cla_replace_file(const char *folder, const char *name, const void *bytes, size_t size)
{
    struct text temporary = {0}, target = {0};
    bool done = false;
    const int file = open_temporary(folder, name, &temporary);
    cla_text_add(&target, "%s/%s", folder, name);
    if (file >= 0) {
        done = write_all(file, bytes, size);
        done = close(file) == 0 && done && !target.failed;
        /* remove() takes an empty folder out of the file's place. */
        done = done && (rename(temporary.data, target.data) == 0 ||
                        (remove(target.data) == 0 && rename(temporary.data, target.data) == 0));
        if (!done)
            unlink(temporary.data);
    }
    cla_text_free(&temporary);
    cla_text_free(&target);
    return done;
}

static void make_one_folder(const char *path) { mkdir(path, 0700); }

static bool is_folder(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

bool cla_make_folder(const char *path)
{
    struct text part = {0};
    if (is_folder(path))
        return true;
    for (size_t i = 1; path[0] && path[i]; i++) {
        if (path[i] == '/') {
            part.length = 0;
            cla_text_append(&part, path, i);
            if (!part.failed)
                make_one_folder(part.data);
        }
    }
    cla_text_free(&part);
    make_one_folder(path);
    return is_folder(path);
}

void cla_remove_file(const char *folder, const char *name)
{
    struct text path = {0};
    cla_text_add(&path, "%s/%s", folder, name);
    if (!path.failed)
        unlink(path.data);
    cla_text_free(&path);
}

void cla_touch_file(const char *folder, const char *name)
{
    struct text path = {0};
    cla_text_add(&path, "%s/%s", folder, name);
    if (!path.failed)
        utimensat(AT_FDCWD, path.data, NULL, 0);
    cla_text_free(&path);
}

void cla_visit_folder(const char *path, cla_folder_visitor visit, void *user)
{
    DIR *folder = opendir(path);
    const time_t now = time(NULL);
    if (!folder)
        return;
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        struct stat info;
        if (fstatat(dirfd(folder), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(info.st_mode))
            visit(user, entry->d_name, (uint64_t)info.st_size, now > info.st_mtime ? (uint64_t)(now - info.st_mtime) : 0);
    }
    closedir(folder);
}

#ifdef CLATTN_DYNAMIC_OPENCL
/* Opened anew for each function, which the system counts: no handle has to be kept. By bare names, for some systems hide the
 * files that the names stand for. */
static void *opencl_library(void)
{
    static const char *const names[] = {
#ifdef __APPLE__
        "/System/Library/Frameworks/OpenCL.framework/OpenCL",
#endif
        "libOpenCL.so.1", "libOpenCL.so"};
    const char *only = cla_environment("CLATTN_OPENCL_LIBRARY");
    void *library = only ? dlopen(only, RTLD_NOW | RTLD_LOCAL) : NULL;
    for (size_t i = 0; !only && !library && i < sizeof names / sizeof *names; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    return library;
}
#else
static void *opencl_library(void) { return RTLD_DEFAULT; }
#endif

cla_function cla_opencl_function(const char *name)
{
    cla_function function = NULL;
    void *library = opencl_library(), *address = NULL;
#ifdef CLATTN_DYNAMIC_OPENCL
    if (!library)
        return NULL;
#endif
    address = dlsym(library, name);
    memcpy(&function, &address, sizeof function);
    return function;
}
