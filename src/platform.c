/* SPDX-License-Identifier: Apache-2.0 */
#ifndef _WIN32
#define _GNU_SOURCE /* RTLD_DEFAULT, syscall */
#endif
#include "platform.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A new file is name.PROCESS.NUMBER.tmp until it is whole; the number is one that nobody has taken. */
#define TEMPORARY_TRIES 1000

const char *cla_environment(const char *name)
{
    const char *value = cla_is_privileged() ? NULL : getenv(name);
    return value && *value ? value : NULL;
}

#ifdef _WIN32
/* ------------------------------------------------------------------------------------------------------------- Windows */
#define WIN32_LEAN_AND_MEAN
#include <windows.h>

#define PATH_UNITS 1024

/* No program of this system runs with the rights of another user than the one who started it. */
bool cla_is_privileged(void) { return false; }

bool cla_lock_init(struct cla_lock *lock)
{
    InitializeSRWLock((SRWLOCK *)lock);
    return true;
}
void cla_lock_destroy(struct cla_lock *lock) { (void)lock; }
void cla_lock_take(struct cla_lock *lock) { AcquireSRWLockExclusive((SRWLOCK *)lock); }
void cla_lock_give(struct cla_lock *lock) { ReleaseSRWLockExclusive((SRWLOCK *)lock); }

bool cla_signal_init(struct cla_signal *signal)
{
    InitializeConditionVariable((CONDITION_VARIABLE *)signal);
    return true;
}
void cla_signal_destroy(struct cla_signal *signal) { (void)signal; }
void cla_signal_wait(struct cla_signal *signal, struct cla_lock *lock)
{
    SleepConditionVariableSRW((CONDITION_VARIABLE *)signal, (SRWLOCK *)lock, INFINITE, 0);
}
void cla_signal_all(struct cla_signal *signal) { WakeAllConditionVariable((CONDITION_VARIABLE *)signal); }

uintptr_t cla_thread_self(void) { return GetCurrentThreadId(); }

/* Paths are UTF-8 outside and UTF-16 at the system's border: the code page of the process may lack a user's name. */
static bool widen(const char *utf8, wchar_t *wide)
{
    return MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, utf8, -1, wide, PATH_UNITS) > 0;
}

static bool narrow(const wchar_t *wide, char *utf8, int size)
{
    return WideCharToMultiByte(CP_UTF8, 0, wide, -1, utf8, size, NULL, NULL) > 0;
}

static bool widen_pair(const char *folder, const char *name, wchar_t *wide)
{
    struct text path = {0};
    cla_text_add(&path, "%s\\%s", folder, name);
    const bool fits = !path.failed && widen(path.data, wide);
    cla_text_free(&path);
    return fits;
}

bool cla_environment_path(const char *name, struct text *out)
{
    wchar_t wide_name[64], wide[PATH_UNITS];
    char utf8[PATH_UNITS * 3];
    if (!widen(name, wide_name))
        return false;
    const DWORD length = GetEnvironmentVariableW(wide_name, wide, PATH_UNITS);
    if (length == 0 || length >= PATH_UNITS || !narrow(wide, utf8, sizeof utf8))
        return false;
    cla_text_append(out, utf8, strlen(utf8));
    return true;
}

bool cla_path_is_absolute(const char *path) { return path[0] == '\\' || path[0] == '/' || (path[0] && path[1] == ':'); }

bool cla_cache_home(struct text *out) { return cla_environment_path("LOCALAPPDATA", out); }

bool cla_read_file(const char *path, size_t limit, struct text *out)
{
    wchar_t wide[PATH_UNITS];
    LARGE_INTEGER size;
    char block[4096];
    DWORD got = 0;
    if (!widen(path, wide))
        return false;
    HANDLE file = CreateFileW(wide, GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL, OPEN_EXISTING,
                              FILE_ATTRIBUTE_NORMAL, NULL);
    if (file == INVALID_HANDLE_VALUE)
        return false;
    bool whole = GetFileType(file) == FILE_TYPE_DISK && GetFileSizeEx(file, &size) && (uint64_t)size.QuadPart <= limit;
    while (whole && (whole = ReadFile(file, block, sizeof block, &got, NULL)) && got > 0)
        cla_text_append(out, block, got);
    CloseHandle(file);
    return whole;
}

/* A new file of its own name in the folder. */
static HANDLE open_temporary(const char *folder, const char *name, wchar_t *wide)
{
    HANDLE file = INVALID_HANDLE_VALUE;
    for (int i = 0; i < TEMPORARY_TRIES && file == INVALID_HANDLE_VALUE; i++) {
        char temporary[160];
        snprintf(temporary, sizeof temporary, "%s.%lu.%d.tmp", name, (unsigned long)GetCurrentProcessId(), i);
        if (!widen_pair(folder, temporary, wide))
            break;
        file = CreateFileW(wide, GENERIC_WRITE, 0, NULL, CREATE_NEW, FILE_ATTRIBUTE_NORMAL, NULL);
        if (file == INVALID_HANDLE_VALUE && GetLastError() != ERROR_FILE_EXISTS)
            break;
    }
    return file;
}

bool cla_replace_file(const char *folder, const char *name, const void *bytes, size_t size)
{
    wchar_t temporary[PATH_UNITS], target[PATH_UNITS];
    DWORD written = 0;
    if (size > 0x7fffffff || !widen_pair(folder, name, target))
        return false;
    HANDLE file = open_temporary(folder, name, temporary);
    if (file == INVALID_HANDLE_VALUE)
        return false;
    bool done = WriteFile(file, bytes, (DWORD)size, &written, NULL) && written == size;
    done = CloseHandle(file) && done;
    done = done && (MoveFileExW(temporary, target, MOVEFILE_REPLACE_EXISTING) ||
                    (RemoveDirectoryW(target) && MoveFileExW(temporary, target, MOVEFILE_REPLACE_EXISTING)));
    if (!done)
        DeleteFileW(temporary);
    return done;
}

static bool is_separator(char c) { return c == '/' || c == '\\'; }

static void make_one_folder(const char *path)
{
    wchar_t wide[PATH_UNITS];
    if (widen(path, wide))
        CreateDirectoryW(wide, NULL);
}

static bool is_folder(const char *path)
{
    wchar_t wide[PATH_UNITS];
    if (!widen(path, wide))
        return false;
    const DWORD attributes = GetFileAttributesW(wide);
    return attributes != INVALID_FILE_ATTRIBUTES && (attributes & FILE_ATTRIBUTE_DIRECTORY);
}

void cla_remove_file(const char *folder, const char *name)
{
    wchar_t wide[PATH_UNITS];
    if (widen_pair(folder, name, wide))
        DeleteFileW(wide);
}

void cla_touch_file(const char *folder, const char *name)
{
    wchar_t wide[PATH_UNITS];
    FILETIME now;
    if (!widen_pair(folder, name, wide))
        return;
    HANDLE file = CreateFileW(wide, FILE_WRITE_ATTRIBUTES, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL,
                              OPEN_EXISTING, FILE_ATTRIBUTE_NORMAL, NULL);
    if (file == INVALID_HANDLE_VALUE)
        return;
    GetSystemTimeAsFileTime(&now);
    SetFileTime(file, NULL, NULL, &now);
    CloseHandle(file);
}

/* Tenths of microseconds since 1601. */
static uint64_t file_time(FILETIME time) { return (uint64_t)time.dwHighDateTime << 32 | time.dwLowDateTime; }

uint64_t cla_clock(void)
{
    FILETIME now;
    GetSystemTimeAsFileTime(&now);
    return file_time(now) * 100;
}

void cla_visit_folder(const char *path, cla_folder_visitor visit, void *user)
{
    wchar_t wide[PATH_UNITS];
    WIN32_FIND_DATAW entry;
    FILETIME now;
    char name[3 * MAX_PATH];
    if (!widen_pair(path, "*", wide))
        return;
    HANDLE search = FindFirstFileW(wide, &entry);
    if (search == INVALID_HANDLE_VALUE)
        return;
    GetSystemTimeAsFileTime(&now);
    do {
        const uint64_t written = file_time(entry.ftLastWriteTime), present = file_time(now);
        if (narrow(entry.cFileName, name, sizeof name))
            visit(user, name, (uint64_t)entry.nFileSizeHigh << 32 | entry.nFileSizeLow,
                  present > written ? (present - written) / 10000000 : 0);
    } while (FindNextFileW(search, &entry));
    FindClose(search);
}

static HMODULE opencl_library(void)
{
#ifdef CLATTN_DYNAMIC_OPENCL
    wchar_t wide[PATH_UNITS];
    struct text path = {0};
    HMODULE library = NULL;
    if (!cla_environment_path("CLATTN_OPENCL_LIBRARY", &path))
        library = LoadLibraryW(L"OpenCL.dll");
    else if (!path.failed && widen(path.data, wide))
        library = LoadLibraryW(wide);
    cla_text_free(&path);
    return library;
#else
    return GetModuleHandleW(L"OpenCL.dll");
#endif
}

cla_function cla_opencl_function(const char *name)
{
    HMODULE library = opencl_library();
    return library ? (cla_function)(void *)GetProcAddress(library, name) : NULL;
}

#else
/* --------------------------------------------------------------------------------------------------------------- POSIX */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/auxv.h>
#endif

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

static bool is_separator(char c) { return c == '/'; }

static void make_one_folder(const char *path) { mkdir(path, 0700); }

static bool is_folder(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
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
#endif

/* ---------------------------------------------------------------------------------------------------------------- both */

bool cla_make_folder(const char *path)
{
    struct text part = {0};
    if (is_folder(path))
        return true;
    for (size_t i = 1; path[0] && path[i]; i++) {
        if (is_separator(path[i])) {
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

/* ----------------------------------------------------------------------------------------------------------- processor */

#if defined(__x86_64__) && defined(__GNUC__)
#include <cpuid.h>

/* The registers that the system saves: XCR0. */
static unsigned saved_state(void)
{
    unsigned low, high;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

unsigned cla_processor_features(void)
{
    enum {
        OSXSAVE = 1 << 27,
        AMX_TILE_AND_BF16 = 1 << 24 | 1 << 22,
        DOT_BF16 = 1 << 5,
        AVX512_STATE = 0xe6,
        TILE_STATE = 0x60000
    };
    unsigned a, b, c, d, features = 0;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & OSXSAVE))
        return 0;
    const unsigned saved = saved_state();
    if ((saved & AVX512_STATE) != AVX512_STATE || !__get_cpuid_count(7, 0, &a, &b, &c, &d))
        return 0;
    if ((saved & TILE_STATE) == TILE_STATE && (d & AMX_TILE_AND_BF16) == AMX_TILE_AND_BF16)
        features |= CLA_AMX_BF16;
    if (a >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & DOT_BF16))
        features |= CLA_AVX512_BF16;
    return features;
}
#else
unsigned cla_processor_features(void) { return 0; }
#endif

#if defined(__linux__) && defined(__x86_64__)
#include <sys/syscall.h>

bool cla_processor_allow_tiles(void)
{
    enum { REQUEST_STATE = 0x1023, TILE_DATA = 18 }; /* ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA: Linux 5.16 */
    return syscall(SYS_arch_prctl, REQUEST_STATE, TILE_DATA) == 0;
}
#else
bool cla_processor_allow_tiles(void) { return false; }
#endif
