/* SPDX-License-Identifier: Apache-2.0
 * Between .npy arrays and the tensors of a problem: types, axes, and the checks that name a file. */
#ifndef CLATTN_TOOLS_ARRAYS_H
#define CLATTN_TOOLS_ARRAYS_H

#include "cli.h"
#include "npy.h"

struct storage_types {
    clattn_type q, k, v, o; /* 0: not said */
};

/* "fp16", or "q=fp32,kv=fp16,o=fp32" with keys q, k, v, kv, o. False: `text` is neither. */
bool storage_types_parse(const char *text, struct storage_types *types);
bool storage_type_parse(const char *text, clattn_type *type);

/* The storage type that holds an array's numbers best: fp16 and bf16 as they are, anything else fp32. */
clattn_type storage_type_of(const struct npy *array);

/* batch, heads, sequence, head_dim of an array of 2 to 4 dimensions; what it lacks is 1. False: another rank. */
bool array_sizes(const struct npy *array, clattn_layout layout, int64_t sizes[4]);

/* The array's elements in a storage type, in the array's own order, from malloc; NULL when memory is out. */
void *array_to_storage(const struct npy *array, clattn_type type);
double array_get(const struct npy *array, size_t index);

/* Elements of `type` as an array of `as` with the given shape. False: memory is out. */
bool array_from_storage(struct npy *array, enum npy_type as, clattn_type type, const void *data, int rank,
                        const int64_t *shape);

/* Reads a file or fails with its name; the exit code, CLI_OK when read. */
int array_read(const char *command, const char *option, const char *path, struct npy *array);

#endif
