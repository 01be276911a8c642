/* SPDX-License-Identifier: Apache-2.0
 * The SVG half of picture.h. */
#include "picture.h"

#include "svg.h"

#include <string.h>

enum {
    CELL = 42,        /* of the large map */
    LEFT = 96,        /* room for row labels */
    TOP = 142,        /* room for the title and column labels */
    SMALL_SIDE = 108, /* of a small map */
    SMALL_GAP = 26,
    SMALL_COLUMNS = 3,
    GUTTER = 60,
    FOOT = 64,
};

/* From near white through blue to near black, so that it prints in grey too. */
static void colour_of(float w, int rgb[3])
{
    static const int stops[5][3] = {{244, 247, 250}, {190, 216, 239}, {98, 161, 214}, {30, 96, 165}, {10, 37, 82}};
    const float clamped = w > 1.0f ? 1.0f : w > 0.0f ? w : 0.0f;
    const float at = clamped * 4.0f;
    const int k = at >= 4.0f ? 3 : (int)at;
    const float t = at - (float)k;
    for (int c = 0; c < 3; c++)
        rgb[c] = (int)((1.0f - t) * (float)stops[k][c] + t * (float)stops[k + 1][c] + 0.5f);
}

static void cell(FILE *out, int x, int y, int size, float w)
{
    int rgb[3];
    colour_of(w, rgb);
    fprintf(out, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"#%02x%02x%02x\"/>\n", x, y, size, size,
            (unsigned)rgb[0], (unsigned)rgb[1], (unsigned)rgb[2]);
}

static void large_map(FILE *out, const struct picture *p, int head)
{
    const int n = p->tokens;
    for (int i = 0; i < n; i++) {
        char attributes[128];
        svg_text(out, LEFT - 10, TOP + i * CELL + CELL / 2 + 5, "text-anchor=\"end\"", p->labels[i]);
        const int x = LEFT + i * CELL + CELL / 2;
        snprintf(attributes, sizeof attributes, "transform=\"rotate(-45 %d %d)\"", x, TOP - 10);
        svg_text(out, x, TOP - 10, attributes, p->labels[i]);
        for (int j = 0; j < n; j++)
            cell(out, LEFT + j * CELL + 1, TOP + i * CELL + 1, CELL - 2, picture_weight(p, head, i, j));
    }
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++) {
            char percent[8];
            const float w = picture_weight(p, head, i, j);
            if (w < 0.095f)
                continue;
            snprintf(percent, sizeof percent, "%d", (int)(100.0f * w + 0.5f));
            svg_text(out, LEFT + j * CELL + CELL / 2, TOP + i * CELL + CELL / 2 + 4,
                     w > 0.58f ? "class=\"n\" fill=\"#ffffff\"" : "class=\"n\" fill=\"" SVG_INK "\"", percent);
        }
    }
}

static void small_maps(FILE *out, const struct picture *p, int head, int x0, int y0)
{
    const int size = SMALL_SIDE / p->tokens > 0 ? SMALL_SIDE / p->tokens : 1;
    for (int h = 0; h < p->heads; h++) {
        char label[32];
        const int x = x0 + h % SMALL_COLUMNS * (SMALL_SIDE + SMALL_GAP);
        const int y = y0 + h / SMALL_COLUMNS * (SMALL_SIDE + SMALL_GAP);
        snprintf(label, sizeof label, "head %d", h);
        svg_text(out, x, y - 6, h == head ? "class=\"s\" font-weight=\"bold\" fill=\"" SVG_INK "\"" : "class=\"s\"", label);
        for (int i = 0; i < p->tokens; i++)
            for (int j = 0; j < p->tokens; j++)
                cell(out, x + j * size, y + i * size, size, picture_weight(p, h, i, j));
        if (h == head)
            fprintf(out,
                    "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"none\" stroke=\"" SVG_INK
                    "\" stroke-width=\"2\"/>\n",
                    x - 2, y - 2, size * p->tokens + 4, size * p->tokens + 4);
    }
}

static void legend(FILE *out, int x, int y)
{
    enum { STEPS = 40, WIDTH = 4 };
    for (int i = 0; i < STEPS; i++) {
        int rgb[3];
        colour_of(((float)i + 0.5f) / STEPS, rgb);
        fprintf(out, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"10\" fill=\"#%02x%02x%02x\"/>\n", x + i * WIDTH, y, WIDTH,
                (unsigned)rgb[0], (unsigned)rgb[1], (unsigned)rgb[2]);
    }
    svg_text(out, x - 8, y + 9, "class=\"s\" text-anchor=\"end\"", "weight 0%");
    svg_text(out, x + STEPS * WIDTH + 8, y + 9, "class=\"s\"", "100%");
}

void picture_draw_svg(FILE *out, const struct picture *p, int head)
{
    char subtitle[128];
    const int side = p->tokens * CELL, rows = (p->heads + SMALL_COLUMNS - 1) / SMALL_COLUMNS;
    const int small_height = rows * (SMALL_SIDE + SMALL_GAP), body = side > small_height ? side : small_height;
    const int x_small = LEFT + side + GUTTER;
    const int width = x_small + SMALL_COLUMNS * (SMALL_SIDE + SMALL_GAP) + 10, height = TOP + body + FOOT;
    svg_begin(out, width, height);
    svg_text(out, 24, 34, "font-size=\"20\" font-weight=\"bold\"", p->title);
    snprintf(subtitle, sizeof subtitle, "Head %d. Rows: the word that looks. Columns: the word looked at. Numbers: per cent.",
             head);
    svg_text(out, 24, 56, "class=\"s\"", subtitle);
    large_map(out, p, head);
    small_maps(out, p, head, x_small, TOP);
    legend(out, LEFT + side / 2 - 80, TOP + side + 18);
    svg_text(out, 24, height - 18, "class=\"s\"", p->note);
    svg_end(out);
}
