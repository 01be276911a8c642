/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L

#include "system.h"

#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#ifndef _WIN32
#include <sys/utsname.h>
#endif

bool system_is_terminal(int file_descriptor) { return isatty(file_descriptor) != 0; }

double clock_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

bool system_is_file(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && S_ISREG(about.st_mode);
}

void system_name(char *text, size_t size)
{
#ifdef _WIN32
    snprintf(text, size, "Windows");
#else
    struct utsname name;
    if (uname(&name) == 0)
        snprintf(text, size, "%.80s %.80s %.80s", name.sysname, name.release, name.machine);
    else
        snprintf(text, size, "n/a");
#endif
}
