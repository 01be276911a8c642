/* SPDX-License-Identifier: Apache-2.0 */
#include "arrays.h"

#include "half.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------------------------------------------------------- types */

static bool parse_type(const char *text, size_t length, clattn_type *type)
{
    static const clattn_type known[] = {CLATTN_FP32, CLATTN_FP16, CLATTN_BF16};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        const char *name = storage_name(known[i]);
        if (strlen(name) == length && memcmp(name, text, length) == 0) {
            *type = known[i];
            return true;
        }
    }
    return false;
}

bool storage_type_parse(const char *text, clattn_type *type) { return parse_type(text, strlen(text), type); }

static bool is_key(const char *text, size_t length, const char *key)
{
    return strlen(key) == length && memcmp(text, key, length) == 0;
}

/* "kv=fp16": every tensor that the key names. */
static bool parse_pair(const char *text, size_t length, struct storage_types *types)
{
    const char *equals = memchr(text, '=', length);
    clattn_type type;
    if (equals == NULL || !parse_type(equals + 1, (size_t)(text + length - equals - 1), &type))
        return false;
    const size_t key = (size_t)(equals - text);
    const bool kv = is_key(text, key, "kv"), q = is_key(text, key, "q"), o = is_key(text, key, "o");
    const bool k = kv || is_key(text, key, "k"), v = kv || is_key(text, key, "v");
    types->q = q ? type : types->q;
    types->k = k ? type : types->k;
    types->v = v ? type : types->v;
    types->o = o ? type : types->o;
    return q || k || v || o;
}

bool storage_types_parse(const char *text, struct storage_types *types)
{
    clattn_type all;
    if (storage_type_parse(text, &all)) {
        types->q = types->k = types->v = types->o = all;
        return true;
    }
    for (;;) {
        const size_t length = strcspn(text, ",");
        if (!parse_pair(text, length, types))
            return false;
        if (text[length] == '\0')
            return true;
        text += length + 1;
    }
}

clattn_type storage_type_of(const struct npy *array)
{
    switch (array->type) {
    case NPY_F2:
        return CLATTN_FP16;
    case NPY_U2:
    case NPY_V2:
        return CLATTN_BF16;
    default:
        return CLATTN_FP32;
    }
}

/* ------------------------------------------------------------------------------------------------------------- elements */

bool array_sizes(const struct npy *array, clattn_layout layout, int64_t sizes[4])
{
    const int r = array->rank;
    if (r < 2 || r > 4)
        return false;
    const int head_axis = layout == CLATTN_BSHD ? r - 2 : r - 3;
    const int seq_axis = layout == CLATTN_BSHD && r > 2 ? r - 3 : r - 2;
    sizes[0] = r == 4 ? array->shape[0] : 1;
    sizes[1] = r > 2 ? array->shape[head_axis] : 1;
    sizes[2] = array->shape[seq_axis];
    sizes[3] = array->shape[r - 1];
    return true;
}

double array_get(const struct npy *array, size_t index)
{
    switch (array->type) {
    case NPY_F4:
        return (double)((const float *)array->data)[index];
    case NPY_F8:
        return ((const double *)array->data)[index];
    case NPY_F2:
        return (double)half_to_float(((const uint16_t *)array->data)[index]);
    case NPY_U2:
    case NPY_V2:
        return (double)bf16_to_float(((const uint16_t *)array->data)[index]);
    case NPY_B1:
    case NPY_U1:
        return (double)((const uint8_t *)array->data)[index];
    case NPY_I4:
        return (double)((const int32_t *)array->data)[index];
    case NPY_I8:
        return (double)((const int64_t *)array->data)[index];
    }
    return 0;
}

void *array_to_storage(const struct npy *array, clattn_type type)
{
    void *data = malloc(array->count * storage_size(type) + 1);
    for (size_t i = 0; data != NULL && i < array->count; i++)
        storage_set(type, data, (int64_t)i, (float)array_get(array, i));
    return data;
}

static void set_element(struct npy *array, size_t i, float x)
{
    switch (array->type) {
    case NPY_F2:
        ((uint16_t *)array->data)[i] = half_from_float(x);
        break;
    case NPY_U2:
    case NPY_V2:
        ((uint16_t *)array->data)[i] = bf16_from_float(x);
        break;
    default:
        ((float *)array->data)[i] = x;
        break;
    }
}

bool array_from_storage(struct npy *array, enum npy_type as, clattn_type type, const void *data, int rank, const int64_t *shape)
{
    memset(array, 0, sizeof *array);
    array->type = as;
    array->rank = rank;
    array->count = 1;
    for (int i = 0; i < rank; i++) {
        array->shape[i] = shape[i];
        array->count *= (size_t)shape[i];
    }
    array->data = malloc(array->count * npy_item_size(as) + 1);
    for (size_t i = 0; array->data != NULL && i < array->count; i++)
        set_element(array, i, storage_get(type, data, (int64_t)i));
    return array->data != NULL;
}

/* ---------------------------------------------------------------------------------------------------------------- files */

int array_read(const char *command, const char *option, const char *path, struct npy *array)
{
    char why[NPY_WHY_SIZE];
    if (npy_read(path, array, why))
        return CLI_OK;
    return cli_fail(command, CLI_FAILED, option, "%s: %s", path, why);
}
