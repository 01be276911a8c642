/* SPDX-License-Identifier: Apache-2.0
 * The few SVG shapes of which the program's pictures consist. Sizes are whole pixels, so that no number depends on the
 * locale. */
#ifndef CLATTN_TOOLS_SVG_H
#define CLATTN_TOOLS_SVG_H

#include <stdio.h>

#define SVG_INK "#1f2933"
#define SVG_MUTED "#6b7785"

/* White paper; text of class "s" is small and muted. */
void svg_begin(FILE *out, int width, int height);
void svg_end(FILE *out);

/* `attributes` as in a tag, "" for none; the text is escaped. */
void svg_text(FILE *out, int x, int y, const char *attributes, const char *text);
void svg_rect(FILE *out, int x, int y, int width, int height, const char *colour);

#endif
