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

/* What serves a call. */
struct choice {
    int64_t batch, seq_q, seq_kv; /* of the call: nothing else of it matters */
    struct clattn_plan *plan;     /* whose kernels: the plan itself or one of its variants */
    struct config config;         /* of these kernels, for this call */
    size_t workspace;             /* bytes that the call needs */
};

enum { CLA_MAX_VARIANTS = 16, CLA_RECENT_CHOICES = 4 };

struct clattn_plan {
    clattn_context *context;
    clattn_problem problem;
    struct config config; /* for a call at the problem's bounds */
    struct source source;
    struct text options;
    struct text description;
    struct plan_kernel kernels[CLA_MAX_LAUNCHES];
    size_t kernel_count;
    size_t workspace; /* of any call within the bounds */
    struct scratch scratch;
    /* Plans of the same problem for calls below its bounds that another engine or tile serves better. A call is decided for as
     * a plan for it would be. */
    const struct clattn_plan *of; /* the plan that this is a variant of, or NULL */
    struct clattn_plan *variants[CLA_MAX_VARIANTS];
    size_t variant_count;
    bool decides;                             /* calls are; else config serves all of them */
    const struct engine *asked;               /* the only engine that the caller wants, or NULL */
    int64_t chunk;                            /* of the plan's options */
    double asked_launch_ms;                   /* the same */
    struct choice recent[CLA_RECENT_CHOICES]; /* layers of a model make the same call in turn; plan NULL: none yet */
    unsigned next_recent;
    double max_launch_ms;            /* longer work is cut into slices; 0: it is not */
    double rate;                     /* multiply-adds in a millisecond, where it is */
    struct clattn_plan *scores;      /* gives the scores that the engine has not; NULL: there are none to add */
    cla_judge_fn judge;              /* NULL: whatever builds is believed */
    const struct engine *distrusted; /* while candidates are tried: one that the self-check found wrong */
    struct cla_lock lock; /* kernel arguments, scratch, choices: clSetKernelArg on a shared kernel is not thread-safe */
};

/* The first candidate that builds, fits and is believed; cut into no slices. What the options say is what is made: the
 * environment has no word here. Errors: as clattn_plan_create. */
clattn_status cla_plan_make(clattn_context *context, const clattn_problem *problem, const clattn_plan_options *options,
                            cla_judge_fn judge, clattn_plan **out, clattn_error *error);

/* What serves a call of these sizes, which lie within the plan's bounds. Follows from plan and sizes alone. */
struct choice cla_plan_choose(clattn_plan *plan, int64_t batch, int64_t seq_q, int64_t seq_kv);

#endif
