/* SPDX-License-Identifier: Apache-2.0
 * Explains what a plan would be, without making one. */
#define CLATTN_EXPERIMENTAL
#include "choose.h"
#include "context.h"
#include "plan_options.h"
#include "problem.h"

#include <stdlib.h>

static void list(const struct candidates *candidates, const char *label, struct text *out)
{
    for (size_t i = 0; out && i < candidates->count; i++) {
        cla_text_add(out, "%s %zu: %s, ", label, i + 1, candidates->list[i].engine->name);
        cla_config_print(&candidates->list[i], out);
        cla_text_add(out, "\n");
    }
    if (out && candidates->declined.data)
        cla_text_add(out, "%s", candidates->declined.data);
}

/* Lists what a plan would choose from; `out` may be NULL. */
static clattn_status choose_only(const struct facts *facts, bool ignore_environment, const clattn_problem *problem,
                                 const clattn_plan_options *given, struct text *out, clattn_error *error)
{
    clattn_plan_options options;
    clattn_problem checked;
    clattn_status status;
    struct candidates *candidates = NULL;
    TRY(cla_plan_options_take(given, ignore_environment, &options, error));
    TRY(cla_problem_take(problem, &checked, error));
    candidates = calloc(1, sizeof *candidates);
    if (!candidates)
        return cla_fail(error, CLATTN_OUT_OF_HOST_MEMORY, "", "out of host memory while choosing an engine");
    TRY_GOTO(cla_decide(facts, &checked, &options, candidates, error));
    list(candidates, "candidate", out);
    if (cla_needs_scores(&checked, candidates->list[0].engine)) {
        cla_text_free(&candidates->declined);
        TRY_GOTO(cla_choose_scores(facts, &checked, options.avoid, candidates, error));
        list(candidates, "scores", out);
    }
done:
    cla_text_free(&candidates->declined);
    free(candidates);
    return cla_plan_options_blame(status, ignore_environment, error);
}

clattn_status clattn_supported(clattn_context *context, const clattn_problem *problem, const clattn_plan_options *options,
                               clattn_error *error)
{
    cla_clear(error);
    if (!context)
        return cla_fail(error, CLATTN_INVALID_ARGUMENT, "context", "context is NULL");
    return choose_only(&context->facts, context->ignores_environment, problem, options, NULL, error);
}

clattn_status clattn_explain(const char *facts_text, const clattn_problem *problem, const clattn_plan_options *options,
                             char *text, size_t size, size_t *needed, clattn_error *error)
{
    struct facts facts;
    struct text out = {0};
    cla_clear(error);
    if (!facts_text)
        return cla_fail(error, CLATTN_INVALID_ARGUMENT, "facts", "facts is NULL");
    TRY(cla_facts_parse(facts_text, &facts, error));
    clattn_status status = choose_only(&facts, false, problem, options, &out, error);
    if (status == CLATTN_SUCCESS)
        status = cla_text_out(&out, text, size, needed);
    cla_text_free(&out);
    return status;
}
