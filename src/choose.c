/* SPDX-License-Identifier: Apache-2.0 */
#include "choose.h"

#include "arithmetic.h"
#include "problem.h"
#include "workspace.h"

#include <inttypes.h>
#include <string.h>

bool cla_config_fits(const struct facts *facts, const struct config *config, char *why, size_t why_size)
{
    if ((uint64_t)config->work_group > facts->max_work_group || (uint64_t)config->work_group > facts->max_work_item_0)
        return cla_decline(why, why_size, "work-group %d over the device's limit", config->work_group);
    if (config->local_bytes > facts->local_mem_static)
        return cla_decline(why, why_size, "%zu bytes of local memory over the device's %" PRIu64, config->local_bytes,
                           facts->local_mem_static);
    return true;
}

void cla_config_print(const struct config *config, struct text *out)
{
    cla_text_add(out, "block_m %d, block_n %d, work_group %d, local memory %zu bytes", config->block_m, config->block_n,
                 config->work_group, config->local_bytes);
}

/* Whether `name` is a whole item of a list separated by commas or blanks. */
static bool is_listed(const char *list, const char *name)
{
    const size_t length = strlen(name);
    while (list && *list) {
        list += strspn(list, ", ");
        if (strcspn(list, ", ") == length && length && memcmp(list, name, length) == 0)
            return true;
        list += strcspn(list, ", ");
    }
    return false;
}

static void add_configs(const struct engine *engine, const struct facts *facts, const clattn_problem *problem,
                        struct candidates *out)
{
    struct config list[CLA_MAX_CONFIGS];
    const size_t count = engine->configs(facts, problem, list);
    char why[200];
    size_t kept = 0;
    for (size_t i = 0; i < count && out->count < CLA_MAX_CANDIDATES; i++)
        if (cla_config_fits(facts, &list[i], why, sizeof why)) {
            out->list[out->count++] = list[i];
            kept++;
        }
    if (kept == 0)
        cla_text_add(&out->declined, "%s: %s\n", engine->name, count ? why : "no tile fits this device");
}

static clattn_status verdict(const struct candidates *candidates, const char *what, clattn_error *error)
{
    if (candidates->declined.failed)
        return cla_fail(error, CLATTN_OUT_OF_HOST_MEMORY, "", "out of host memory while choosing an engine");
    if (candidates->count == 0)
        return cla_fail(error, CLATTN_UNSUPPORTED, "", "no engine serves %s on this device:\n%s", what,
                        candidates->declined.data ? candidates->declined.data : "");
    return CLATTN_SUCCESS;
}

clattn_status cla_choose(const struct facts *facts, const clattn_problem *problem, const char *engine, const char *avoid,
                         struct candidates *candidates, clattn_error *error)
{
    char why[200];
    candidates->count = 0;
    memset(&candidates->declined, 0, sizeof candidates->declined);
    if (engine && !*engine)
        engine = NULL;
    if (engine && !cla_engine_find(engine))
        return cla_fail(error, CLATTN_INVALID_ARGUMENT, "options.engine", "there is no engine \"%s\"; clattn info lists them",
                        engine);
    for (size_t i = 0; i < cla_engine_count; i++) {
        const struct engine *e = cla_engines[i];
        if (engine ? strcmp(engine, e->name) != 0 : e->on_request)
            continue;
        if (!engine && is_listed(avoid, e->name))
            cla_text_add(&candidates->declined, "%s: avoided on request\n", e->name);
        else if (!e->serves(facts, problem, why, sizeof why))
            cla_text_add(&candidates->declined, "%s: %s\n", e->name, why);
        else
            add_configs(e, facts, problem, candidates);
    }
    return verdict(candidates, "this problem", error);
}

bool cla_needs_scores(const clattn_problem *problem, const struct engine *engine)
{
    return problem->scores.kind != CLATTN_SCORES_NONE && !engine->has_scores;
}

clattn_status cla_choose_scores(const struct facts *facts, const clattn_problem *problem, const char *avoid,
                                struct candidates *candidates, clattn_error *error)
{
    candidates->count = 0;
    memset(&candidates->declined, 0, sizeof candidates->declined);
    for (size_t i = 0; i < cla_engine_count; i++) {
        const struct engine *e = cla_engines[i];
        const size_t before = candidates->count;
        if (!e->has_scores)
            continue;
        if (is_listed(avoid, e->name)) {
            cla_text_add(&candidates->declined, "%s: avoided on request\n", e->name);
            continue;
        }
        add_configs(e, facts, problem, candidates);
        for (size_t j = before; j < candidates->count; j++)
            candidates->list[j].scores_only = true;
        const size_t bytes = candidates->count > before ? cla_workspace_bytes(problem, &candidates->list[before]) : 0;
        if (facts->max_alloc && bytes > facts->max_alloc) {
            candidates->count = before;
            cla_text_add(&candidates->declined, "%s: the scores take %zu bytes, a buffer of this device at most %" PRIu64 "\n",
                         e->name, bytes, facts->max_alloc);
        }
    }
    return verdict(candidates, "the scores of this problem", error);
}

/* Few queries with many keys are one tile a head: the keys are split, so that several teams work on them. About SPLIT_TEAMS
 * teams for a sequence keep a large device busy, and longer chunks leave fewer partial results to merge. Chunks under
 * SPLIT_LONG keys cost more to begin and to end than they save: then half as many teams are used. */
enum {
    SPLIT_MAX_QUERIES = 16,
    SPLIT_MIN_KEYS = 1024,
    SPLIT_TEAMS = 256,
    SPLIT_MIN_CHUNK = 256,
    SPLIT_LONG = 512,
    SPLIT_MAX_CHUNK = 2048
};
enum { SPLIT_CPU_CHUNK = 512, MERGE_MAX_DIM = 256, MERGE_MAX_GROUPS = 1024, MERGE_MAX_ROWS = 8 };

static int64_t chunk_of(const struct facts *facts, const clattn_problem *problem)
{
    if (facts->device_kind == DEVICE_CPU)
        return SPLIT_CPU_CHUNK;
    const int64_t keys = problem->seq_kv * problem->heads_kv, few = keys * 2 / SPLIT_TEAMS;
    const int64_t chunk = keys / SPLIT_TEAMS >= SPLIT_LONG ? keys / SPLIT_TEAMS : few < SPLIT_LONG ? few : SPLIT_LONG;
    return chunk < SPLIT_MIN_CHUNK ? SPLIT_MIN_CHUNK : chunk > SPLIT_MAX_CHUNK ? SPLIT_MAX_CHUNK : chunk;
}

/* Merging in the last group saves a launch, which costs as much as several thousand keys, but each group waits until its part
 * is visible; with many groups those waits add up. And one group merges more than a few rows slower than many groups do,
 * launch included. */
static bool merges_inside(const struct facts *facts, const clattn_problem *problem, int chunk)
{
    const int64_t chunks = cla_divide_up(problem->seq_kv, chunk);
    const int64_t group = cla_group_size(problem);
    return cla_facts_has_inter_group_visibility(facts) && problem->head_dim_v <= MERGE_MAX_DIM &&
           problem->seq_q * group <= MERGE_MAX_ROWS &&
           problem->batch * problem->heads_kv <= MERGE_MAX_GROUPS / (chunks > 0 ? chunks : 1);
}

static int group_within(const struct facts *facts, int group)
{
    while (group > 1 && ((uint64_t)group > facts->max_work_group || (uint64_t)group > facts->max_work_item_0))
        group /= 2;
    return group;
}

/* Heads and batch entries that share one tile of mask and bias. */
static int64_t sharers(const clattn_problem *p)
{
    const bool heads = (p->mask.present && p->mask.strides.head != 0) || (p->bias.present && p->bias.strides.head != 0);
    const bool batch = (p->mask.present && p->mask.strides.batch != 0) || (p->bias.present && p->bias.strides.batch != 0);
    return (heads ? 1 : p->heads_q) * (batch ? 1 : p->batch);
}

enum { PREPASS_MIN_SHARERS = 4, PREPASS_MIN_BLOCKS = 2, PREPASS_MIN_ROWS = 16 };

/* Whether the pass that classifies mask tiles pays. It reads masks and biases once: a quarter of what attention reads of them,
 * or less, if at least four heads and batch entries share them. On a CPU it reads contiguous mask bytes much faster than
 * attention does, so one is enough. */
static bool prepass_pays(const struct facts *facts, const clattn_problem *p)
{
    const bool bytes = p->mask.present && !p->bias.present && p->mask.strides.column == 1;
    return sharers(p) >= (bytes && facts->device_kind == DEVICE_CPU ? 1 : PREPASS_MIN_SHARERS);
}

static void choose_prepass(const struct facts *facts, const clattn_problem *problem, struct config *config)
{
    if ((!problem->mask.present && !problem->bias.present) || !prepass_pays(facts, problem) ||
        (config->engine->launches && !config->engine->visits_classes) || config->block_m < PREPASS_MIN_ROWS ||
        problem->seq_q < (int64_t)PREPASS_MIN_BLOCKS * config->block_m)
        return;
    /* A CPU runs a group as loops between barriers, so groups of one work-item are fastest. */
    config->classify_group = facts->device_kind == DEVICE_CPU ? 1 : group_within(facts, 64);
    if (facts->max_alloc && cla_workspace_bytes(problem, config) > facts->max_alloc)
        config->classify_group = 0;
}

static void choose_split(const struct facts *facts, const clattn_problem *problem, int64_t chunk, struct config *config)
{
    if (chunk == 0 && problem->seq_q <= SPLIT_MAX_QUERIES && problem->seq_kv >= SPLIT_MIN_KEYS)
        chunk = chunk_of(facts, problem);
    if (chunk <= 0 || chunk > CLA_MAX_SEQ || config->engine->launches)
        return;
    config->chunk = (int)cla_round_up(chunk, config->block_n);
    config->head_dim_v = (int)problem->head_dim_v;
    /* A CPU runs one work-item at a time in a thread: each merges a row. */
    config->merge_group = facts->device_kind == DEVICE_CPU ? 1 : group_within(facts, 64);
    config->merge_columns = facts->device_kind == DEVICE_CPU ? config->head_dim_v : 1;
    config->merge_inside = config->engine->merges && merges_inside(facts, problem, config->chunk);
    if (config->merge_inside)
        config->merge_columns = (int)cla_divide_up(config->head_dim_v, 32); /* 32 work-items share a row */
    /* Partial results that do not fit a buffer: then one team processes all keys, slower but correct. */
    if (facts->max_alloc && cla_workspace_bytes(problem, config) > facts->max_alloc) {
        config->chunk = 0;
        config->merge_inside = false;
    }
}

/* Sets what follows from problem and tile, whatever the engine. */
static void complete(const struct facts *facts, const clattn_problem *problem, const clattn_plan_options *options,
                     struct config *config)
{
    choose_split(facts, problem, options->chunk, config);
    choose_prepass(facts, problem, config);
}

/* Launches of resident groups, which take one tile after another, cannot be cut into slices. */
static void drop_resident(struct candidates *candidates)
{
    size_t kept = 0;
    for (size_t i = 0; i < candidates->count; i++)
        if (!candidates->list[i].resident)
            candidates->list[kept++] = candidates->list[i];
    if (kept > 0)
        candidates->count = kept;
}

clattn_status cla_decide(const struct facts *facts, const clattn_problem *problem, const clattn_plan_options *options,
                         struct candidates *candidates, clattn_error *error)
{
    TRY(cla_choose(facts, problem, options->engine, options->avoid, candidates, error));
    for (size_t i = 0; i < candidates->count; i++)
        complete(facts, problem, options, &candidates->list[i]);
    if (options->max_launch_ms > 0.0)
        drop_resident(candidates);
    return CLATTN_SUCCESS;
}

bool cla_same_kernels(const struct config *a, const struct config *b)
{
    return a->engine == b->engine && a->block_m == b->block_m && a->block_n == b->block_n && a->work_group == b->work_group &&
           a->team == b->team && a->local_bytes == b->local_bytes && (a->chunk != 0) == (b->chunk != 0) &&
           (!a->chunk || (a->merge_group == b->merge_group && a->merge_columns == b->merge_columns)) &&
           a->merge_inside == b->merge_inside && a->classify_group == b->classify_group &&
           memcmp(a->own, b->own, sizeof a->own) == 0;
}

static size_t find_kernels(const struct config *const *built, size_t count, const struct config *config)
{
    size_t i = 0;
    while (i < count && !cla_same_kernels(built[i], config))
        i++;
    return i;
}

static bool is_built(const struct config *const *built, size_t count, const struct engine *engine)
{
    for (size_t i = 0; i < count; i++)
        if (built[i]->engine == engine)
            return true;
    return false;
}

/* `resident`: whether configurations with resident groups may serve. */
static size_t decide_among(const struct facts *facts, const clattn_problem *problem, const clattn_plan_options *options,
                           const struct config *const *built, size_t count, bool resident, struct config *chosen)
{
    char why[200];
    for (size_t i = 0; i < cla_engine_count; i++) {
        const struct engine *const engine = cla_engines[i];
        struct config list[CLA_MAX_CONFIGS];
        if (!is_built(built, count, engine) || !engine->serves(facts, problem, why, sizeof why))
            continue;
        const size_t configs = engine->configs(facts, problem, list);
        for (size_t j = 0; j < configs; j++) {
            if ((list[j].resident && !resident) || !cla_config_fits(facts, &list[j], why, sizeof why))
                continue;
            complete(facts, problem, options, &list[j]);
            const size_t at = find_kernels(built, count, &list[j]);
            if (at < count) {
                *chosen = list[j];
                return at;
            }
        }
    }
    return count;
}

size_t cla_decide_among(const struct facts *facts, const clattn_problem *problem, const clattn_plan_options *options,
                        const struct config *const *built, size_t count, struct config *chosen)
{
    const bool slices = options->max_launch_ms > 0.0;
    const size_t at = decide_among(facts, problem, options, built, count, !slices, chosen);
    return at < count || !slices ? at : decide_among(facts, problem, options, built, count, true, chosen);
}

/* Sizes at which engines, tiles and splitting change, for rows that share keys, for queries and for keys; the size after each
 * is decided as well. A test compares the results with the decisions at random sizes. */
static const int64_t row_edges[] = {1, 2, 4, 8, 16, 32, 64, 128, 256}, query_edges[] = {1, 16, 31, 63, 127, 255, 511},
                     key_edges[] = {64, 512, SPLIT_MIN_KEYS - 1, 4096};

static size_t add_size(int64_t *list, size_t count, int64_t size, int64_t bound)
{
    for (size_t i = 0; i < count; i++)
        if (list[i] == size)
            return count;
    if (size >= 1 && size < bound)
        list[count++] = size;
    return count;
}

/* The bound first, then the edges below it. */
static size_t edges_below(int64_t bound, const int64_t *edges, size_t edge_count, int64_t divisor, int64_t *list, size_t count)
{
    if (count == 0)
        list[count++] = bound;
    for (size_t i = 0; i < edge_count; i++) {
        count = add_size(list, count, edges[i] / divisor, bound);
        count = add_size(list, count, edges[i] / divisor + 1, bound);
    }
    return count;
}

#define COUNT(array) (sizeof(array) / sizeof *(array))

size_t cla_call_sizes(const clattn_problem *p, struct call_size list[CLA_MAX_CALL_SIZES])
{
    int64_t queries[1 + 2 * (COUNT(row_edges) + COUNT(query_edges))], keys[1 + 2 * COUNT(key_edges)];
    const int64_t group = cla_group_size(p);
    size_t query_count = edges_below(p->seq_q, query_edges, COUNT(query_edges), 1, queries, 0), count = 0;
    query_count = edges_below(p->seq_q, row_edges, COUNT(row_edges), group, queries, query_count);
    const size_t key_count = edges_below(p->seq_kv, key_edges, COUNT(key_edges), 1, keys, 0);
    const int64_t batches[] = {p->batch, 1};
    for (size_t b = 0; b < (p->batch > 1 ? 2u : 1u); b++)
        for (size_t q = 0; q < query_count; q++)
            for (size_t k = 0; k < key_count; k++)
                list[count++] = (struct call_size){batches[b], queries[q], keys[k]};
    return count;
}

size_t cla_most_workspace(const struct facts *facts, const clattn_problem *problem, const clattn_plan_options *options,
                          const struct config *config)
{
    clattn_problem most = *problem;
    struct config split = *config;
    size_t bytes = cla_workspace_bytes(problem, config);
    /* A call that would need more than the device allocates is served without what needs it. */
    if (!config->chunk || options->chunk > 0)
        return facts->max_alloc && bytes > facts->max_alloc ? (size_t)facts->max_alloc : bytes;
    /* Chunks grow with the number of keys, in whole keys and whole blocks, so fewer keys may need one or two chunks more. */
    const int64_t chunks = problem->seq_kv / chunk_of(facts, problem) + 2;
    split.chunk = problem->seq_kv > chunks ? (int)(problem->seq_kv / chunks) : 1;
    if (most.seq_q > SPLIT_MAX_QUERIES)
        most.seq_q = SPLIT_MAX_QUERIES;
    bytes = cla_workspace_bytes(&most, &split);
    return facts->max_alloc && bytes > facts->max_alloc ? (size_t)facts->max_alloc : bytes;
}
