/* SPDX-License-Identifier: Apache-2.0
 * Kernel source: `#define`s, then the files, each included once. A pure function of its inputs, and of a folder if
 * CLATTN_SOURCE_DIR names one. */
#ifndef CLATTN_SOURCE_H
#define CLATTN_SOURCE_H

#include "text.h"

/* The origin of a run of lines of the composed source: drivers that ignore #line report lines of the composed source. */
struct line_run {
    int first;     /* line in the composed source, from 1 */
    char file[56]; /* "cl/softmax.cl", or "" for the defines */
    int file_line; /* of `first` in that file */
};

struct source {
    struct text text;
    struct line_run *runs;
    size_t run_count, run_capacity;
    int lines;        /* finished lines of `text` */
    char kernel[160]; /* engine and tile, for messages; set by the caller */
};

/* Appends `defines`, then the named files with their includes resolved. `folder` NULL: the embedded files; otherwise the
 * folder that holds cl/. Errors: INVALID_ARGUMENT (a missing file, named with the file that includes it), OUT_OF_HOST_MEMORY.
 */
clattn_status cla_source_compose(struct source *source, const char *defines, const char *const files[], size_t file_count,
                                 const char *folder, clattn_error *error);

/* File and line, such as "cl/softmax.cl" and 13, of a line of the composed source; false for a line of the defines or past the
 * end. */
bool cla_source_locate(const struct source *source, int line, const char **file, int *file_line);

/* Appends a build log with positions in the composed source ("<kernel>:87:9", "input.cl:87:9") replaced by positions in files.
 */
void cla_source_translate(const struct source *source, const char *log, struct text *out);

void cla_source_free(struct source *source);

#endif
