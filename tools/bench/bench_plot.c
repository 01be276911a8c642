/* SPDX-License-Identifier: Apache-2.0
 * The picture of bench_report.h: a bar an engine, shape by shape. */
#define CLATTN_EXPERIMENTAL
#include "bench_report.h"

#include "svg.h"

#include <string.h>

enum {
    WIDTH = 900,
    LEFT = 90, /* room for the names of engines */
    RIGHT = 230,
    TOP = 92,
    TITLE = 22, /* of a shape */
    BAR = 16,
    STEP = 20,
    GAP = 12,
    FOOT = 30,
};

static const char *const colours[] = {"#1e60a5", "#62a1d6", "#2a9d8f", "#e0a030", "#8d6cab", "#c65b4a", "#5f6f52", "#9a6b4f"};

/* The unfused baseline is grey; the other engines have a colour each, in the order in which the library tries them. */
static const char *colour_of(const char *engine)
{
    size_t index = 0;
    if (strcmp(engine, "unfused") == 0)
        return "#b4bdc6";
    for (const char *name; (name = clattn_engine_name(index)) != NULL && strcmp(name, engine) != 0;)
        index++;
    return colours[index % (sizeof colours / sizeof *colours)];
}

/* How many times faster than the baseline, where every shape has one; otherwise operations a second. */
static bool all_have_baseline(const struct bench_report *report)
{
    for (size_t i = 0; i < report->count; i++) {
        const struct bench_result *baseline = bench_result_of(&report->entries[i].measured, "unfused");
        if (baseline == NULL || !baseline->measured)
            return false;
    }
    return true;
}

static double value_of(const struct bench_entry *entry, const struct bench_result *r, bool ratios)
{
    if (!r->measured)
        return 0.0;
    return ratios ? bench_ratio(entry, r) : bench_rate(entry, r);
}

static double largest_value(const struct bench_report *report, bool ratios)
{
    double largest = 0;
    for (size_t i = 0; i < report->count; i++) {
        const struct bench_entry *entry = &report->entries[i];
        for (size_t j = 0; j < entry->measured.count; j++) {
            const double value = value_of(entry, &entry->measured.results[j], ratios);
            largest = value > largest ? value : largest;
        }
    }
    return largest > 0 ? largest : 1.0;
}

static void draw_bar(FILE *out, int y, const struct bench_report *report, const struct bench_entry *entry,
                     const struct bench_result *r, bool ratios, double largest)
{
    const int length = (int)((WIDTH - LEFT - RIGHT) * value_of(entry, r, ratios) / largest + 0.5);
    const double rate = bench_rate(entry, r), unit = report->peak.fma >= 1e12 ? 1e12 : 1e9;
    char label[128];
    int used = 0;
    svg_text(out, LEFT - 8, y + 12, "class=\"s\" text-anchor=\"end\"", r->engine);
    if (!r->measured) {
        svg_text(out, LEFT + 6, y + 12, "class=\"s\"", "not measured");
        return;
    }
    svg_rect(out, LEFT, y, length > 0 ? length : 1, BAR, colour_of(r->engine));
    if (ratios)
        used = snprintf(label, sizeof label, "%.2fx, ", bench_ratio(entry, r));
    snprintf(label + used, sizeof label - (size_t)used, "%.4g ms, %.*f %s", 1e3 * r->median, rate < 10 * unit ? 2 : 0,
             rate / unit, unit == 1e12 ? "TFLOP/s" : "GFLOP/s");
    svg_text(out, LEFT + length + 8, y + 12, "class=\"s\"", label);
}

static int draw_entry(FILE *out, int y, const struct bench_report *report, const struct bench_entry *entry, bool ratios,
                      double largest)
{
    char title[640];
    snprintf(title, sizeof title, "%s%s%s", entry->name ? entry->name : "", entry->name ? ": " : "", entry->shape);
    svg_text(out, LEFT, y + 14, "font-size=\"13\"", title);
    y += TITLE;
    for (size_t i = 0; i < entry->measured.count; i++, y += STEP)
        draw_bar(out, y, report, entry, &entry->measured.results[i], ratios, largest);
    return y + GAP;
}

void bench_draw_svg(FILE *out, const struct bench_report *report)
{
    const bool ratios = all_have_baseline(report);
    const double largest = largest_value(report, ratios);
    int height = TOP + FOOT, y = TOP;
    for (size_t i = 0; i < report->count; i++)
        height += TITLE + GAP + STEP * (int)report->entries[i].measured.count;
    svg_begin(out, WIDTH, height);
    svg_text(out, 24, 34, "font-size=\"20\" font-weight=\"bold\"", "clattn bench");
    svg_text(out, 24, 56, "class=\"s\"", report->device);
    svg_text(out, 24, 74, "class=\"s\"",
             ratios ? "Length: how many times faster than the unfused baseline. Longer is better."
                    : "Length: operations a second. Longer is better.");
    for (size_t i = 0; i < report->count; i++)
        y = draw_entry(out, y, report, &report->entries[i], ratios, largest);
    svg_end(out);
}
