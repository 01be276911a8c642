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

/* The one decision: what a plan with these options would try, in order, with what is split, looked through or resident settled.
 * A pure function of its arguments; the environment takes no part. Plans, clattn_explain and tools for compilers without a
 * device all come here. Errors and `declined` as for cla_choose. */
clattn_status cla_decide(const struct facts *facts, const clattn_problem *problem, const clattn_plan_options *options,
                         struct candidates *candidates, clattn_error *error);

/* Whether this engine leaves the scores that the problem asks for to another. */
bool cla_needs_scores(const clattn_problem *problem, const struct engine *engine);

/* The same as cla_choose for the scores alone, of the problem's head range. */
clattn_status cla_choose_scores(const struct facts *facts, const clattn_problem *problem, const char *avoid,
                                struct candidates *candidates, clattn_error *error);

/* Decides which candidates split their keys; `chunk` as in clattn_plan_options. Follows from the problem alone, never from
 * cores or batch mates, so that a sequence's result does not depend on them. */
void cla_choose_split(const struct facts *facts, const clattn_problem *problem, int64_t chunk, struct candidates *candidates);

/* The rules that every configuration obeys, whatever its engine says: limits of the facts. `why` as in engine.serves. */
bool cla_config_fits(const struct facts *facts, const struct config *config, char *why, size_t why_size);

/* Decides which candidates look through explicit masks before they start. */
void cla_choose_prepass(const struct facts *facts, const clattn_problem *problem, struct candidates *candidates);

/* "block_m 128, block_n 64, work_group 256, local memory 80 KiB" */
void cla_config_print(const struct config *config, struct text *out);

#endif
