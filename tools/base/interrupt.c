/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L

#include "interrupt.h"

#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#ifndef _WIN32
#include <unistd.h>
#endif

enum { FILES = 8 };

static const char *volatile files[FILES];
static volatile sig_atomic_t is_deferred, is_pending, is_installed;

static void remove_file(const char *path)
{
#ifdef _WIN32
    remove(path);
#else
    unlink(path); /* unlike remove, allowed in a signal handler */
#endif
}

static void on_signal(int number)
{
    if (number == SIGINT && is_deferred && !is_pending) {
        is_pending = 1;
#ifdef _WIN32
        signal(SIGINT, on_signal);
#endif
        return;
    }
    for (int i = 0; i < FILES; i++) {
        const char *const path = files[i];
        if (path != NULL)
            remove_file(path);
    }
    signal(number, SIG_DFL);
    raise(number);
}

/* A signal that is ignored at the program's start (nohup) stays ignored. */
static void handle(int number)
{
#ifdef _WIN32
    signal(number, on_signal);
#else
    struct sigaction old, handler = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigemptyset(&handler.sa_mask);
    if (sigaction(number, NULL, &old) == 0 && old.sa_handler == SIG_DFL)
        sigaction(number, &handler, NULL);
#endif
}

static void install(void)
{
    if (is_installed)
        return;
    is_installed = 1;
    handle(SIGINT);
    handle(SIGTERM);
#ifndef _WIN32
    handle(SIGHUP);
    handle(SIGQUIT);
    handle(SIGPIPE);
    handle(SIGXCPU);
    handle(SIGXFSZ);
#endif
}

int interrupt_remove(const char *path)
{
    install();
    for (int i = 0; i < FILES; i++) {
        if (files[i] == NULL) {
            files[i] = path;
            return i;
        }
    }
    return -1;
}

void interrupt_forget(int slot)
{
    if (slot >= 0)
        files[slot] = NULL;
}

void interrupt_defer(void)
{
    install();
    is_deferred = 1;
}

bool interrupt_is_pending(void) { return is_pending != 0; }
