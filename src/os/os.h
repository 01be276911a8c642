/* SPDX-License-Identifier: Apache-2.0
 * Everything that C11 and OpenCL do not have: locks, the clock, the environment, files, libraries loaded at run time, the
 * processor. One file a system: posix.c, windows.c. Paths are UTF-8. */
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

/* pthread mutexes rather than C11's: ThreadSanitizer of current distributions does not know the latter. */
bool cla_lock_init(struct cla_lock *lock);
void cla_lock_destroy(struct cla_lock *lock);
void cla_lock_take(struct cla_lock *lock);
void cla_lock_give(struct cla_lock *lock);

/* The one lock of the whole process. Some implementations (PoCL 3.1) come up twice where two threads ask for platforms first.
 */
void cla_process_lock_take(void);
void cla_process_lock_give(void);

bool cla_signal_init(struct cla_signal *signal);
void cla_signal_destroy(struct cla_signal *signal);
void cla_signal_wait(struct cla_signal *signal, struct cla_lock *lock);
void cla_signal_all(struct cla_signal *signal);

/* A number that no other thread of this process has at the same time. */
uintptr_t cla_thread_self(void);

/* Nanoseconds of the system's clock, as fine as it counts. */
uint64_t cla_clock(void);

/* Whether this process has rights that the user who started it lacks: a program with the setuid or setgid bit, or with file
 * capabilities. Nothing that this user controls may then say what code runs. */
bool cla_is_privileged(void);

/* The value of an environment variable; NULL when it is unset or empty, or the process is privileged. */
const char *cla_environment(const char *name);

/* Appends the value of a variable that holds a path; false where cla_environment gives NULL. */
bool cla_environment_path(const char *name, struct text *out);

/* Whether a path does not depend on the working directory. */
bool cla_path_is_absolute(const char *path);

/* The folder where a user's programs keep what they can make again; false when the environment names none. */
bool cla_cache_home(struct text *out);

/* Appends a whole file; false if it is not a plain file, cannot be read, or holds more than `limit` bytes. */
bool cla_read_file(const char *path, size_t limit, struct text *out);

/* Makes a folder, for this user alone, and the ones above it. True if it is there in the end. */
bool cla_make_folder(const char *path);

/* An open folder that only the effective user may write to: what is in it may say what code runs. */
struct cla_folder {
    struct text path;
    int handle; /* POSIX: entries are reached from here, so that nothing put in the place of `path` counts */
};

/* On Windows the access list of the folder is not looked at: CLA_FOLDER_FOREIGN and CLA_FOLDER_SHARED are of POSIX systems. */
enum cla_folder_state {
    CLA_FOLDER_OPEN,
    CLA_FOLDER_ABSENT,  /* or no folder, or it cannot be read */
    CLA_FOLDER_FOREIGN, /* another user owns it */
    CLA_FOLDER_SHARED,  /* its group or all users may write to it */
};

/* Opens a folder; only CLA_FOLDER_OPEN has to be closed. */
enum cla_folder_state cla_folder_open(const char *path, struct cla_folder *folder);
void cla_folder_close(struct cla_folder *folder);

/* Appends a whole entry; false if it is not a plain file of the effective user's that no other user may write to, is a symbolic
 * link, cannot be read, or holds more than `limit` bytes, which is also where reading a file without an end stops. */
bool cla_folder_read(const struct cla_folder *folder, const char *name, size_t limit, struct text *out);

/* Writes an entry so that readers see the whole old one or the whole new one, never a part. Where that fails the old one stays.
 * A limit on the size of files (RLIMIT_FSIZE) makes it fail and sends no signal. */
bool cla_folder_replace(const struct cla_folder *folder, const char *name, const void *bytes, size_t size);

void cla_folder_remove(const struct cla_folder *folder, const char *name);

/* Makes an entry as young as one just written, where that is allowed. */
void cla_folder_touch(const struct cla_folder *folder, const char *name);

/* Calls `visit` for each plain file of a folder; `age` is the number of seconds since it was written. */
typedef void (*cla_folder_visitor)(void *user, const char *name, uint64_t size, uint64_t age);
void cla_folder_visit(const struct cla_folder *folder, cla_folder_visitor visit, void *user);

/* The address of a function of the OpenCL library that this process uses, NULL where that has none of this name: how functions
 * newer than OpenCL 1.2 are reached without being linked; with CLATTN_DYNAMIC_OPENCL, all functions. Then the library is the
 * one that CLATTN_OPENCL_LIBRARY in the environment names, or the system's. */
typedef void (*cla_function)(void);
cla_function cla_opencl_function(const char *name);

/* What the host's own processor can do beyond what OpenCL says, for CPU devices that are this host: features that it has and
 * whose registers the system keeps for a thread. */
enum { CLA_AVX512_BF16 = 1, CLA_AMX_BF16 = 2 };
unsigned cla_processor_features(void);

/* Asks the system to let this process use AMX tiles, for good; false where it refuses. */
bool cla_processor_allow_tiles(void);

#endif
