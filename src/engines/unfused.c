/* SPDX-License-Identifier: Apache-2.0
 * unfused: writes scores to memory, takes the softmax of their rows, multiplies weights and V. Chosen on request only: it is
 * the baseline of benchmarks, a second reference in tests, and the only engine that outputs scores and weights, also for plans
 * whose O another engine computes. */
#include "../arithmetic.h"
#include "../engine.h"
#include "../problem.h"

#include <inttypes.h>

/* The square root of the work-group: work-items along either axis of a tile. */
static int items(const struct config *config)
{
    int n = 1;
    while (n * n < config->work_group)
        n++;
    return n;
}

/* Columns in one element of the kernel source: a vector if a group is one work-item. */
static int lanes(const struct facts *facts, const struct config *config)
{
    if (config->work_group > 1)
        return 1;
    return facts->vector_width >= 16 ? 16 : facts->vector_width >= 8 ? 8 : 4;
}

/* Bytes of the matrix of scores, or 0 if the first kernel writes them to the output and no other follows. */
static size_t workspace(const clattn_problem *problem, const struct config *config)
{
    const int64_t heads = config->scores_only ? cla_score_heads(problem) : problem->heads_q;
    const int64_t sizes[] = {problem->batch, heads, problem->seq_q, problem->seq_kv};
    size_t bytes = sizeof(float);
    if (config->scores_only && problem->scores.kind != CLATTN_SCORES_SOFTMAX)
        return 0;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        bytes = cla_bytes_times(bytes, sizes[i]);
    return bytes;
}

static bool serves(const struct facts *facts, const clattn_problem *problem, char *why, size_t why_size)
{
    const struct config all = {.engine = &cla_engine_unfused};
    const size_t bytes = workspace(problem, &all);
    if (facts->max_alloc && bytes > facts->max_alloc)
        return cla_decline(why, why_size, "the scores take %zu bytes, a buffer of this device at most %" PRIu64, bytes,
                           facts->max_alloc);
    return true;
}

/* A work-item multiplies `rows` x `cols` elements at a time; a tile has `steps_m` x `steps_n` such micro-tiles for each
 * work-item. */
struct tile_choice {
    int work_group, rows, cols, steps_m, steps_n, depth;
};

/* What only this engine knows of a tile: elements that a work-item multiplies at a time, columns in local memory at a time. */
struct numbers {
    int rows, cols, depth;
};

static struct config make_config(const struct tile_choice *choice, int items_along, int lanes_of_elem)
{
    struct config config = {.engine = &cla_engine_unfused, .work_group = choice->work_group, .team = choice->work_group};
    const struct numbers own = {choice->rows, choice->cols * lanes_of_elem, choice->depth};
    cla_config_keep(&config, &own, sizeof own);
    config.block_m = items_along * choice->rows * choice->steps_m;
    config.block_n = items_along * choice->cols * choice->steps_n * lanes_of_elem;
    if (choice->work_group > 1)
        config.local_bytes =
            sizeof(float) * (size_t)(config.block_m * (choice->depth + 4) + choice->depth * (config.block_n + 1));
    return config;
}

static size_t configs(const struct facts *facts, const clattn_problem *problem, struct config list[CLA_MAX_CONFIGS])
{
    /* No tile is square, so that tests find swapped axes. The last one needs neither a work-group nor local memory. */
    static const struct tile_choice wide[] = {
        {256, 8, 4, 1, 1, 16}, {64, 8, 4, 1, 1, 16}, {64, 4, 2, 1, 1, 16}, {16, 4, 2, 1, 1, 4}, {1, 4, 2, 6, 4, 16},
    };
    static const struct tile_choice single[] = {{1, 8, 2, 12, 2, 64}, {1, 4, 2, 6, 1, 16}};
    const bool is_cpu = facts->device_kind == DEVICE_CPU || facts->local_mem_is_global;
    const struct tile_choice *choices = is_cpu ? single : wide;
    const size_t choice_count = is_cpu ? sizeof single / sizeof *single : sizeof wide / sizeof *wide;
    size_t count = 0;
    for (size_t i = 0; i < choice_count; i++) {
        struct tile_choice choice = choices[i];
        const struct config shape = {.work_group = choice.work_group};
        /* With few queries, as in decoding, most rows of a tall tile would be padding. */
        if (problem->seq_q <= 16 && choice.work_group > 1)
            choice.rows = 1;
        const struct config config = make_config(&choice, items(&shape), lanes(facts, &shape));
        if ((uint64_t)config.work_group <= facts->max_work_group && (uint64_t)config.work_group <= facts->max_work_item_0 &&
            config.local_bytes <= facts->local_mem_static)
            list[count++] = config;
    }
    return count;
}

/* Rows that a group of the softmax computes one after another, so that a group of one work-item is not launched for each row.
 */
static int softmax_rows(const struct config *config) { return config->work_group > 1 ? 1 : 16; }

static void defines(const struct facts *facts, const clattn_problem *problem, const struct config *config, struct text *out)
{
    const int along = items(config), lane_count = lanes(facts, config);
    struct numbers own;
    (void)problem;
    cla_config_recall(config, &own, sizeof own);
    cla_text_add(out, "#define LANES %d\n#define ITEMS %d\n", lane_count, along);
    cla_text_add(out, "#define ROWS %d\n#define VECTORS %d\n", own.rows, own.cols / lane_count);
    cla_text_add(out, "#define STEPS_M %d\n", config->block_m / (along * own.rows));
    cla_text_add(out, "#define STEPS_N %d\n", config->block_n / (along * own.cols));
    cla_text_add(out, "#define DEPTH %d\n", own.depth);
    cla_text_add(out, "#define SOFTMAX_ROWS %d\n", softmax_rows(config));
}

static size_t blocks(int32_t length, int block) { return (size_t)cla_divide_up(length, block); }

static size_t launches(const struct config *config, const struct launch_args *args, struct launch list[CLA_MAX_LAUNCHES])
{
    const int32_t heads_of_batch = args->scores_only ? args->score_heads : args->heads_q;
    const size_t heads = (size_t)args->batches * (size_t)heads_of_batch, work_group = (size_t)config->work_group;
    const size_t count = !args->scores_only ? 3 : args->scores_kind == CLATTN_SCORES_SOFTMAX ? 2 : 1;
    const size_t tiles_m = blocks(args->seq_q, config->block_m), tiles_n = blocks(args->seq_kv, config->block_n);
    const double rows = config->block_m, keys = args->seq_kv;
    const struct launch all[] = {
        /* without keys one group a tile, since 0 groups would be an error */
        {"unfused_scores", heads * tiles_m * (tiles_n ? tiles_n : 1), work_group, rows * config->block_n},
        {"unfused_softmax", heads * blocks(args->seq_q, softmax_rows(config)), work_group, softmax_rows(config) * keys},
        {"unfused_output", heads * tiles_m, work_group, rows * keys},
    };
    for (size_t i = 0; i < count; i++)
        list[i] = all[i];
    return count;
}

const struct engine cla_engine_unfused = {
    .name = "unfused",
    .file = "cl/engines/unfused/unfused.cl",
    .kernel_file = "cl/engines/unfused/unfused_kernels.cl",
    .on_request = true,
    .has_scores = true,
    .serves = serves,
    .configs = configs,
    .defines = defines,
    .launches = launches,
    .workspace = workspace,
};
