/* SPDX-License-Identifier: Apache-2.0
 * What was measured, as a table in the terminal, as JSON and as a picture. */
#ifndef CLATTN_TOOLS_BENCH_REPORT_H
#define CLATTN_TOOLS_BENCH_REPORT_H

#include "bench.h"
#include "peak.h"

struct bench_entry {
    const char *name;  /* of a shape of the default set, such as "SDXL self-attention"; NULL for one that the user named */
    const char *shape; /* as it was named */
    double operations, bytes; /* of one call */
    struct bench_case measured;
};

struct bench_report {
    const char *device; /* session_device_text */
    cl_device_id device_id;
    struct bench_settings settings;
    struct peak peak;
    struct bench_entry *entries;
    size_t count;
    bool interrupted; /* by the user: the entries are those that were finished */
};

/* Numbers derived from a result; 0 where there is none. */
double bench_rate(const struct bench_entry *entry, const struct bench_result *result);      /* operations a second */
double bench_bandwidth(const struct bench_entry *entry, const struct bench_result *result); /* bytes a second */
/* Of the multiply-adds' rate between the same turns. */
double bench_fma_share(const struct bench_entry *entry, const struct bench_result *result);
/* How many times faster than the unfused baseline, measured in turn with it. */
double bench_ratio(const struct bench_entry *entry, const struct bench_result *result);

/* Device and column heads, then each entry as it comes. */
void bench_print_header(const struct bench_report *report);
void bench_print_entry(const struct bench_report *report, const struct bench_entry *entry);

void bench_draw_svg(FILE *out, const struct bench_report *report);

/* Returns CLI_OK or an exit code after the message. */
int bench_write_json(FILE *out, const struct bench_report *report);

#endif
