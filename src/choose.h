/* SPDX-License-Identifier: Apache-2.0
 * From facts and problem to candidates in the order in which they are tried: a pure function. */
#ifndef CLATTN_CHOOSE_H
#define CLATTN_CHOOSE_H

#include "engine.h"

enum { CLA_MAX_CANDIDATES = 100 };

struct candidates {
    struct config list[CLA_MAX_CANDIDATES];
    size_t count;
    struct text declined; /* one line an engine that does not serve, "simt: ..." */
};

/* `engine` and `avoid` as in clattn_plan_options. Errors: INVALID_ARGUMENT (no engine of that name), UNSUPPORTED with each
 * engine's reason. The caller frees `declined` in either case. */
clattn_status cla_choose(const struct facts *facts, const clattn_problem *problem, const char *engine, const char *avoid,
                         struct candidates *candidates, clattn_error *error);

/* The one decision: what a plan with these options would try, in order, and which of it splits its keys (which follows from
 * the problem alone, never from cores or batch mates, so that a sequence's result does not depend on them) or classifies mask
 * tiles first. A pure function of its arguments; it does not read the environment. Plans, clattn_explain and tools for
 * compilers without a device all use it. Errors and `declined` as for cla_choose. */
clattn_status cla_decide(const struct facts *facts, const clattn_problem *problem, const clattn_plan_options *options,
                         struct candidates *candidates, clattn_error *error);

/* The same decision when only these kernels are built: the index of those that cla_decide would try first, and in *chosen
 * their configuration for this problem; `count` if it would try none of them. */
size_t cla_decide_among(const struct facts *facts, const clattn_problem *problem, const clattn_plan_options *options,
                        const struct config *const *built, size_t count, struct config *chosen);

/* Whether both have the same kernel source, which does not depend on the length of a chunk or the number of groups. */
bool cla_same_kernels(const struct config *a, const struct config *b);

/* Sizes of calls to decide for, so that a plan has the kernels that any call within its bounds needs; the bounds come first.
 */
enum { CLA_MAX_CALL_SIZES = 2 * 33 * 9 };
struct call_size {
    int64_t batch, seq_q, seq_kv;
};
size_t cla_call_sizes(const clattn_problem *problem, struct call_size list[CLA_MAX_CALL_SIZES]);

/* Bytes of workspace that suffice for every call within the problem's bounds that uses these kernels. */
size_t cla_most_workspace(const struct facts *facts, const clattn_problem *problem, const clattn_plan_options *options,
                          const struct config *config);

/* Whether another engine must compute the scores that the problem requests. */
bool cla_needs_scores(const clattn_problem *problem, const struct engine *engine);

/* The same as cla_choose for the scores alone, of the problem's head range. */
clattn_status cla_choose_scores(const struct facts *facts, const clattn_problem *problem, const char *avoid,
                                struct candidates *candidates, clattn_error *error);

/* Whether a configuration is within the device's limits, which hold for every engine. `why` as in engine.serves. */
bool cla_config_fits(const struct facts *facts, const struct config *config, char *why, size_t why_size);

/* "block_m 128, block_n 64, work_group 256, local memory 80 KiB" */
void cla_config_print(const struct config *config, struct text *out);

#endif
