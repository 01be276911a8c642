/* SPDX-License-Identifier: Apache-2.0 */
#include "text.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool reserve(struct text *text, size_t more)
{
    if (text->failed)
        return false;
    if (text->length + more + 1 > text->capacity) {
        const size_t capacity = 2 * (text->length + more) + 256;
        char *data = realloc(text->data, capacity);
        if (!data) {
            text->failed = true;
            return false;
        }
        text->data = data;
        text->capacity = capacity;
    }
    return true;
}

void cla_text_append(struct text *text, const char *bytes, size_t length)
{
    if (!reserve(text, length))
        return;
    memcpy(text->data + text->length, bytes, length);
    text->length += length;
    text->data[text->length] = '\0';
}

void cla_text_add(struct text *text, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    const int length = vsnprintf(NULL, 0, format, list);
    va_end(list);
    if (length < 0 || !reserve(text, (size_t)length))
        return;
    va_start(list, format);
    vsnprintf(text->data + text->length, (size_t)length + 1, format, list);
    va_end(list);
    text->length += (size_t)length;
}

void cla_text_add_float(struct text *text, float value)
{
    char digits[48];
    for (int precision = 1; precision <= 9; precision++) {
        snprintf(digits, sizeof digits, "%.*g", precision, (double)value);
        for (char *c = digits; *c; c++)
            if (*c == ',')
                *c = '.'; /* the decimal mark of some locales */
        if ((float)cla_parse_double(digits, NULL) == value)
            break;
    }
    cla_text_add(text, "%s", digits);
}

void cla_text_free(struct text *text)
{
    free(text->data);
    memset(text, 0, sizeof *text);
}

clattn_status cla_text_out(const struct text *text, char *out, size_t size, size_t *needed)
{
    if (text->failed)
        return CLATTN_OUT_OF_HOST_MEMORY;
    if (needed)
        *needed = text->length + 1;
    if (out && size) {
        const size_t length = text->length < size - 1 ? text->length : size - 1;
        if (length)
            memcpy(out, text->data, length);
        out[length] = '\0';
    }
    return CLATTN_SUCCESS;
}

static const char *skip_digits(const char *c, double *value, int *count)
{
    for (; *c >= '0' && *c <= '9'; c++, ++*count)
        *value = *value * 10.0 + (*c - '0');
    return c;
}

/* Correct to a few units in the last place of a double, which is more than enough for options of type float. */
double cla_parse_double(const char *text, const char **end)
{
    const char *c = text;
    const bool negative = *c == '-';
    double value = 0.0;
    int digits = 0, fraction = 0;
    if (*c == '-' || *c == '+')
        c++;
    c = skip_digits(c, &value, &digits);
    if (*c == '.')
        c = skip_digits(c + 1, &value, &fraction);
    if (digits + fraction == 0) {
        if (end)
            *end = text;
        return 0.0;
    }
    int exponent = 0;
    if (*c == 'e' || *c == 'E') {
        const char *after = c + 1;
        const bool down = *after == '-';
        double power = 0.0;
        int count = 0;
        if (*after == '-' || *after == '+')
            after++;
        after = skip_digits(after, &power, &count);
        if (count) {
            exponent = power > 9999.0 ? 9999 : (int)power;
            exponent = down ? -exponent : exponent;
            c = after;
        }
    }
    if (end)
        *end = c;
    exponent -= fraction;
    /* Two steps, so that the power does not overflow for 1e-320 or a long fraction. */
    value = exponent < -300 ? value / pow(10.0, 300.0) / pow(10.0, -(exponent + 300.0))
            : exponent < 0  ? value / pow(10.0, -exponent)
                            : value * pow(10.0, exponent);
    return negative ? -value : value;
}
