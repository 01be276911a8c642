/* SPDX-License-Identifier: Apache-2.0
 * Files that a command writes. Each is opened before the work begins, under a temporary name in its own folder, and takes its
 * final name when it is complete: after an error, a full disk or a signal the old file is unchanged. */
#ifndef CLATTN_TOOLS_OUTPUT_H
#define CLATTN_TOOLS_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct output {
    FILE *file;      /* to write into; NULL: not open */
    char *path;      /* the final name, links followed; NULL: written directly to a device, a pipe or standard output */
    char *temporary; /* the name until then; ends with the program */
    int slot;        /* of interrupt.h */
};

enum { OUTPUT_WHY_SIZE = 256 };

/* Opens `path` for writing. "-" and the names of standard output mean the program's standard output, which then holds only this
 * file: everything else goes to standard error. False: `why` says what is wrong, without the name. */
bool output_open(struct output *output, const char *path, char why[OUTPUT_WHY_SIZE]);

/* Gives the complete file its final name. False: `why` says why that failed, and the old file is unchanged. */
bool output_commit(struct output *output, char why[OUTPUT_WHY_SIZE]);

/* Removes the unfinished file. Does nothing for an output that is not open. */
void output_abandon(struct output *output);

/* Whether two names are of the same file, through any links and folders, or both of standard output. */
bool output_is_same(const char *a, const char *b);

#endif
