/* SPDX-License-Identifier: Apache-2.0
 * Attention in tests: one device for all tests of a program, and cases whose numbers are set by hand. */
#ifndef CLATTN_TESTS_ATTEND_H
#define CLATTN_TESTS_ATTEND_H

#include "support.h"

#include "engine.h"
#include "trial.h"

/* The device under test: what CLATTN_DEVICE names. Opened once a program, so that its tests share built kernels. */
struct bench {
    clattn_context *context;
    cl_command_queue queue;
};
extern struct bench bench;

int bench_open(void **state);
int bench_close(void **state);

/* Another queue on its device; NULL where that has none with these properties. */
cl_command_queue bench_queue_with(cl_command_queue_properties properties);

/* A context with other device facts; closed with bench_context_close. */
void bench_context_open(struct bench *other, const char *overrides);
void bench_context_close(struct bench *other);

/* Runs a statement with `engine` set to the name of each engine of the library. Many decline this device, or most shapes. */
#define FOR_EACH_ENGINE(engine)                                                                                                \
    for (size_t engine##_row = 0; engine##_row < cla_engine_count; engine##_row++)                                             \
        for (const char *engine = cla_engines[engine##_row]->name; engine != NULL; engine = NULL)

/* Whether the engine serves the problem, given as text, on the device under test. */
bool engine_serves(const char *engine, const char *text);

/* Runs a trial given as text (tools/verify/trial.h) and fails the test unless it comes out right. An engine that declines the
 * shape is skipped; false then. */
bool attend_check(const char *engine, const char *text);

/* One attention whose inputs the test fills in. */
struct attend {
    struct trial trial;
    struct trial_data data;
    struct trial_result result;
};

/* Buffers for a trial in text form, inputs 0. Offset 0 in every buffer unless the text says shift=N. */
void attend_begin(struct attend *attend, const char *text);
void attend_end(struct attend *attend);
void attend_fill(const struct trial_tensor *tensor, float x);
/* Runs it and compares with the oracle; false when the engine declines. Outputs then hold the result. */
bool attend_run(struct attend *attend, const char *engine);
/* The same without the oracle's verdict; guards and completeness are not checked either. */
bool attend_launch(struct attend *attend, const char *engine);

/* |got - want| <= tolerance, infinities equal, NaN never. */
void assert_near(double got, double want, double tolerance);

#endif
