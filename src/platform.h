/* SPDX-License-Identifier: Apache-2.0
 * Everything that C11 and OpenCL do not have: locks, the environment, files, CPUID. */
#ifndef CLATTN_PLATFORM_H
#define CLATTN_PLATFORM_H

#include "text.h"

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

bool cla_signal_init(struct cla_signal *signal);
void cla_signal_destroy(struct cla_signal *signal);
void cla_signal_wait(struct cla_signal *signal, struct cla_lock *lock);
void cla_signal_all(struct cla_signal *signal);

/* The value of an environment variable, NULL when it is unset or empty. */
const char *cla_environment(const char *name);

/* Appends a whole file; false if it cannot be read. */
bool cla_read_file(const char *path, struct text *out);

#endif
