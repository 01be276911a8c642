/* SPDX-License-Identifier: Apache-2.0
 * Everything that the program needs and C11 lacks: terminals, a steady clock, kinds of files, the system's name. */
#ifndef SYSTEM_H
#define SYSTEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

bool system_is_terminal(int file_descriptor);

/* The width of that terminal; 80 where it is unknown. */
int system_columns(int file_descriptor);

/* Seconds on a clock that never goes back. */
double clock_seconds(void);

/* Whether the path is a plain file: no folder, device or pipe. */
bool system_is_file(const char *path);

bool system_exists(const char *path);

/* Whether two names are of the same file, which may not exist yet. Devices never count as the same file. */
bool system_is_same_file(const char *a, const char *b);

/* Whether the path is the plain file or pipe that standard output goes to. */
bool system_is_standard_output(const char *path);

/* The path that symbolic links at its end lead to, which need not exist; from malloc. NULL: errno says why. */
char *system_follow_links(const char *path);

/* A new file, which must not exist; with the rights and, where possible, the owner of `model` where that exists. NULL: errno
 * says why. */
FILE *system_create(const char *path, const char *model);

/* Everything that was written is on the disk, where the file is on one. */
bool system_sync(FILE *file);

/* Takes the place of `to`. */
bool system_rename(const char *from, const char *to);

/* Reserves the number of a standard stream that was closed at the start, so that no file of the program gets it and with it the
 * program's output. Writing to the stream still fails. */
void system_guard_streams(void);

/* Standard output as a separate file; all other output then goes to standard error. NULL: errno says why. */
FILE *system_take_standard_output(void);

/* The number of this process. */
long system_process(void);

/* The folder of this program's file, even after it was moved; false where the system does not say. */
bool system_program_folder(char *path, size_t size);

/* "Linux 6.1 x86_64". */
void system_name(char *text, size_t size);

#endif
