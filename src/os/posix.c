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
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/auxv.h>
#endif

/* A new file is named name.PROCESS.NUMBER.tmp until it is complete; NUMBER is one that is not in use. */
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

static pthread_mutex_t process_lock = PTHREAD_MUTEX_INITIALIZER;
void cla_process_lock_take(void) { pthread_mutex_lock(&process_lock); }
void cla_process_lock_give(void) { pthread_mutex_unlock(&process_lock); }

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

/* A file can report a small size and be endless: /proc/self/pagemap. */
static bool read_all(int file, size_t limit, struct text *out)
{
    char block[4096];
    size_t total = 0;
    ssize_t got = 0;
    while ((got = read(file, block, sizeof block)) > 0 || (got < 0 && errno == EINTR)) {
        const size_t more = got > 0 ? (size_t)got : 0;
        if (more > limit - total)
            return false;
        cla_text_append(out, block, more);
        total += more;
    }
    return got == 0;
}

bool cla_read_file(const char *path, size_t limit, struct text *out)
{
    struct stat info;
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* if the file is a pipe, open must not block */
    if (file < 0)
        return false;
    const bool whole = fstat(file, &info) == 0 && S_ISREG(info.st_mode) && read_all(file, limit, out);
    close(file);
    return whole;
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

static bool is_own(const struct stat *info) { return info->st_uid == geteuid(); }
static bool is_shared(const struct stat *info) { return (info->st_mode & (S_IWGRP | S_IWOTH)) != 0; }

enum cla_folder_state cla_folder_open(const char *path, struct cla_folder *folder)
{
    struct stat info;
    enum cla_folder_state state = CLA_FOLDER_ABSENT;
    *folder = (struct cla_folder){.handle = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    if (folder->handle < 0)
        return state;
    if (fstat(folder->handle, &info) == 0)
        state = !is_own(&info) ? CLA_FOLDER_FOREIGN : is_shared(&info) ? CLA_FOLDER_SHARED : CLA_FOLDER_OPEN;
    if (state != CLA_FOLDER_OPEN)
        cla_folder_close(folder);
    return state;
}

void cla_folder_close(struct cla_folder *folder)
{
    close(folder->handle);
    folder->handle = -1;
}

bool cla_folder_read(const struct cla_folder *folder, const char *name, size_t limit, struct text *out)
{
    struct stat info;
    const int file = openat(folder->handle, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY);
    if (file < 0)
        return false;
    const bool whole =
        fstat(file, &info) == 0 && S_ISREG(info.st_mode) && is_own(&info) && !is_shared(&info) && read_all(file, limit, out);
    close(file);
    return whole;
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

/* Like write_all, but a thread that reaches RLIMIT_FSIZE does not get the signal, which would end a process that does not
 * catch it. A signal that was already pending remains pending. */
static bool write_without_signal(int file, const char *bytes, size_t size)
{
    sigset_t limit, before, waiting;
    int number = 0;
    sigemptyset(&limit);
    sigaddset(&limit, SIGXFSZ);
    if (pthread_sigmask(SIG_BLOCK, &limit, &before) != 0)
        return false;
    const bool waited = sigpending(&waiting) == 0 && sigismember(&waiting, SIGXFSZ) == 1;
    const bool done = write_all(file, bytes, size);
    if (!waited && sigpending(&waiting) == 0 && sigismember(&waiting, SIGXFSZ) == 1)
        sigwait(&limit, &number);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return done;
}

/* Creates a new file with a unique name in the folder. */
static int open_temporary(const struct cla_folder *folder, const char *name, struct text *temporary)
{
    int file = -1;
    for (int i = 0; i < TEMPORARY_TRIES && file < 0; i++) {
        temporary->length = 0;
        cla_text_add(temporary, "%s.%ld.%d.tmp", name, (long)getpid(), i);
        if (temporary->failed)
            break;
        file = openat(folder->handle, temporary->data, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (file < 0 && errno != EEXIST)
            break;
    }
    return file;
}

bool cla_folder_replace(const struct cla_folder *folder, const char *name, const void *bytes, size_t size)
{
    struct text temporary = {0};
    bool done = false;
    const int at = folder->handle, file = open_temporary(folder, name, &temporary);
    if (file >= 0) {
        done = write_without_signal(file, bytes, size);
        done = close(file) == 0 && done;
        /* An empty folder of the file's name is removed first. */
        done = done && (renameat(at, temporary.data, at, name) == 0 ||
                        (unlinkat(at, name, AT_REMOVEDIR) == 0 && renameat(at, temporary.data, at, name) == 0));
        if (!done)
            unlinkat(at, temporary.data, 0);
    }
    cla_text_free(&temporary);
    return done;
}

void cla_folder_remove(const struct cla_folder *folder, const char *name) { unlinkat(folder->handle, name, 0); }

void cla_folder_touch(const struct cla_folder *folder, const char *name)
{
    utimensat(folder->handle, name, NULL, AT_SYMLINK_NOFOLLOW);
}

void cla_folder_visit(const struct cla_folder *folder, cla_folder_visitor visit, void *user)
{
    const int again = openat(folder->handle, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC); /* closedir closes it */
    DIR *entries = again >= 0 ? fdopendir(again) : NULL;
    const time_t now = time(NULL);
    if (!entries) {
        if (again >= 0)
            close(again);
        return;
    }
    for (struct dirent *entry; (entry = readdir(entries)) != NULL;) {
        struct stat info;
        if (fstatat(again, entry->d_name, &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(info.st_mode))
            visit(user, entry->d_name, (uint64_t)info.st_size, now > info.st_mtime ? (uint64_t)(now - info.st_mtime) : 0);
    }
    closedir(entries);
}

#ifdef CLATTN_DYNAMIC_OPENCL
/* Opened for each function; the system counts references, so no handle has to be kept. Names have no folder, since on some
 * systems the files do not exist by their path. */
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
