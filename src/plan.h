/* SPDX-License-Identifier: Apache-2.0
 * A problem, what was chosen for it, and its kernels, ready to launch. Immutable but for the kernels' arguments and the
 * workspace of calls that bring none, which a lock guards. */
#ifndef CLATTN_PLAN_H
#define CLATTN_PLAN_H

#include "context.h"
#include "engine.h"
#include "launch.h"
#include "scratch.h"

/* Whether what was just built may be believed. *right false with SUCCESS: `why` says what was wrong. */
typedef clattn_status (*cla_judge_fn)(clattn_plan *plan, cl_program program, bool *right, char *why, size_t why_size,
                                      clattn_error *error);

/* A kernel, and what its arguments are by now, as far as a call need not set them again. */
struct plan_kernel {
    const char *name;
    cl_kernel cl;
    uint32_t absent;         /* a bit a buffer argument: it is NULL */
    bool has_args;           /* the last argument is `args` */
    struct launch_args args; /* compared byte by byte: it has no padding */
};

struct clattn_plan {
    clattn_context *context;
    clattn_problem problem;
    struct config config;
    struct source source;
    struct text options;
    struct text description;
    struct plan_kernel kernels[CLA_MAX_LAUNCHES];
    size_t kernel_count;
    size_t workspace;
    struct scratch scratch;
    double max_launch_ms;            /* longer work is cut into slices; 0: it is not */
    double rate;                     /* multiply-adds in a millisecond, where it is */
    struct clattn_plan *scores;      /* gives the scores that the engine has not; NULL: there are none to add */
    cla_judge_fn judge;              /* NULL: whatever builds is believed */
    const struct engine *distrusted; /* while candidates are tried: one that the self-check found wrong */
    struct cla_lock lock;            /* kernel arguments, scratch: clSetKernelArg on a shared kernel is not thread-safe */
};

/* The first candidate that builds, fits and is believed; cut into no slices. What the options say is what is made: the
 * environment has no word here. Errors: as clattn_plan_create. */
clattn_status cla_plan_make(clattn_context *context, const clattn_problem *problem, const clattn_plan_options *options,
                            cla_judge_fn judge, clattn_plan **out, clattn_error *error);

#endif
