/* SPDX-License-Identifier: Apache-2.0 */
#define CLATTN_EXPERIMENTAL
#include "plan.h"

#include "choose.h"
#include "kernel_text.h"
#include "problem.h"
#include "workspace.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static void release_kernels(clattn_plan *plan)
{
    for (size_t i = 0; i < plan->kernel_count; i++)
        clReleaseKernel(plan->kernels[i].cl);
    plan->kernel_count = 0;
}

/* Gives a kernel whose work-items do not cooperate a smaller group. False: they cooperate, or even one work-item is too many.
 */
static bool shrink_group(struct config *config, const char *kernel, size_t limit)
{
    int *const group = strcmp(kernel, "merge") == 0                            ? &config->merge_group
                       : strcmp(kernel, "classify") == 0                       ? &config->classify_group
                       : strcmp(kernel, "attention") == 0 && config->team == 1 ? &config->work_group
                                                                               : NULL;
    if (!group || limit < 1)
        return false;
    while ((size_t)*group > limit)
        *group /= 2;
    return true;
}

/* The compiled kernel may need more than the device has: then the candidate is dropped and the call does not fail. *limit: the
 * largest group with which the kernel runs, if that is too small; otherwise unchanged. */
static bool kernel_fits(const clattn_plan *plan, const struct plan_kernel *kernel, size_t work_group, size_t *too_small,
                        char *why, size_t why_size)
{
    const struct facts *facts = &plan->context->facts;
    size_t limit = 0;
    cl_ulong local = 0;
    /* In a second stage the assembler fits the registers to the group. The driver's limit does not take that into account (it
     * was 256 for a group of 384 that runs). */
    if (!plan->config.engine->ptx_target &&
        clGetKernelWorkGroupInfo(kernel->cl, plan->context->device, CL_KERNEL_WORK_GROUP_SIZE, sizeof limit, &limit, NULL) ==
            CL_SUCCESS &&
        limit < work_group) {
        *too_small = limit;
        return cla_decline(why, why_size, "kernel %s runs with groups of %zu at most here, not %zu", kernel->name, limit,
                           work_group);
    }
    if (clGetKernelWorkGroupInfo(kernel->cl, plan->context->device, CL_KERNEL_LOCAL_MEM_SIZE, sizeof local, &local, NULL) ==
            CL_SUCCESS &&
        local > facts->local_mem_static)
        return cla_decline(why, why_size, "kernel %s takes %" PRIu64 " bytes of local memory, over %" PRIu64, kernel->name,
                           (uint64_t)local, facts->local_mem_static);
    return true;
}

/* *again: one of them needed a smaller group, which plan->config now has, so the program must be built again. */
static clattn_status create_kernels(clattn_plan *plan, cl_program program, char *why, size_t why_size, bool *fits, bool *again,
                                    clattn_error *error)
{
    struct launch_args args;
    struct launch launches[CLA_MAX_LAUNCHES];
    clattn_call call;
    clattn_call_init(&call, plan);
    cla_launch_args(&plan->problem, &plan->config, &call, &args);
    const size_t count = cla_launch_list(&plan->config, &args, launches);
    *fits = true;
    for (size_t i = 0; i < count && *fits; i++) {
        struct plan_kernel *kernel = &plan->kernels[plan->kernel_count];
        cl_int code = CL_SUCCESS;
        kernel->name = launches[i].kernel;
        kernel->absent = 0;
        kernel->has_args = false;
        kernel->cl = clCreateKernel(program, launches[i].kernel, &code);
        if (code == CL_OUT_OF_HOST_MEMORY)
            return cla_fail_cl(error, code, "clCreateKernel");
        if (code != CL_SUCCESS) {
            *fits = cla_decline(why, why_size, "clCreateKernel(%s): %s", launches[i].kernel, cla_cl_name(code));
            return CLATTN_SUCCESS;
        }
        plan->kernel_count++;
        size_t limit = 0;
        *fits = kernel_fits(plan, kernel, launches[i].work_group, &limit, why, why_size);
        *again = !*fits && shrink_group(&plan->config, kernel->name, limit);
    }
    return CLATTN_SUCCESS;
}

/* An engine that is wrong with one tile is not tried with another. */
static clattn_status check_engine(clattn_plan *plan, cl_program program, bool *right, char *why, size_t why_size,
                                  clattn_error *error)
{
    TRY(plan->judge(plan, program, right, why, why_size, error));
    if (!*right)
        plan->distrusted = plan->config.engine;
    return CLATTN_SUCCESS;
}

/* Builds plan->config. The result is that of try_candidate, or *again as in create_kernels. */
static clattn_status build_config(clattn_plan *plan, char *why, size_t why_size, bool *fits, bool *again, clattn_error *error)
{
    const struct config *const config = &plan->config;
    cl_program program;
    cla_source_free(&plan->source);
    TRY(cla_kernel_source(&plan->context->facts, &plan->problem, config,
                          cla_variable(plan->context->ignores_environment, VARIABLE_SOURCE_DIR), &plan->source, error));
    const clattn_status status =
        cla_program_get(plan->context, &plan->source, plan->options.data, config->engine->ptx_target, &program, error);
    if (status == CLATTN_BUILD_FAILED) {
        *fits = cla_decline(why, why_size, "does not build: %.*s", (int)strcspn(error->message, "\n"), error->message);
        return status;
    }
    if (status == CLATTN_SUCCESS) {
        clattn_status created = create_kernels(plan, program, why, why_size, fits, again, error);
        if (created == CLATTN_SUCCESS && *fits && plan->judge)
            created = check_engine(plan, program, fits, why, why_size, error);
        if (created == CLATTN_SUCCESS && *fits)
            cla_program_save(plan->context, program);
        else
            release_kernels(plan);
        return created;
    }
    return status;
}

/* Builds one candidate, with smaller groups if its kernels need them. *fits false with SUCCESS or BUILD_FAILED: the candidate
 * does not serve, `why` says why, and the next one is tried. `error` is not NULL. */
static clattn_status try_candidate(clattn_plan *plan, const struct config *config, char *why, size_t why_size, bool *fits,
                                   clattn_error *error)
{
    clattn_status status;
    bool again;
    if (config->engine->permit && !config->engine->permit(why, why_size)) {
        *fits = false;
        return CLATTN_SUCCESS;
    }
    plan->config = *config;
    do {
        again = false;
        status = build_config(plan, why, why_size, fits, &again, error);
    } while (again && status == CLATTN_SUCCESS);
    return status;
}

static void describe(clattn_plan *plan, const struct candidates *candidates, const struct text *lost)
{
    /* Only the plan itself lists declined engines. */
    const bool is_variant = plan->of != NULL;
    struct text *out = &plan->description;
    size_t needed = 0;
    char shape[400];
    clattn_problem_print(&plan->problem, shape, sizeof shape, &needed);
    if (is_variant)
        cla_text_add(out, "smaller calls: by %s\ntile: ", plan->config.engine->name);
    else if (plan->config.scores_only)
        cla_text_add(out, "scores: by %s\ntile: ", plan->config.engine->name);
    else
        cla_text_add(out, "problem: %s\ndevice: %s, %s\nengine: %s\ntile: ", shape, plan->context->facts.device_name,
                     plan->context->facts.driver_version, plan->config.engine->name);
    cla_config_print(&plan->config, out);
    cla_text_add(out, "\nworkspace: %zu bytes\n", plan->workspace);
    for (size_t i = 0; i < plan->kernel_count; i++) {
        cl_ulong private_bytes = 0, local_bytes = 0;
        clGetKernelWorkGroupInfo(plan->kernels[i].cl, plan->context->device, CL_KERNEL_PRIVATE_MEM_SIZE, sizeof private_bytes,
                                 &private_bytes, NULL);
        clGetKernelWorkGroupInfo(plan->kernels[i].cl, plan->context->device, CL_KERNEL_LOCAL_MEM_SIZE, sizeof local_bytes,
                                 &local_bytes, NULL);
        cla_text_add(out, "kernel %s: %" PRIu64 " bytes of local, %" PRIu64 " of private memory, as built\n",
                     plan->kernels[i].name, (uint64_t)local_bytes, (uint64_t)private_bytes);
    }
    if (lost->data)
        cla_text_add(out, "tried before:\n%s", lost->data);
    if (candidates->declined.data && !is_variant)
        cla_text_add(out, "declined:\n%s", candidates->declined.data);
}

/* After two compile failures of an engine, its remaining tiles are skipped. */
enum { MAX_REFUSALS = 2 };

/* The first candidate that builds and fits. */
static clattn_status settle(clattn_plan *plan, const struct candidates *candidates, clattn_error *given)
{
    clattn_error own, *const error = &own; /* the caller's may be NULL, or too short for the message */
    struct text lost = {0};
    clattn_status status = CLATTN_SUCCESS;
    bool fits = false;
    char why[256] = "";
    const struct engine *refused = NULL;
    int refusals = 0;
    clattn_error_init(error);
    for (size_t i = 0; i < candidates->count && !fits; i++) {
        const struct engine *engine = candidates->list[i].engine;
        if (engine == plan->distrusted || (engine == refused && refusals >= MAX_REFUSALS))
            continue;
        status = try_candidate(plan, &candidates->list[i], why, sizeof why, &fits, error);
        if (status == CLATTN_BUILD_FAILED) {
            refusals = engine == refused ? refusals + 1 : 1;
            refused = engine;
            status = CLATTN_SUCCESS;
        }
        if (status != CLATTN_SUCCESS)
            break;
        if (!fits) {
            cla_text_add(&lost, "%s (", candidates->list[i].engine->name);
            cla_config_print(&candidates->list[i], &lost);
            cla_text_add(&lost, "): %s\n", why);
        }
    }
    if (status == CLATTN_SUCCESS && fits) {
        plan->workspace = cla_workspace_bytes(&plan->problem, &plan->config);
        describe(plan, candidates, &lost);
    } else if (status == CLATTN_SUCCESS) {
        /* If nothing was built, *error already has the log of the last failure. */
        status =
            error->status == CLATTN_BUILD_FAILED
                ? CLATTN_BUILD_FAILED
                : cla_fail(error, CLATTN_BUILD_FAILED, "", "no candidate runs on this device:\n%s", lost.data ? lost.data : "");
    }
    cla_text_free(&lost);
    if (status == CLATTN_SUCCESS)
        cla_clear(given);
    else
        cla_hand_on(error, given);
    return status;
}

static clattn_status no_memory(clattn_error *error)
{
    return cla_fail(error, CLATTN_OUT_OF_HOST_MEMORY, "", "out of host memory while creating a plan");
}

/* A plan without kernels; NULL: out of memory. */
static clattn_plan *allocate(clattn_context *context, cla_judge_fn judge)
{
    clattn_plan *plan = calloc(1, sizeof *plan);
    if (!plan || !cla_lock_init(&plan->lock)) {
        free(plan);
        return NULL;
    }
    plan->context = context;
    plan->judge = judge;
    cla_program_options(&context->facts, cla_variable(context->ignores_environment, VARIABLE_BUILD_OPTIONS), &plan->options);
    if (plan->options.failed) {
        clattn_plan_destroy(plan);
        return NULL;
    }
    return plan;
}

/* Scores for an engine that does not compute them: a plan within the plan. Its launches come first, so both share the
 * workspace. */
static clattn_status add_scores(clattn_plan *plan, const char *avoid, struct candidates *candidates, clattn_error *error)
{
    cla_text_free(&candidates->declined);
    plan->scores = allocate(plan->context, plan->judge);
    if (!plan->scores)
        return no_memory(error);
    plan->scores->problem = plan->problem;
    TRY(cla_choose_scores(&plan->context->facts, &plan->problem, avoid, candidates, error));
    TRY(settle(plan->scores, candidates, error));
    if (plan->workspace < plan->scores->workspace)
        plan->workspace = plan->scores->workspace;
    cla_text_add(&plan->description, "%s", plan->scores->description.data ? plan->scores->description.data : "");
    return CLATTN_SUCCESS;
}

static bool is_among(const struct config *list, size_t count, const struct config *config)
{
    for (size_t i = 0; i < count; i++)
        if (cla_same_kernels(&list[i], config))
            return true;
    return false;
}

/* Another engine or tile for smaller calls: the first candidate that builds, unless the plan has it already. If none builds,
 * that is not an error: the plan itself serves all calls. */
static clattn_status add_variant(clattn_plan *plan, const struct candidates *candidates, clattn_error *error)
{
    struct config have[1 + CLA_MAX_VARIANTS] = {plan->config};
    clattn_plan *variant = allocate(plan->context, plan->judge);
    if (!variant)
        return no_memory(error);
    variant->problem = plan->problem;
    variant->of = plan;
    for (size_t i = 0; i < plan->variant_count; i++)
        have[1 + i] = plan->variants[i]->config;
    const clattn_status status = settle(variant, candidates, error);
    if (status == CLATTN_SUCCESS && !is_among(have, 1 + plan->variant_count, &variant->config)) {
        cla_text_add(&plan->description, "%s", variant->description.data ? variant->description.data : "");
        plan->variants[plan->variant_count++] = variant;
        return CLATTN_SUCCESS;
    }
    clattn_plan_destroy(variant);
    if (status != CLATTN_SUCCESS && status != CLATTN_BUILD_FAILED)
        return status;
    cla_clear(error); /* the plan itself serves */
    return CLATTN_SUCCESS;
}

/* The first choices of calls below the bounds. */
static clattn_status add_variants(clattn_plan *plan, const clattn_plan_options *options, struct candidates *candidates,
                                  clattn_error *error)
{
    struct call_size sizes[CLA_MAX_CALL_SIZES];
    struct config wanted[2 * CLA_MAX_VARIANTS] = {plan->config};
    const size_t count = cla_call_sizes(&plan->problem, sizes);
    size_t wanted_count = 1;
    for (size_t i = 0; i < count && plan->variant_count < CLA_MAX_VARIANTS && wanted_count < (size_t)2 * CLA_MAX_VARIANTS;
         i++) {
        clattn_problem sized = plan->problem;
        sized.batch = sizes[i].batch, sized.seq_q = sizes[i].seq_q, sized.seq_kv = sizes[i].seq_kv;
        cla_text_free(&candidates->declined);
        const clattn_status status = cla_decide(&plan->context->facts, &sized, options, candidates, NULL);
        if (status == CLATTN_UNSUPPORTED || (status == CLATTN_SUCCESS && is_among(wanted, wanted_count, &candidates->list[0])))
            continue;
        if (status != CLATTN_SUCCESS)
            return no_memory(error);
        wanted[wanted_count++] = candidates->list[0];
        TRY(add_variant(plan, candidates, error));
    }
    return CLATTN_SUCCESS;
}

static clattn_plan_options options_of(const clattn_plan *plan)
{
    clattn_plan_options options;
    clattn_plan_options_init(&options);
    options.engine = plan->asked ? plan->asked->name : NULL;
    options.chunk = plan->chunk;
    options.max_launch_ms = plan->asked_launch_ms;
    return options;
}

/* Workspace that suffices for every call. */
static void find_workspace(clattn_plan *plan)
{
    const clattn_plan_options options = options_of(plan);
    for (size_t i = 0; i <= plan->variant_count; i++) {
        const clattn_plan *built = i ? plan->variants[i - 1] : plan;
        const size_t bytes = cla_most_workspace(&plan->context->facts, &plan->problem, &options, &built->config);
        if (plan->workspace < bytes)
            plan->workspace = bytes;
    }
}

static bool recall(clattn_plan *plan, struct choice *choice)
{
    bool found = false;
    cla_lock_take(&plan->lock);
    for (size_t i = 0; i < CLA_RECENT_CHOICES && !found; i++) {
        const struct choice *known = &plan->recent[i];
        found =
            known->plan && known->batch == choice->batch && known->seq_q == choice->seq_q && known->seq_kv == choice->seq_kv;
        if (found)
            *choice = *known;
    }
    cla_lock_give(&plan->lock);
    return found;
}

static void remember(clattn_plan *plan, const struct choice *choice)
{
    cla_lock_take(&plan->lock);
    plan->recent[plan->next_recent++ % CLA_RECENT_CHOICES] = *choice;
    cla_lock_give(&plan->lock);
}

/* The choice that a plan for this problem would make among the kernels of this plan. */
static void decide(clattn_plan *plan, const clattn_problem *sized, struct choice *choice)
{
    const clattn_plan_options options = options_of(plan);
    const struct config *built[1 + CLA_MAX_VARIANTS] = {&plan->config};
    for (size_t i = 0; i < plan->variant_count; i++)
        built[1 + i] = &plan->variants[i]->config;
    const size_t count = 1 + plan->variant_count;
    const size_t at = cla_decide_among(&plan->context->facts, sized, &options, built, count, &choice->config);
    if (at >= 1 && at < count)
        choice->plan = plan->variants[at - 1];
}

struct choice cla_plan_choose(clattn_plan *plan, int64_t batch, int64_t seq_q, int64_t seq_kv)
{
    struct choice choice = {batch, seq_q, seq_kv, plan, plan->config, 0};
    clattn_problem sized = plan->problem;
    if (plan->decides && recall(plan, &choice))
        return choice;
    sized.batch = batch, sized.seq_q = seq_q, sized.seq_kv = seq_kv;
    if (plan->decides)
        decide(plan, &sized, &choice);
    choice.workspace = cla_workspace_bytes(&sized, &choice.config);
    const size_t scores = plan->scores ? cla_workspace_bytes(&sized, &plan->scores->config) : 0;
    if (choice.workspace < scores)
        choice.workspace = scores;
    if (plan->decides)
        remember(plan, &choice);
    return choice;
}

clattn_status cla_plan_make(clattn_context *context, const clattn_problem *problem, const clattn_plan_options *options,
                            cla_judge_fn judge, clattn_plan **out, clattn_error *error)
{
    clattn_status status;
    struct candidates *candidates = NULL;
    clattn_plan *plan = allocate(context, judge);
    if (!plan)
        return no_memory(error);
    TRY_GOTO(cla_problem_take(problem, &plan->problem, error));
    candidates = calloc(1, sizeof *candidates);
    if (!candidates)
        TRY_GOTO(no_memory(error));
    TRY_GOTO(cla_decide(&context->facts, &plan->problem, options, candidates, error));
    TRY_GOTO(settle(plan, candidates, error));
    if (cla_needs_scores(&plan->problem, plan->config.engine))
        TRY_GOTO(add_scores(plan, options->avoid, candidates, error));
    plan->asked = options->engine && *options->engine ? cla_engine_find(options->engine) : NULL;
    plan->chunk = options->chunk;
    plan->asked_launch_ms = options->max_launch_ms;
    const bool empty = cla_problem_is_empty(plan->problem.batch, plan->problem.heads_q, plan->problem.seq_q);
    if (!options->at_bounds && !empty && !cla_packs_no_row(&plan->problem)) {
        TRY_GOTO(add_variants(plan, options, candidates, error));
        plan->decides = true;
        find_workspace(plan);
    }
    *out = plan;
done:
    if (candidates)
        cla_text_free(&candidates->declined);
    free(candidates);
    if (status != CLATTN_SUCCESS)
        clattn_plan_destroy(plan);
    return status;
}

void clattn_plan_destroy(clattn_plan *plan)
{
    if (!plan)
        return;
    clattn_plan_destroy(plan->scores);
    for (size_t i = 0; i < plan->variant_count; i++)
        clattn_plan_destroy(plan->variants[i]);
    release_kernels(plan);
    cla_scratch_release(&plan->scratch);
    cla_source_free(&plan->source);
    cla_text_free(&plan->options);
    cla_text_free(&plan->description);
    cla_lock_destroy(&plan->lock);
    free(plan);
}

clattn_status clattn_plan_describe(const clattn_plan *plan, char *text, size_t size, size_t *needed)
{
    return plan ? cla_text_out(&plan->description, text, size, needed) : CLATTN_INVALID_ARGUMENT;
}

/* Lines are numbered as they were compiled. */
clattn_status clattn_plan_source(const clattn_plan *plan, char *out, size_t size, size_t *needed)
{
    struct text text = {0};
    if (!plan)
        return CLATTN_INVALID_ARGUMENT;
    cla_text_add(&text, "// build options: %s\n#line 1\n", plan->options.length ? plan->options.data : "(none)");
    if (plan->source.text.data)
        cla_text_append(&text, plan->source.text.data, plan->source.text.length);
    const clattn_status status = cla_text_out(&text, out, size, needed);
    cla_text_free(&text);
    return status;
}

const char *clattn_plan_engine(const clattn_plan *plan) { return plan ? plan->config.engine->name : ""; }
size_t clattn_workspace_size(const clattn_plan *plan) { return plan ? plan->workspace : 0; }
