/* SPDX-License-Identifier: Apache-2.0
 * A problem, what was chosen for it, and its kernels, ready to launch. Immutable except for kernel arguments, recent choices
 * and the workspace of calls without one, which a lock guards. */
#ifndef CLATTN_PLAN_H
#define CLATTN_PLAN_H

#include "context.h"
#include "engine.h"
#include "launch.h"
#include "scratch.h"

/* Checks whether a plan just built computes correctly. *right false with SUCCESS: `why` says what was wrong. */
typedef clattn_status (*cla_judge_fn)(clattn_plan *plan, cl_program program, bool *right, char *why, size_t why_size,
                                      clattn_error *error);

/* A kernel, and a cache of the arguments last set on it. */
struct plan_kernel {
    const char *name;
    cl_kernel cl;
    uint32_t absent;         /* one bit a buffer argument: it is NULL */
    bool has_args;           /* the last argument is `args` */
    struct launch_args args; /* compared byte by byte: it has no padding */
};

/* The kernels and configuration that serve a call. */
struct choice {
    int64_t batch, seq_q, seq_kv; /* of the call: the choice depends on nothing else of it */
    struct clattn_plan *plan;     /* whose kernels are used: the plan itself or one of its variants */
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
    /* Plans of the same problem for calls below its bounds that another engine or tile serves better. A call uses what a plan
     * made for its sizes would use. */
    const struct clattn_plan *of; /* the plan that this is a variant of, or NULL */
    struct clattn_plan *variants[CLA_MAX_VARIANTS];
    size_t variant_count;
    bool decides;                             /* each call chooses; otherwise config serves all calls */
    const struct engine *asked;               /* the only engine that the caller allows, or NULL */
    int64_t chunk;                            /* from the plan's options */
    double asked_launch_ms;                   /* the same */
    struct choice recent[CLA_RECENT_CHOICES]; /* the layers of a model repeat the same call; plan NULL: empty */
    unsigned next_recent;
    double max_launch_ms;            /* longer work is cut into slices; 0: no slices */
    double rate;                     /* multiply-adds in a millisecond, if work is cut into slices */
    struct clattn_plan *scores;      /* computes the scores that the engine does not; NULL: not needed */
    cla_judge_fn judge;              /* NULL: no check */
    const struct engine *distrusted; /* while candidates are tried: the engine that failed the self-check */
    struct cla_lock lock; /* kernel arguments, scratch, choices: clSetKernelArg on a shared kernel is not thread-safe */
};

/* Makes a plan of the first candidate that builds, fits and passes the check, without slices. Only the options decide: the
 * environment is not read. Errors: as clattn_plan_create. */
clattn_status cla_plan_make(clattn_context *context, const clattn_problem *problem, const clattn_plan_options *options,
                            cla_judge_fn judge, clattn_plan **out, clattn_error *error);

/* Chooses what serves a call of these sizes, which are within the plan's bounds. Depends on plan and sizes alone. */
struct choice cla_plan_choose(clattn_plan *plan, int64_t batch, int64_t seq_q, int64_t seq_kv);

#endif
