/* SPDX-License-Identifier: Apache-2.0
 * Kernel text: `#define`s, then the files, each included once. A pure function of its inputs (and of a folder, while
 * developing). */
#ifndef CLATTN_SOURCE_H
#define CLATTN_SOURCE_H

#include "text.h"

/* Where a run of lines of the composed text came from: drivers that ignore #line report the line of the whole text. */
struct line_run {
    int first;     /* line in the composed text, from 1 */
    char file[56]; /* "cl/softmax.cl", or "" for the defines */
    int file_line; /* of `first` in that file */
};

struct source {
    struct text text;
    struct line_run *runs;
    size_t run_count, run_capacity;
    int lines;        /* finished lines of `text` */
    char kernel[160]; /* what it is the text of, for messages: engine and tile; set by whoever knows */
};

/* Appends `defines`, then the named files with their includes resolved. `folder` NULL: the embedded files; otherwise the folder
 * that holds cl/. Errors: INVALID_ARGUMENT (a file that is not there, named with its includer), OUT_OF_HOST_MEMORY. */
clattn_status cla_source_compose(struct source *source, const char *defines, const char *const files[], size_t file_count,
                                 const char *folder, clattn_error *error);

/* "cl/softmax.cl" and 13 for a line of the composed text; false for a line of the defines or past the end. */
bool cla_source_locate(const struct source *source, int line, const char **file, int *file_line);

/* A build log with places in the whole text ("<kernel>:87:9", "input.cl:87:9") rewritten as places in files. */
void cla_source_translate(const struct source *source, const char *log, struct text *out);

void cla_source_free(struct source *source);

#endif
