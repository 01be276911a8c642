/* SPDX-License-Identifier: Apache-2.0 */
#include "npy.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    size_t size;
} types[] = {
    [NPY_F4] = {"<f4", 4}, [NPY_F2] = {"<f2", 2}, [NPY_F8] = {"<f8", 8}, [NPY_U2] = {"<u2", 2}, [NPY_V2] = {"<V2", 2},
    [NPY_B1] = {"|b1", 1}, [NPY_U1] = {"|u1", 1}, [NPY_I4] = {"<i4", 4}, [NPY_I8] = {"<i8", 8},
};

enum { TYPE_COUNT = sizeof types / sizeof types[0], MAX_HEADER = 1 << 20 };

static const char magic[] = "\x93NUMPY";

size_t npy_item_size(enum npy_type type) { return types[type].size; }

const char *npy_type_name(enum npy_type type) { return types[type].name; }

static bool refuse(char why[NPY_WHY_SIZE], const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(why, NPY_WHY_SIZE, format, list);
    va_end(list);
    return false;
}

/* -------------------------------------------------------------------------------------------------- the header's text */

/* A cursor in the header: a Python dictionary such as {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }. */
struct reader {
    const char *at, *end;
    char *why;
};

static void skip_space(struct reader *r)
{
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\t' || *r->at == '\n' || *r->at == '\r'))
        r->at++;
}

static bool accept(struct reader *r, char c)
{
    skip_space(r);
    if (r->at == r->end || *r->at != c)
        return false;
    r->at++;
    return true;
}

static bool expect(struct reader *r, char c)
{
    if (accept(r, c))
        return true;
    return refuse(r->why, "the header is not a valid .npy header: '%c' is missing", c);
}

/* A quoted word into `word`; longer ones are cut, which no known name survives. */
static bool read_word(struct reader *r, char *word, size_t size)
{
    skip_space(r);
    if (r->at == r->end || (*r->at != '\'' && *r->at != '"'))
        return refuse(r->why, "the header is not a valid .npy header: a quoted word is missing");
    const char quote = *r->at++;
    const char *close = memchr(r->at, quote, (size_t)(r->end - r->at));
    if (close == NULL)
        return refuse(r->why, "the header is not a valid .npy header: a quote is not closed");
    const size_t length = (size_t)(close - r->at);
    const size_t kept = length < size ? length : size - 1;
    memcpy(word, r->at, kept);
    word[kept] = '\0';
    r->at = close + 1;
    return true;
}

static bool read_bool(struct reader *r, bool *value)
{
    skip_space(r);
    const size_t left = (size_t)(r->end - r->at);
    *value = left >= 4 && memcmp(r->at, "True", 4) == 0;
    if (!*value && !(left >= 5 && memcmp(r->at, "False", 5) == 0))
        return refuse(r->why, "the header's fortran_order is neither True nor False");
    r->at += *value ? 4 : 5;
    return true;
}

static bool read_dimension(struct reader *r, int64_t *value)
{
    skip_space(r);
    const char *start = r->at;
    int64_t number = 0;
    for (; r->at < r->end && *r->at >= '0' && *r->at <= '9'; r->at++) {
        const int digit = *r->at - '0';
        if (number > (INT64_MAX - digit) / 10)
            return refuse(r->why, "a dimension of its shape does not fit 63 bits");
        number = number * 10 + digit;
    }
    if (r->at == start)
        return refuse(r->why, "its shape holds something that is not a whole number of 0 or more");
    if (r->at < r->end && *r->at == 'L')
        r->at++; /* Python 2 wrote long integers so */
    *value = number;
    return true;
}

static bool read_shape(struct reader *r, struct npy *array)
{
    array->rank = 0;
    if (!expect(r, '('))
        return false;
    while (!accept(r, ')')) {
        if (array->rank == NPY_MAX_RANK)
            return refuse(r->why, "it has more than %d dimensions", NPY_MAX_RANK);
        if (!read_dimension(r, &array->shape[array->rank++]))
            return false;
        if (!accept(r, ',')) {
            if (!expect(r, ')'))
                return false;
            break;
        }
    }
    return true;
}

static bool read_type(struct reader *r, enum npy_type *type)
{
    char word[16];
    skip_space(r);
    if (r->at < r->end && *r->at == '[')
        return refuse(r->why, "a structured dtype is not supported; save a plain array");
    if (!read_word(r, word, sizeof word))
        return false;
    if (word[0] == '>' && strchr("?bBV", word[1]) == NULL && strcmp(word + 1, "b1") != 0)
        return refuse(r->why, "dtype '%s' is big-endian; save array.astype(array.dtype.newbyteorder('<'))", word);
    for (int i = 0; i < TYPE_COUNT; i++) {
        const bool order = word[0] == '<' || word[0] == '|' || word[0] == '=' || word[0] == '>';
        if (order && strcmp(word + 1, types[i].name + 1) == 0) {
            *type = (enum npy_type)i;
            return true;
        }
    }
    return refuse(r->why, "dtype '%s' is not supported; save it as float32, float16, float64 or uint16 (bits of bf16)", word);
}

static bool read_dictionary(struct reader *r, struct npy *array, bool *fortran)
{
    bool seen[3] = {false, false, false};
    static const char *const keys[3] = {"descr", "fortran_order", "shape"};
    if (!expect(r, '{'))
        return false;
    while (!accept(r, '}')) {
        char key[24];
        int which = 0;
        if (!read_word(r, key, sizeof key) || !expect(r, ':'))
            return false;
        while (which < 3 && strcmp(key, keys[which]) != 0)
            which++;
        if (which == 3 || seen[which])
            return refuse(r->why, "the header's key '%s' is %s", key, which == 3 ? "unknown" : "there twice");
        seen[which] = true;
        if (!(which == 0 ? read_type(r, &array->type) : which == 1 ? read_bool(r, fortran) : read_shape(r, array)))
            return false;
        if (!accept(r, ',')) {
            if (!expect(r, '}'))
                return false;
            break;
        }
    }
    for (int i = 0; i < 3; i++)
        if (!seen[i])
            return refuse(r->why, "the header's key '%s' is missing", keys[i]);
    skip_space(r);
    return r->at == r->end || refuse(r->why, "the header has something after its closing brace");
}

/* Number of elements, and that their bytes fit the address space. A dimension of 0 makes any others harmless. */
static bool count_elements(struct npy *array, char why[NPY_WHY_SIZE])
{
    const uint64_t limit = PTRDIFF_MAX / npy_item_size(array->type);
    uint64_t count = 1;
    for (int i = 0; i < array->rank; i++)
        if (array->shape[i] == 0)
            count = 0;
    for (int i = 0; i < array->rank && count != 0; i++) {
        if ((uint64_t)array->shape[i] > limit / count)
            return refuse(why, "its shape asks for more bytes than memory can hold");
        count *= (uint64_t)array->shape[i];
    }
    array->count = (size_t)count;
    return true;
}

/* -------------------------------------------------------------------------------------------------------------- the file */

/* Where the header's text begins and its length, from the first 12 bytes (10 in version 1). */
static bool read_prefix(const unsigned char *bytes, size_t size, size_t *start, size_t *length, char why[NPY_WHY_SIZE])
{
    if (size < 10 || memcmp(bytes, magic, 6) != 0)
        return refuse(why, "this is not a .npy file (save one with numpy.save)");
    const int version = bytes[6];
    if (version < 1 || version > 3)
        return refuse(why, ".npy version %d is not supported; versions 1 to 3 are", version);
    *start = version == 1 ? 10 : 12;
    if (size < *start)
        return refuse(why, "the file ends within its header");
    *length = (size_t)bytes[8] | (size_t)bytes[9] << 8;
    if (version > 1)
        *length |= (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
    if (*length > MAX_HEADER)
        return refuse(why, "the header's length of %zu bytes is not plausible", *length);
    return true;
}

static bool read_header(const char *text, size_t length, struct npy *array, bool *fortran, char why[NPY_WHY_SIZE])
{
    struct reader reader = {text, text + length, why};
    *fortran = false;
    return read_dictionary(&reader, array, fortran) && count_elements(array, why);
}

/* Column-major to row-major: walks the target in order with an odometer over the source's strides. */
static bool to_c_order(struct npy *array, char why[NPY_WHY_SIZE])
{
    const size_t item = npy_item_size(array->type);
    size_t strides[NPY_MAX_RANK], at = 0;
    int64_t index[NPY_MAX_RANK] = {0};
    if (array->rank < 2 || array->count == 0)
        return true;
    char *target = malloc(array->count * item);
    if (target == NULL)
        return refuse(why, "out of memory");
    for (int i = 0; i < array->rank; i++)
        strides[i] = i == 0 ? 1 : strides[i - 1] * (size_t)array->shape[i - 1];
    for (size_t n = 0; n < array->count; n++) {
        memcpy(target + n * item, (const char *)array->data + at * item, item);
        for (int d = array->rank - 1; d >= 0; d--) {
            at += strides[d];
            if (++index[d] < array->shape[d])
                break;
            at -= strides[d] * (size_t)array->shape[d];
            index[d] = 0;
        }
    }
    free(array->data);
    array->data = target;
    return true;
}

static bool finish(struct npy *array, bool fortran, char why[NPY_WHY_SIZE])
{
    if (!fortran || to_c_order(array, why))
        return true;
    npy_free(array);
    return false;
}

bool npy_parse(const void *bytes, size_t size, struct npy *array, char why[NPY_WHY_SIZE])
{
    size_t start = 0, length = 0;
    bool fortran;
    memset(array, 0, sizeof *array);
    if (!read_prefix(bytes, size, &start, &length, why))
        return false;
    if (length > size - start)
        return refuse(why, "the file ends within its header");
    if (!read_header((const char *)bytes + start, length, array, &fortran, why))
        return false;
    const size_t wanted = array->count * npy_item_size(array->type), there = size - start - length;
    if (there < wanted)
        return refuse(why, "the file is cut off: its shape needs %zu bytes of data, %zu are there", wanted, there);
    array->data = malloc(wanted + 1);
    if (array->data == NULL)
        return refuse(why, "out of memory: %zu bytes", wanted);
    memcpy(array->data, (const char *)bytes + start + length, wanted);
    return finish(array, fortran, why);
}

/* In pieces, so that no memory is allocated for a shape larger than the file. */
static bool read_data(FILE *file, struct npy *array, char why[NPY_WHY_SIZE])
{
    const size_t wanted = array->count * npy_item_size(array->type);
    size_t capacity = wanted < 65536 ? wanted : 65536, length = 0;
    array->data = malloc(capacity + 1);
    while (array->data != NULL) {
        length += fread((char *)array->data + length, 1, capacity - length, file);
        if (length == wanted)
            return true;
        if (length < capacity) {
            npy_free(array);
            return refuse(why, "the file is cut off: its shape needs %zu bytes of data, %zu are there", wanted, length);
        }
        capacity = capacity < wanted / 2 ? capacity * 2 : wanted;
        void *larger = realloc(array->data, capacity + 1);
        if (larger == NULL)
            npy_free(array);
        array->data = larger;
    }
    return refuse(why, "out of memory: %zu bytes", wanted);
}

bool npy_read_stream(FILE *file, struct npy *array, char why[NPY_WHY_SIZE])
{
    memset(array, 0, sizeof *array);
    unsigned char prefix[12];
    size_t start = 0, length = 0;
    bool fortran = false;
    size_t have = fread(prefix, 1, 10, file);
    if (have == 10 && prefix[6] != 1)
        have += fread(prefix + 10, 1, 2, file);
    if (!read_prefix(prefix, have, &start, &length, why))
        return false;
    char *text = malloc(length + 1);
    if (text == NULL)
        return refuse(why, "out of memory");
    bool right = fread(text, 1, length, file) == length || refuse(why, "the file ends within its header");
    right = right && read_header(text, length, array, &fortran, why);
    free(text);
    return right && read_data(file, array, why) && finish(array, fortran, why);
}

bool npy_read(const char *path, struct npy *array, char why[NPY_WHY_SIZE])
{
    memset(array, 0, sizeof *array);
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return refuse(why, "cannot be opened: %s", strerror(errno));
    const bool right = npy_read_stream(file, array, why);
    fclose(file);
    return right;
}

void npy_free(struct npy *array)
{
    free(array->data);
    array->data = NULL;
}

char *npy_shape_text(const struct npy *array, char *text, size_t size)
{
    size_t at = (size_t)snprintf(text, size, "(");
    for (int i = 0; i < array->rank && at < size; i++)
        at += (size_t)snprintf(text + at, size - at, "%s%" PRId64, i ? ", " : "", array->shape[i]);
    if (at < size)
        snprintf(text + at, size - at, array->rank == 1 ? ",)" : ")");
    return text;
}

/* The data after a version 1 header starts at a multiple of 64, as NumPy writes it. */
static bool write_header(FILE *file, const struct npy *array)
{
    char shape[256], text[512];
    npy_shape_text(array, shape, sizeof shape);
    const int length = snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape': %s, }",
                                npy_type_name(array->type), shape);
    const int padded = (10 + length + 1 + 63) / 64 * 64 - 10;
    const unsigned char prefix[4] = {1, 0, (unsigned char)(padded & 255), (unsigned char)(padded >> 8)};
    return fwrite(magic, 1, 6, file) == 6 && fwrite(prefix, 1, 4, file) == 4 &&
           fprintf(file, "%s%*s\n", text, padded - length - 1, "") == padded;
}

bool npy_write(FILE *file, const struct npy *array)
{
    return write_header(file, array) && fwrite(array->data, npy_item_size(array->type), array->count, file) == array->count;
}
