/* SPDX-License-Identifier: Apache-2.0
 * Softmax weights made visible: as blocks in a terminal, and as an SVG. */
#ifndef CLATTN_TOOLS_PICTURE_H
#define CLATTN_TOOLS_PICTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct picture {
    int heads, tokens;
    const float *weights;      /* [heads][tokens][tokens]: query, key */
    const char *const *labels; /* one a token */
    const char *title, *note;  /* of the SVG: what it shows, and where it was computed */
};

static inline float picture_weight(const struct picture *p, int head, int query, int key)
{
    return p->weights[((size_t)head * (size_t)p->tokens + (size_t)query) * (size_t)p->tokens + (size_t)key];
}

/* The head that gives other words the most weight, rather than a word itself or marks such as [CLS]. */
int picture_telling_head(const struct picture *picture);

/* One head, for at most 14 tokens in 80 columns. */
void picture_print(const struct picture *picture, int head, bool colour);

/* One head large, all heads small. */
void picture_draw_svg(FILE *out, const struct picture *picture, int head);

#endif
