/* SPDX-License-Identifier: Apache-2.0
 * Between bench.c and bench_sample.c. */
#ifndef CLATTN_TOOLS_BENCH_SAMPLE_H
#define CLATTN_TOOLS_BENCH_SAMPLE_H

#include "bench.h"

struct samples {
    double *seconds;
    size_t count, capacity;
    double sum;
};

bool samples_add(struct samples *s, double seconds);
/* Sorts them; 0 without a sample. */
double samples_median(struct samples *s);

/* One engine that runs one shape. */
struct lane {
    struct bench_result *result;
    clattn_context *context;
    clattn_plan *plan;
    cl_mem workspace;
    clattn_call call;
    double estimate; /* seconds a call, from the warm-up */
    size_t launches; /* in a group; 0: not decided yet */
    bool host_clock;
    struct samples device, host; /* seconds a call on either clock */
};

/* Functions return CLI_OK or an exit code after the message. */

/* One call, to its end. */
int bench_run_once(struct bench *bench, struct lane *lane);

/* Calls until the warm-up time is over; sets the lane's estimate. */
int bench_warm_up(struct bench *bench, struct lane *lane);

/* About `seconds` of samples, at least one, on the device's clock, and a few on the host's. */
int bench_sample(struct bench *bench, struct lane *lane, double seconds);

/* The numbers of the lane's result that samples give. */
void bench_conclude(struct lane *lane);

void bench_lane_free(struct lane *lane);

#endif
