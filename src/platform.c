/* SPDX-License-Identifier: Apache-2.0 */
#ifndef _WIN32
#define _POSIX_C_SOURCE 200809L
#endif
#include "platform.h"

#include <stdio.h>
#include <stdlib.h>

#ifdef _WIN32
#define WIN32_LEAN_AND_MEAN
#include <windows.h>

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
#else
bool cla_lock_init(struct cla_lock *lock) { return pthread_mutex_init(&lock->mutex, NULL) == 0; }
void cla_lock_destroy(struct cla_lock *lock) { pthread_mutex_destroy(&lock->mutex); }
void cla_lock_take(struct cla_lock *lock) { pthread_mutex_lock(&lock->mutex); }
void cla_lock_give(struct cla_lock *lock) { pthread_mutex_unlock(&lock->mutex); }

bool cla_signal_init(struct cla_signal *signal) { return pthread_cond_init(&signal->condition, NULL) == 0; }
void cla_signal_destroy(struct cla_signal *signal) { pthread_cond_destroy(&signal->condition); }
void cla_signal_wait(struct cla_signal *signal, struct cla_lock *lock) { pthread_cond_wait(&signal->condition, &lock->mutex); }
void cla_signal_all(struct cla_signal *signal) { pthread_cond_broadcast(&signal->condition); }
#endif

const char *cla_environment(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

bool cla_read_file(const char *path, struct text *out)
{
    char block[4096];
    FILE *file = fopen(path, "rb");
    if (!file)
        return false;
    for (size_t got; (got = fread(block, 1, sizeof block, file)) > 0;)
        cla_text_append(out, block, got);
    const bool whole = !ferror(file);
    fclose(file);
    return whole;
}
