/* SPDX-License-Identifier: Apache-2.0
 * Files that a command writes. Each is opened before the work begins, under a temporary name in the folder of its own, and
 * takes its final name when it is complete: an error, a full disk or a signal leaves the file that was there before. */
#ifndef CLATTN_TOOLS_OUTPUT_H
#define CLATTN_TOOLS_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct output {
    FILE *file;      /* to write into; NULL: not open */
    char *path;      /* the final name, links followed; NULL: written as it comes, to a device, a pipe or standard output */
    char *temporary; /* the name until then; ends with the program */
    int slot;        /* of interrupt.h */
};

enum { OUTPUT_WHY_SIZE = 256 };

/* Opens `path` for writing. "-" and the names of standard output are the program's standard output, which from here on belongs
 * to this file: whatever else the program prints goes to standard error. False: `why` says what is wrong, without the name. */
bool output_open(struct output *output, const char *path, char why[OUTPUT_WHY_SIZE]);

/* All is written: the file takes its name. False: `why` says why it could not be, and what was there before is there still. */
bool output_commit(struct output *output, char why[OUTPUT_WHY_SIZE]);

/* Nothing is left of it. An output that is not open is left alone. */
void output_abandon(struct output *output);

/* Whether two names are of one file, by whatever links and folders, or both of standard output. */
bool output_is_same(const char *a, const char *b);

#endif
