/* SPDX-License-Identifier: Apache-2.0
 * os.h on Windows. */
#include "os.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

#define PATH_UNITS 1024

/* A new file is named name.PROCESS.NUMBER.tmp until it is complete; NUMBER is one that is not in use. */
#define TEMPORARY_TRIES 1000

/* On this system no program runs with the rights of another user than the one who started it. */
bool cla_is_privileged(void) { return false; }

const char *cla_environment(const char *name)
{
    const char *value = cla_is_privileged() ? NULL : getenv(name);
    return value && *value ? value : NULL;
}

bool cla_lock_init(struct cla_lock *lock)
{
    InitializeSRWLock((SRWLOCK *)lock);
    return true;
}
void cla_lock_destroy(struct cla_lock *lock) { (void)lock; }
void cla_lock_take(struct cla_lock *lock) { AcquireSRWLockExclusive((SRWLOCK *)lock); }
void cla_lock_give(struct cla_lock *lock) { ReleaseSRWLockExclusive((SRWLOCK *)lock); }

static SRWLOCK process_lock = SRWLOCK_INIT;
void cla_process_lock_take(void) { AcquireSRWLockExclusive(&process_lock); }
void cla_process_lock_give(void) { ReleaseSRWLockExclusive(&process_lock); }

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

/* Paths are UTF-8, converted to UTF-16 for system calls: the code page of the process may lack characters of a user's name. */
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

static bool read_wide(const wchar_t *wide, DWORD flags, size_t limit, struct text *out)
{
    BY_HANDLE_FILE_INFORMATION info;
    char block[4096];
    size_t total = 0;
    DWORD got = 0;
    HANDLE file = CreateFileW(wide, GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL, OPEN_EXISTING,
                              FILE_ATTRIBUTE_NORMAL | flags, NULL);
    if (file == INVALID_HANDLE_VALUE)
        return false;
    bool whole = GetFileType(file) == FILE_TYPE_DISK && GetFileInformationByHandle(file, &info) &&
                 !(flags && (info.dwFileAttributes & FILE_ATTRIBUTE_REPARSE_POINT));
    while (whole && (whole = ReadFile(file, block, sizeof block, &got, NULL)) && got > 0) {
        whole = got <= limit - total;
        cla_text_append(out, block, whole ? got : 0);
        total += whole ? got : 0;
    }
    CloseHandle(file);
    return whole;
}

bool cla_read_file(const char *path, size_t limit, struct text *out)
{
    wchar_t wide[PATH_UNITS];
    return widen(path, wide) && read_wide(wide, 0, limit, out);
}

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

bool cla_make_folder(const char *path)
{
    struct text part = {0};
    if (is_folder(path))
        return true;
    for (size_t i = 1; path[0] && path[i]; i++) {
        if (path[i] == '/' || path[i] == '\\') {
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

enum cla_folder_state cla_folder_open(const char *path, struct cla_folder *folder)
{
    *folder = (struct cla_folder){.handle = -1};
    if (!is_folder(path))
        return CLA_FOLDER_ABSENT;
    cla_text_add(&folder->path, "%s", path);
    if (!folder->path.failed)
        return CLA_FOLDER_OPEN;
    cla_folder_close(folder);
    return CLA_FOLDER_ABSENT;
}

void cla_folder_close(struct cla_folder *folder) { cla_text_free(&folder->path); }

bool cla_folder_read(const struct cla_folder *folder, const char *name, size_t limit, struct text *out)
{
    wchar_t wide[PATH_UNITS];
    return widen_pair(folder->path.data, name, wide) && read_wide(wide, FILE_FLAG_OPEN_REPARSE_POINT, limit, out);
}

/* Creates a new file with a unique name in the folder. */
static HANDLE open_temporary(const struct cla_folder *folder, const char *name, wchar_t *wide)
{
    HANDLE file = INVALID_HANDLE_VALUE;
    for (int i = 0; i < TEMPORARY_TRIES && file == INVALID_HANDLE_VALUE; i++) {
        char temporary[160];
        snprintf(temporary, sizeof temporary, "%s.%lu.%d.tmp", name, (unsigned long)GetCurrentProcessId(), i);
        if (!widen_pair(folder->path.data, temporary, wide))
            break;
        file = CreateFileW(wide, GENERIC_WRITE, 0, NULL, CREATE_NEW, FILE_ATTRIBUTE_NORMAL, NULL);
        if (file == INVALID_HANDLE_VALUE && GetLastError() != ERROR_FILE_EXISTS)
            break;
    }
    return file;
}

bool cla_folder_replace(const struct cla_folder *folder, const char *name, const void *bytes, size_t size)
{
    wchar_t temporary[PATH_UNITS], target[PATH_UNITS];
    DWORD written = 0;
    if (size > 0x7fffffff || !widen_pair(folder->path.data, name, target))
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

void cla_folder_remove(const struct cla_folder *folder, const char *name)
{
    wchar_t wide[PATH_UNITS];
    if (widen_pair(folder->path.data, name, wide))
        DeleteFileW(wide);
}

void cla_folder_touch(const struct cla_folder *folder, const char *name)
{
    wchar_t wide[PATH_UNITS];
    FILETIME now;
    if (!widen_pair(folder->path.data, name, wide))
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

void cla_folder_visit(const struct cla_folder *folder, cla_folder_visitor visit, void *user)
{
    wchar_t wide[PATH_UNITS];
    WIN32_FIND_DATAW entry;
    FILETIME now;
    char name[3 * MAX_PATH];
    if (!widen_pair(folder->path.data, "*", wide))
        return;
    HANDLE search = FindFirstFileW(wide, &entry);
    if (search == INVALID_HANDLE_VALUE)
        return;
    GetSystemTimeAsFileTime(&now);
    do {
        const uint64_t written = file_time(entry.ftLastWriteTime), present = file_time(now);
        if (!(entry.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY) && narrow(entry.cFileName, name, sizeof name))
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
