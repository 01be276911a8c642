/* SPDX-License-Identifier: Apache-2.0
 * Samples of one engine on one shape. */
#include "bench_sample.h"

#include "system.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_LAUNCHES = 4096, MOST_SAMPLES = 64, MOST_HOST_SAMPLES = 5 };

/* The least length of a group of launches, in ticks of the device's clock and in seconds; and the length from which a single
 * launch is long enough to overlap the host's work. */
static const double least_ticks = 100.0, least_seconds = 50e-6, long_launch = 20e-3;

/* -------------------------------------------------------------------------------------------------------------- samples */

bool samples_add(struct samples *s, double seconds)
{
    if (s->count == s->capacity) {
        const size_t capacity = s->capacity ? 2 * s->capacity : 64;
        double *grown = realloc(s->seconds, capacity * sizeof *grown);
        if (grown == NULL)
            return false;
        s->seconds = grown;
        s->capacity = capacity;
    }
    s->seconds[s->count++] = seconds;
    s->sum += seconds;
    return true;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double samples_median(struct samples *s)
{
    if (s->count == 0)
        return 0.0;
    qsort(s->seconds, s->count, sizeof *s->seconds, by_value);
    return 0.5 * (s->seconds[(s->count - 1) / 2] + s->seconds[s->count / 2]);
}

void bench_conclude(struct lane *lane)
{
    struct bench_result *r = lane->result;
    r->median = samples_median(&lane->device);
    r->host = samples_median(&lane->host);
    r->least = lane->device.count > 0 ? lane->device.seconds[0] : 0.0;
    r->samples = lane->device.count;
    r->launches = lane->launches;
    r->host_clock = lane->host_clock;
}

void bench_lane_free(struct lane *lane)
{
    if (lane->workspace != NULL)
        clReleaseMemObject(lane->workspace);
    clattn_plan_destroy(lane->plan);
    clattn_context_save(lane->context); /* where CLATTN_CACHE_DIR names a folder, the next run starts from it */
    clattn_context_destroy(lane->context);
    free(lane->device.seconds);
    free(lane->host.seconds);
    memset(lane, 0, sizeof *lane);
}

/* ------------------------------------------------------------------------------------------------------------- launching */

static int enqueue(struct bench *bench, struct lane *lane, cl_event *event)
{
    clattn_error error;
    clattn_error_init(&error);
    if (clattn_enqueue(lane->plan, bench->session->queue, &lane->call, 0, NULL, event, &error) != CLATTN_SUCCESS)
        return cli_fail_library(bench->session->command, &error);
    return CLI_OK;
}

static int finish(struct bench *bench)
{
    const cl_int code = clFinish(bench->session->queue);
    return code == CL_SUCCESS ? CLI_OK : cli_fail_cl(bench->session->command, "clFinish", code);
}

static int fill(struct bench *bench, cl_event *event)
{
    const cl_uint zero = 0;
    const cl_int code = clEnqueueFillBuffer(bench->session->queue, bench->flush, &zero, sizeof zero, 0,
                                            bench->settings.flush / sizeof zero * sizeof zero, 0, NULL, event);
    return code == CL_SUCCESS ? CLI_OK : cli_fail_cl(bench->session->command, "clEnqueueFillBuffer", code);
}

int bench_run_once(struct bench *bench, struct lane *lane)
{
    const int code = enqueue(bench, lane, NULL);
    return code != CLI_OK ? code : finish(bench);
}

int bench_warm_up(struct bench *bench, struct lane *lane)
{
    const double start = clock_seconds(), enough = bench->settings.warmup;
    for (size_t launches = 1;;) {
        const double before = clock_seconds();
        for (size_t i = 0; i < launches; i++) {
            const int code = enqueue(bench, lane, NULL);
            if (code != CLI_OK)
                return code;
        }
        const int code = finish(bench);
        if (code != CLI_OK)
            return code;
        const double now = clock_seconds();
        lane->estimate = (now - before) / (double)launches;
        if (now - start >= enough)
            return CLI_OK;
        if (now - before < enough / 8 && launches < MOST_LAUNCHES / 8)
            launches *= 2;
    }
}

/* ----------------------------------------------------------------------------------------------------- the device's clock */

/* Groups of launches, and the events whose ends bound them. Without a fill a group lasts from the end of the group before it to
 * its own end; with one, each launch lasts from the end of its fill to its own. */
struct batch {
    size_t groups, launches; /* launches in each group */
    cl_event *events;
    size_t event_count;
};

static void release_events(struct batch *batch)
{
    for (size_t i = 0; i < batch->event_count; i++)
        clReleaseEvent(batch->events[i]);
    free(batch->events);
    batch->events = NULL;
}

/* What the first group is counted from. */
static int enqueue_start(struct bench *bench, struct lane *lane, struct batch *batch)
{
    if (lane->estimate < long_launch)
        return enqueue(bench, lane, &batch->events[batch->event_count++]);
    const cl_int code = clEnqueueMarkerWithWaitList(bench->session->queue, 0, NULL, &batch->events[batch->event_count]);
    if (code != CL_SUCCESS)
        return cli_fail_cl(bench->session->command, "clEnqueueMarkerWithWaitList", code);
    batch->event_count++;
    return CLI_OK;
}

static int enqueue_batch(struct bench *bench, struct lane *lane, struct batch *batch)
{
    const size_t total = batch->groups * batch->launches;
    int code = bench->flush ? CLI_OK : enqueue_start(bench, lane, batch);
    for (size_t i = 0; i < total && code == CLI_OK; i++) {
        const bool ends_group = (i + 1) % batch->launches == 0;
        if (bench->flush) {
            code = fill(bench, &batch->events[batch->event_count]);
            batch->event_count += code == CLI_OK;
        }
        if (code == CLI_OK) {
            const bool asks = bench->flush || ends_group;
            code = enqueue(bench, lane, asks ? &batch->events[batch->event_count] : NULL);
            batch->event_count += code == CLI_OK && asks;
        }
    }
    return code != CLI_OK ? code : finish(bench);
}

static bool end_of(cl_event event, double *seconds)
{
    cl_ulong nanoseconds = 0;
    const bool known =
        clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof nanoseconds, &nanoseconds, NULL) == CL_SUCCESS;
    *seconds = 1e-9 * (double)nanoseconds;
    return known;
}

/* Time of a group, a launch. False: the clock cannot be read, or showed no time. */
static bool group_time(const struct bench *bench, const struct batch *batch, size_t group, double *seconds)
{
    double sum = 0;
    const size_t spans = bench->flush ? batch->launches : 1;
    for (size_t i = 0; i < spans; i++) {
        const size_t first = bench->flush ? 2 * (group * batch->launches + i) : group;
        double from, to;
        if (!end_of(batch->events[first], &from) || !end_of(batch->events[first + 1], &to))
            return false;
        sum += to - from;
    }
    *seconds = sum / (double)batch->launches;
    return sum > 0;
}

/* *enough false: the clock's ticks are too long for so few launches, or it does not tick at all. */
static int sample_device(struct bench *bench, struct lane *lane, size_t groups, size_t launches, bool *enough)
{
    struct batch batch = {.groups = groups, .launches = launches};
    double *times = malloc(groups * sizeof *times);
    batch.events = calloc(2 * groups * launches + 1, sizeof *batch.events);
    int code = times && batch.events ? enqueue_batch(bench, lane, &batch)
                                     : cli_fail(bench->session->command, CLI_FAILED, NULL, "out of memory");
    *enough = code == CLI_OK;
    for (size_t g = 0; g < groups && *enough; g++)
        *enough = group_time(bench, &batch, g, &times[g]);
    for (size_t g = 0; g < groups && *enough; g++)
        if (!samples_add(&lane->device, times[g]))
            code = cli_fail(bench->session->command, CLI_FAILED, NULL, "out of memory");
    release_events(&batch);
    free(times);
    return code;
}

/* ------------------------------------------------------------------------------------------------------- the host's clock */

static int sample_host(struct bench *bench, struct lane *lane, size_t launches, struct samples *into)
{
    int code = CLI_OK;
    if (bench->flush) {
        code = fill(bench, NULL);
        code = code != CLI_OK ? code : finish(bench);
    }
    const double start = clock_seconds();
    for (size_t i = 0; i < launches && code == CLI_OK; i++)
        code = enqueue(bench, lane, NULL);
    code = code != CLI_OK ? code : finish(bench);
    if (code == CLI_OK && !samples_add(into, (clock_seconds() - start) / (double)launches))
        code = cli_fail(bench->session->command, CLI_FAILED, NULL, "out of memory");
    return code;
}

static size_t at_least_one(double count, size_t most) { return count < 1.0 ? 1 : count > (double)most ? most : (size_t)count; }

/* How many launches make a group long enough for the clock. */
static size_t launches_of_group(const struct bench *bench, const struct lane *lane)
{
    const double ticks = least_ticks * bench->resolution, least = ticks > least_seconds ? ticks : least_seconds;
    return at_least_one(least / lane->estimate + 1.0, MOST_LAUNCHES);
}

int bench_sample(struct bench *bench, struct lane *lane, double seconds)
{
    int code = CLI_OK;
    if (lane->launches == 0)
        lane->launches = launches_of_group(bench, lane);
    lane->host_clock = bench->host_clock;
    for (bool enough = false; !enough && !lane->host_clock && code == CLI_OK;) {
        const double groups = seconds / (lane->estimate * (double)lane->launches);
        const size_t most = MOST_LAUNCHES / lane->launches < MOST_SAMPLES ? MOST_LAUNCHES / lane->launches : MOST_SAMPLES;
        code = sample_device(bench, lane, at_least_one(groups, most > 0 ? most : 1), lane->launches, &enough);
        if (!enough && lane->launches < MOST_LAUNCHES)
            lane->launches *= 2;
        else if (!enough)
            lane->host_clock = bench->host_clock = true;
    }
    const size_t calls = at_least_one(seconds / (4 * lane->estimate), MOST_HOST_SAMPLES);
    for (size_t i = 0; i < calls && code == CLI_OK; i++)
        code = sample_host(bench, lane, 1, &lane->host);
    if (lane->host_clock && code == CLI_OK)
        code = sample_host(bench, lane, lane->launches, &lane->device);
    return code;
}
