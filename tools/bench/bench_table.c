/* SPDX-License-Identifier: Apache-2.0
 * The terminal's half of bench_report.h. */
#include "bench_report.h"

#include <stdio.h>
#include <string.h>

double bench_rate(const struct bench_entry *entry, const struct bench_result *r)
{
    return r->median > 0 ? entry->operations / r->median : 0.0;
}

double bench_bandwidth(const struct bench_entry *entry, const struct bench_result *r)
{
    return r->median > 0 ? entry->bytes / r->median : 0.0;
}

double bench_fma_share(const struct bench_entry *entry, const struct bench_result *r)
{
    return entry->measured.fma > 0 ? bench_rate(entry, r) / entry->measured.fma : 0.0;
}

double bench_ratio(const struct bench_entry *entry, const struct bench_result *r)
{
    const struct bench_result *baseline = bench_result_of(&entry->measured, "unfused");
    return baseline && baseline->measured && r->median > 0 ? baseline->median / r->median : 0.0;
}

/* TFLOP/s for fast devices, GFLOP/s for others. */
static double rate_unit(const struct bench_report *report) { return report->peak.fma >= 1e12 ? 1e12 : 1e9; }

static const char *rate_unit_name(const struct bench_report *report)
{
    return rate_unit(report) == 1e12 ? "TFLOP/s" : "GFLOP/s";
}

void bench_print_header(const struct bench_report *report)
{
    const double unit = rate_unit(report);
    printf("device   %s\n", report->device);
    if (report->peak.fma > 0)
        printf("peak     %.*f %s by fp32 multiply-adds, %.1f GB/s reading, %.1f GB/s copying (read + written)\n",
               unit == 1e12 ? 2 : 1, report->peak.fma / unit, rate_unit_name(report), 1e-9 * report->peak.read,
               1e-9 * report->peak.copy);
    printf("\n  %-10s %10s %10s %9s %8s %7s %9s %8s %9s  %s\n", "", "median ms", "min ms", rate_unit_name(report), "GB/s",
           "gain", "of peak", "error", "build ms", "workspace");
    fflush(stdout);
}

/* Digits after the point of a rate. */
static int decimals(double x) { return x < 1.0 ? 3 : x < 10.0 ? 2 : 1; }

/* Four significant digits, or as many as the whole part has. */
static const char *milliseconds(double seconds, char text[32])
{
    const double ms = 1e3 * seconds;
    snprintf(text, 32, "%.*f", ms < 1.0 ? 4 : ms < 100.0 ? 3 : 1, ms);
    return text;
}

static const char *ratio_text(double ratio, char text[32])
{
    snprintf(text, 32, ratio > 0 ? "%.*fx" : "-", ratio < 10.0 ? 2 : ratio < 100.0 ? 1 : 0, ratio);
    return text;
}

/* The limit that it comes nearer to: arithmetic, or reading memory. */
static const char *share_text(const struct bench_report *report, const struct bench_entry *entry, const struct bench_result *r,
                              char text[32])
{
    const double of_fma = bench_fma_share(entry, r);
    const double of_read = report->peak.read > 0 ? bench_bandwidth(entry, r) / report->peak.read : 0.0;
    const double share = of_fma >= of_read ? of_fma : of_read;
    if (share > 0)
        snprintf(text, 32, "%.0f%% %s", 100.0 * share, of_fma >= of_read ? "fma" : "mem");
    else
        snprintf(text, 32, "-");
    return text;
}

static const char *memory_text(size_t bytes, char text[32])
{
    if (bytes == 0)
        snprintf(text, 32, "none");
    else if (bytes < (size_t)10 << 20)
        snprintf(text, 32, "%zu KiB", (bytes + 1023) >> 10);
    else
        snprintf(text, 32, "%zu MiB", bytes >> 20);
    return text;
}

/* A text of several lines as one. */
static void print_line(const char *text)
{
    for (; *text != '\0'; text++)
        if (*text != '\n' || text[1] != '\0')
            putchar(*text == '\n' ? ' ' : *text);
    putchar('\n');
}

static void print_result(const struct bench_report *report, const struct bench_entry *entry, const struct bench_result *r)
{
    char median[32], least[32], ratio[32], share[32], memory[32];
    const double rate = bench_rate(entry, r) / rate_unit(report), bandwidth = 1e-9 * bench_bandwidth(entry, r);
    printf("  %-10s ", r->engine);
    if (!r->measured) {
        printf("not measured: ");
        print_line(r->why);
        return;
    }
    printf("%10s %10s %9.*f %8.*f %7s %9s %8.1e %9.1f  %s%s\n", milliseconds(r->median, median), milliseconds(r->least, least),
           decimals(rate), rate, decimals(bandwidth), bandwidth, ratio_text(bench_ratio(entry, r), ratio),
           share_text(report, entry, r, share), r->max_error, 1e3 * r->build, memory_text(r->workspace_bytes, memory),
           r->host_clock ? "  (host's clock)" : "");
    if (!r->right)
        printf("  %-10s WRONG: %s\n", "", r->why);
}

void bench_print_entry(const struct bench_report *report, const struct bench_entry *entry)
{
    if (entry->name != NULL)
        printf("%s: ", entry->name);
    printf("%s\n", entry->shape);
    for (size_t i = 0; i < entry->measured.count; i++)
        print_result(report, entry, &entry->measured.results[i]);
    fflush(stdout);
}
