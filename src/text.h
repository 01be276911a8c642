/* SPDX-License-Identifier: Apache-2.0
 * A string that grows. It records whether memory ran out, so that callers check once, at the end. */
#ifndef CLATTN_TEXT_H
#define CLATTN_TEXT_H

#include "status.h"

struct text {
    char *data; /* zero-terminated after the first addition; NULL before */
    size_t length, capacity;
    bool failed;
};

/* Only %s, %d, %zu, PRId64 and the like; no floating point, whose format depends on the locale. */
void cla_text_add(struct text *text, const char *format, ...) CLA_PRINTF(2, 3);
void cla_text_append(struct text *text, const char *bytes, size_t length);
/* Shortest decimal form that reads back as the same float, with '.' in every locale. */
void cla_text_add_float(struct text *text, float value);
void cla_text_free(struct text *text);

/* The convention of the public functions that return text: at most `size` bytes with the terminating zero, full size in
 * *needed. */
clattn_status cla_text_out(const struct text *text, char *out, size_t size, size_t *needed);

/* strtod for numbers with '.', in every locale; *end as for strtod. */
double cla_parse_double(const char *text, const char **end);

#endif
