/* SPDX-License-Identifier: Apache-2.0
 * Everything of the program that C11 does not have: terminals, a steady clock, kinds of files, the system's name. */
#ifndef SYSTEM_H
#define SYSTEM_H

#include <stdbool.h>
#include <stddef.h>

bool system_is_terminal(int file_descriptor);

/* Seconds on a clock that never goes back. */
double clock_seconds(void);

/* Whether the path is a plain file: no folder, device or pipe. */
bool system_is_file(const char *path);

/* "Linux 6.1 x86_64". */
void system_name(char *text, size_t size);

#endif
