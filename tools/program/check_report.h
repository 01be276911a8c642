/* SPDX-License-Identifier: Apache-2.0
 * What `clattn check` found, as JSON. */
#ifndef CLATTN_TOOLS_CHECK_REPORT_H
#define CLATTN_TOOLS_CHECK_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* The error that is nearest to its bound, or furthest past it. */
struct worst {
    const char *what;
    double error, share;
};

struct tally {
    size_t passed, failed, declined;
    struct worst worst;
};

/* With NULL, for a report that is not requested, all functions do nothing. */
struct check_report;

/* NULL: memory is out. */
struct check_report *check_report_create(const char *device, const char *trials, uint64_t seed);
void check_report_destroy(struct check_report *report);

/* What follows belongs to this engine. */
void check_report_engine(struct check_report *report, const char *engine);
void check_report_group(struct check_report *report, const char *group, const struct tally *tally, double seconds);
void check_report_failure(struct check_report *report, const char *shape, const char *message);
/* Why the engine declined the first shape of those that it does not serve. */
void check_report_declined(struct check_report *report, size_t count, const char *why);

/* The totals, and all of it into a file. False: memory is out. */
bool check_report_write(struct check_report *report, const struct tally *total, size_t builds, double seconds, bool interrupted,
                        FILE *out);

#endif
