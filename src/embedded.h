/* SPDX-License-Identifier: Apache-2.0
 * The files of cl/, embedded in the library. The build writes the table (cmake/embed.cmake), sorted by name. */
#ifndef CLATTN_EMBEDDED_H
#define CLATTN_EMBEDDED_H

#include <stddef.h>

struct cla_embedded_file {
    const char *name; /* such as "cl/softmax.cl" */
    const unsigned char *data;
    size_t size; /* of data, without the zero that terminates it */
};

extern const struct cla_embedded_file cla_embedded_files[];
extern const size_t cla_embedded_file_count;

#endif
