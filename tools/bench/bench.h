/* SPDX-License-Identifier: Apache-2.0
 * The measuring core: one shape, several engines in turns on the same buffers, every answer judged before its time counts.
 *
 * Time is measured on the device's own clock, from the end of the preceding command to the end of the call's last one, so that
 * engines of one and of several kernels are measured alike. docs/performance.md explains the method. */
#ifndef CLATTN_TOOLS_BENCH_H
#define CLATTN_TOOLS_BENCH_H

#include "peak.h"
#include "session.h"
#include "trial.h"

enum { BENCH_MAX_ENGINES = 8, BENCH_WHY_SIZE = 512 };

struct bench_settings {
    double warmup, minimum; /* seconds of each engine on each shape: before the first sample, and of samples */
    size_t flush;           /* bytes filled between launches, so that none finds its input in the cache; 0: no fill */
};

struct bench {
    struct session *session; /* its queue has profiling on */
    struct bench_settings settings;
    cl_mem flush;
    double resolution;       /* of the device's clock, seconds */
    bool host_clock;         /* the device has none that can be read */
    const struct peak *peak; /* NULL: not measured, nor between turns */
    void (*progress)(void *user, const char *engine, const char *what);
    void *progress_user;
};

/* One engine on one shape. */
struct bench_result {
    char engine[32];          /* that serves, or the requested one when none does */
    bool measured, right;     /* right: the answer is within the bounds of docs/semantics.md */
    char why[BENCH_WHY_SIZE]; /* why it was not measured, or what is wrong with the answer */
    size_t workspace_bytes;
    double build;             /* seconds: plan (choice, build, kernel objects) and first launch */
    size_t builds;            /* programs compiled for it */
    double max_error, bound;  /* of O, over the checked rows */
    double median, least;     /* seconds a call */
    double host;              /* median on the host's clock, from enqueuing one call to its completion */
    bool host_clock;          /* `median` and `least` were read there too */
    size_t samples, launches; /* launches averaged in each sample */
};

struct bench_case {
    struct trial trial;
    struct bench_result results[BENCH_MAX_ENGINES];
    size_t count;
    double fma; /* operations a second of multiply-adds alone, median of launches between the turns; 0: not measured */
};

/* Puts a queue with profiling into the session. Returns CLI_OK or the exit code after the message; then nothing is to be
 * closed. */
int bench_open(struct bench *bench, struct session *session, const struct bench_settings *settings);
void bench_close(struct bench *bench);

/* Measures engines (NULL in the list: the library's choice; the same engine twice is measured once). An engine that does not
 * serve says so in its result and is no failure. Returns CLI_OK or an exit code after the message. */
int bench_measure(struct bench *bench, const struct trial *trial, const char *const *engines, size_t engine_count,
                  struct bench_case *out);

/* NULL when that engine is not among the results. */
const struct bench_result *bench_result_of(const struct bench_case *measured, const char *engine);

/* --------------------------------------------------------------------- what a shape amounts to, in bench_count.c */

/* Pairs of query and key that a call computes, over batch and query heads, without those that causal and window mask. */
double bench_pairs(const struct trial *trial);
/* Operations of the two products: a multiply-add is two. */
double bench_operations(const struct trial *trial);
/* Q, K, V, O and LSE, each once. */
double bench_bytes(const struct trial *trial);

#endif
