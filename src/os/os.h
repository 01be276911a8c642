/* SPDX-License-Identifier: Apache-2.0
 * Everything that C11 and OpenCL do not have: locks, the clock, the environment, files, libraries loaded at run time, the
 * processor. One source file for each system: posix.c, windows.c. Paths are UTF-8. */
#ifndef CLATTN_OS_H
#define CLATTN_OS_H

#include "../text.h"

#ifdef _WIN32
struct cla_lock {
    void *word;
};
struct cla_signal {
    void *word;
};
#else
#include <pthread.h>
struct cla_lock {
    pthread_mutex_t mutex;
};
struct cla_signal {
    pthread_cond_t condition;
};
#endif

/* pthread mutexes, not C11's, which ThreadSanitizer of current distributions does not support. */
bool cla_lock_init(struct cla_lock *lock);
void cla_lock_destroy(struct cla_lock *lock);
void cla_lock_take(struct cla_lock *lock);
void cla_lock_give(struct cla_lock *lock);

/* The only lock of the whole process. Some implementations (PoCL 3.1) initialize twice if two threads make the first query of
 * platforms. */
void cla_process_lock_take(void);
void cla_process_lock_give(void);

bool cla_signal_init(struct cla_signal *signal);
void cla_signal_destroy(struct cla_signal *signal);
void cla_signal_wait(struct cla_signal *signal, struct cla_lock *lock);
void cla_signal_all(struct cla_signal *signal);

/* A number that identifies this thread among all running threads of the process. */
uintptr_t cla_thread_self(void);

/* Nanoseconds of the system's clock, at its resolution. */
uint64_t cla_clock(void);

/* Whether this process has rights that the user who started it lacks: a program with the setuid or setgid bit, or with file
 * capabilities. Nothing that this user controls may then say what code runs. */
bool cla_is_privileged(void);

/* The value of an environment variable; NULL when it is unset or empty, or the process is privileged. */
const char *cla_environment(const char *name);

/* Appends the value of a variable that holds a path; false if cla_environment returns NULL. */
bool cla_environment_path(const char *name, struct text *out);

/* Whether a path does not depend on the working directory. */
bool cla_path_is_absolute(const char *path);

/* The user's folder for caches; false if the environment names none. */
bool cla_cache_home(struct text *out);

/* Appends a whole file; false if it is not a plain file, cannot be read, or holds more than `limit` bytes. */
bool cla_read_file(const char *path, size_t limit, struct text *out);

/* Creates a folder, for this user only, and its parents. True if it then exists. */
bool cla_make_folder(const char *path);

/* An open folder that only the effective user may write to: its contents may decide what code runs. */
struct cla_folder {
    struct text path;
    int handle; /* POSIX: entries are opened relative to it, so that replacing `path` has no effect */
};

/* On Windows the access list of the folder is not checked: CLA_FOLDER_FOREIGN and CLA_FOLDER_SHARED occur on POSIX systems
 * only. */
enum cla_folder_state {
    CLA_FOLDER_OPEN,
    CLA_FOLDER_ABSENT,  /* also if it is no folder or cannot be read */
    CLA_FOLDER_FOREIGN, /* another user owns it */
    CLA_FOLDER_SHARED,  /* its group or all users may write to it */
};

/* Opens a folder; only CLA_FOLDER_OPEN has to be closed. */
enum cla_folder_state cla_folder_open(const char *path, struct cla_folder *folder);
void cla_folder_close(struct cla_folder *folder);

/* Appends a whole entry; false if it is not a plain file of the effective user's that no other user may write to, is a
 * symbolic link, cannot be read, or holds more than `limit` bytes; reading an endless file stops there too. */
bool cla_folder_read(const struct cla_folder *folder, const char *name, size_t limit, struct text *out);

/* Writes an entry so that readers see the complete old or new one, never a part. On failure the old one remains. A limit on
 * the size of files (RLIMIT_FSIZE) makes it fail without a signal. */
bool cla_folder_replace(const struct cla_folder *folder, const char *name, const void *bytes, size_t size);

void cla_folder_remove(const struct cla_folder *folder, const char *name);

/* Sets the time of an entry to now, if that is permitted. */
void cla_folder_touch(const struct cla_folder *folder, const char *name);

/* Calls `visit` for each plain file of a folder; `age` is the number of seconds since it was written. */
typedef void (*cla_folder_visitor)(void *user, const char *name, uint64_t size, uint64_t age);
void cla_folder_visit(const struct cla_folder *folder, cla_folder_visitor visit, void *user);

/* The address of a function of the OpenCL library that this process uses; NULL if it has none of this name. Functions newer
 * than OpenCL 1.2 are called this way instead of being linked, and with CLATTN_DYNAMIC_OPENCL all functions are; then the
 * library is the one that the environment variable CLATTN_OPENCL_LIBRARY names, or the system's. */
typedef void (*cla_function)(void);
cla_function cla_opencl_function(const char *name);

/* Features of the host's processor that OpenCL does not report, for CPU devices that are this host. A feature counts if the
 * system saves its registers for a thread. */
enum { CLA_AVX512_BF16 = 1, CLA_AMX_BF16 = 2 };
unsigned cla_processor_features(void);

/* Asks the system to let this process use AMX tiles, permanently; false if it refuses. */
bool cla_processor_allow_tiles(void);

#endif
