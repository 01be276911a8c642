/* SPDX-License-Identifier: Apache-2.0
 * NumPy's .npy files, versions 1 to 3, little-endian. Files are not trusted: every count is checked. */
#ifndef CLATTN_TOOLS_NPY_H
#define CLATTN_TOOLS_NPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum npy_type {
    NPY_F4,
    NPY_F2,
    NPY_F8,
    NPY_U2, /* bits of bf16 */
    NPY_V2, /* bits of bf16, as ml_dtypes writes them */
    NPY_B1,
    NPY_U1,
    NPY_I4,
    NPY_I8,
};

enum { NPY_MAX_RANK = 8, NPY_WHY_SIZE = 256 };

struct npy {
    enum npy_type type;
    int rank;
    int64_t shape[NPY_MAX_RANK];
    size_t count;
    void *data; /* C order, whatever the file's was; from malloc, never NULL after a read */
};

/* False: `why` has a text that says what is wrong with the file, without its name; nothing is to be freed. */
bool npy_read(const char *path, struct npy *array, char why[NPY_WHY_SIZE]);
bool npy_read_stream(FILE *file, struct npy *array, char why[NPY_WHY_SIZE]);
bool npy_parse(const void *bytes, size_t size, struct npy *array, char why[NPY_WHY_SIZE]);

/* Version 1.0, C order. False: not all of it was written. */
bool npy_write(FILE *file, const struct npy *array);

void npy_free(struct npy *array);

size_t npy_item_size(enum npy_type type);
const char *npy_type_name(enum npy_type type); /* "<f4" */

/* "(2, 3, 4)"; returns `text`. */
char *npy_shape_text(const struct npy *array, char *text, size_t size);

#endif
