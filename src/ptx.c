/* SPDX-License-Identifier: Apache-2.0 */
#include "ptx.h"

#include <stdio.h>
#include <string.h>

static bool refuse(char *why, size_t size, const char *reason)
{
    snprintf(why, size, "%s", reason);
    return false;
}

static bool begins_with(const char *line, size_t length, const char *word)
{
    const size_t size = strlen(word);
    return length >= size && memcmp(line, word, size) == 0;
}

static size_t blanks(const char *line, size_t length)
{
    size_t i = 0;
    while (i < length && (line[i] == ' ' || line[i] == '\t'))
        i++;
    return i;
}

/* `.target sm_90, texmode_independent`: the first word after `.target` is the architecture. */
static void add_target(const char *line, size_t length, const char *target, struct text *out)
{
    size_t i = strlen(".target");
    i += blanks(line + i, length - i);
    while (i < length && line[i] != ',' && line[i] != ' ' && line[i] != '\t')
        i++;
    cla_text_add(out, ".target %s", target);
    cla_text_append(out, line + i, length - i);
}

/* Appends a line without its marks; returns their number. */
static size_t add_unmarked(const char *line, size_t length, struct text *out)
{
    const size_t mark = strlen(CLA_PTX_MARK);
    size_t count = 0, from = 0;
    for (size_t i = 0; i + mark <= length; i++)
        if (memcmp(line + i, CLA_PTX_MARK, mark) == 0) {
            cla_text_append(out, line + from, i - from);
            from = i + mark;
            i = from - 1;
            count++;
        }
    cla_text_append(out, line + from, length - from);
    return count;
}

bool cla_ptx_retarget(const char *ptx, size_t size, const char *target, struct text *out, char *why, size_t why_size)
{
    size_t marks = 0, targets = 0;
    /* A driver may count a terminating zero. */
    while (size > 0 && ptx[size - 1] == '\0')
        size--;
    if (memchr(ptx, '\0', size))
        return refuse(why, why_size, "the driver's binary is not PTX text");
    for (size_t at = 0; at < size;) {
        const char *line = ptx + at, *end = memchr(line, '\n', size - at);
        const size_t length = end ? (size_t)(end - line) : size - at, margin = blanks(line, length);
        if (begins_with(line + margin, length - margin, ".target")) {
            add_target(line + margin, length - margin, target, out);
            targets++;
        } else {
            marks += add_unmarked(line, length, out);
        }
        if (begins_with(line + margin, length - margin, ".reqntid"))
            cla_text_add(out, "\n.minnctapersm 1");
        cla_text_append(out, "\n", 1);
        at += length + 1;
    }
    if (targets == 0)
        return refuse(why, why_size, "the driver's binary is not PTX text");
    if (marks == 0)
        return refuse(why, why_size, "the driver's PTX text holds no marked instruction");
    if (out->failed)
        return refuse(why, why_size, "out of host memory");
    return true;
}
