/* SPDX-License-Identifier: Apache-2.0 */
#include "svg.h"

void svg_begin(FILE *out, int width, int height)
{
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" "
            "font-family=\"Helvetica, Arial, sans-serif\" font-size=\"14\" fill=\"" SVG_INK "\">\n"
            "<style>.n{font-size:12px;text-anchor:middle}.s{font-size:12px;fill:" SVG_MUTED "}</style>\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n",
            width, height, width, height);
}

void svg_end(FILE *out) { fputs("</svg>\n", out); }

static void escape(FILE *out, const char *text)
{
    for (; *text != '\0'; text++) {
        const char *entity = *text == '&'   ? "&amp;"
                             : *text == '<' ? "&lt;"
                             : *text == '>' ? "&gt;"
                             : *text == '"' ? "&quot;"
                                            : NULL;
        if (entity != NULL)
            fputs(entity, out);
        else
            fputc(*text, out);
    }
}

void svg_text(FILE *out, int x, int y, const char *attributes, const char *text)
{
    fprintf(out, "<text x=\"%d\" y=\"%d\" %s>", x, y, attributes);
    escape(out, text);
    fputs("</text>\n", out);
}

void svg_rect(FILE *out, int x, int y, int width, int height, const char *colour)
{
    fprintf(out, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"%s\"/>\n", x, y, width, height, colour);
}
