/* SPDX-License-Identifier: Apache-2.0
 * The terminal's half of picture.h. */
#include "picture.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* Not "[CLS]", ".", "-". */
static bool is_word(const struct picture *p, int token) { return isalnum((unsigned char)p->labels[token][0]) != 0; }

/* The other word with the largest weight in row i; -1: there is none. */
static int strongest_word(const struct picture *p, int head, int i)
{
    int best = -1;
    for (int j = 0; j < p->tokens; j++)
        if (j != i && is_word(p, j) && (best < 0 || picture_weight(p, head, i, j) > picture_weight(p, head, i, best)))
            best = j;
    return best;
}

int picture_telling_head(const struct picture *p)
{
    int best = 0;
    float best_sum = -1.0f;
    for (int head = 0; head < p->heads; head++) {
        float sum = 0;
        for (int i = 0; i < p->tokens; i++) {
            const int j = is_word(p, i) ? strongest_word(p, head, i) : -1;
            sum += j >= 0 ? picture_weight(p, head, i, j) : 0;
        }
        if (sum > best_sum) {
            best_sum = sum;
            best = head;
        }
    }
    return best;
}

static const char *shade(float w) { return w >= 0.5f ? "█" : w >= 0.25f ? "▓" : w >= 0.1f ? "▒" : w >= 0.03f ? "░" : " "; }

static void print_cells(const struct picture *p, int head, int i, bool colour)
{
    printf("%s", colour ? "\033[36m" : "");
    for (int j = 0; j < p->tokens; j++) {
        const char *mark = shade(picture_weight(p, head, i, j));
        printf("%s%s%s%s ", mark, mark, mark, mark);
    }
    printf("%s", colour ? "\033[0m" : "");
}

static int strongest(const struct picture *p, int head, int i)
{
    int best = 0;
    for (int j = 1; j < p->tokens; j++)
        best = picture_weight(p, head, i, j) > picture_weight(p, head, i, best) ? j : best;
    return best;
}

/* Labels over the columns, on two lines so that neighbours do not touch. */
static void print_header(const struct picture *p, const char *bold, const char *plain)
{
    for (int line = 0; line < 2; line++) {
        printf("%8s%s%*s", "", bold, line == 0 ? 0 : 5, "");
        for (int j = line; j < p->tokens; j += 2)
            printf("%-*.9s", j + 2 < p->tokens ? 10 : 0, p->labels[j]);
        printf("%s\n", plain);
    }
}

void picture_print(const struct picture *p, int head, bool colour)
{
    const char *bold = colour ? "\033[1m" : "", *plain = colour ? "\033[0m" : "";
    print_header(p, bold, plain);
    for (int i = 0; i < p->tokens; i++) {
        const int j = strongest(p, head, i);
        printf(" %s%6.6s%s ", bold, p->labels[i], plain);
        print_cells(p, head, i, colour);
        printf("> %.5s\n", p->labels[j]);
    }
    printf("\n%8s%s ░ over 3%%   ▒ 10%%   ▓ 25%%   █ 50%%   > what the row looks at most%s\n", "", colour ? "\033[2m" : "",
           plain);
}
