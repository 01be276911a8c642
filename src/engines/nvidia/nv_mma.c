/* SPDX-License-Identifier: Apache-2.0
 * nv_mma: tensor cores of NVIDIA GPUs from sm_80 on. */
#include "nv_mma.h"

#include "../../arithmetic.h"
#include "../../problem.h"

#include <inttypes.h>

/* Warps, key warps, row tiles of a warp, keys of a block, slots. Preferred ones first: with two row tiles a warp uses an
 * operand from local memory twice; wide blocks spend less time on softmax. The last ones are for devices with little local
 * memory. */
static const struct nv_tile tiles[] = {
    {4, 4, 1, 64, 2}, {4, 4, 1, 64, 1}, {4, 1, 2, 128, 2}, {4, 1, 2, 48, 2}, {4, 1, 2, 64, 2}, {4, 1, 2, 64, 1},
    {4, 1, 1, 64, 2}, {4, 1, 1, 64, 1}, {4, 1, 1, 32, 1},  {4, 1, 1, 16, 1}, {2, 1, 1, 16, 1},
};

static int padded(int64_t head_dim) { return (int)cla_round_up(head_dim, 16); }

static int row_warps(const struct nv_tile *s) { return s->warps / s->key_warps; }
static int rows_of_tile(const struct nv_tile *s) { return 16 * row_warps(s) * s->m_tiles; }

/* Whether options are applied to pairs of scores, one option after the other, with the bias of a block in local memory. */
static bool has_pairs(const clattn_problem *problem, const struct nv_tile *s)
{
    return problem->k.type != CLATTN_FP32 && s->key_warps == 1;
}

static int options_bytes(const clattn_problem *problem, const struct nv_tile *s)
{
    if (!has_pairs(problem, s))
        return s->key_warps > 1 ? 0 : s->warps * s->block_n;
    return problem->bias.present ? rows_of_tile(s) * (s->block_n + 8) * (problem->bias.type == CLATTN_FP32 ? 4 : 2) : 0;
}

/* The twin of LOCAL_SIZE in cl/engines/nvidia/mma/nv_mma.cl. */
static size_t local_bytes(const clattn_problem *problem, const struct nv_tile *s)
{
    const int bytes = problem->k.type == CLATTN_FP32 ? 4 : 2;
    const int qk_stride = padded(problem->head_dim_qk) * bytes + 16, v_stride = padded(problem->head_dim_v) * bytes + 16;
    const int q = rows_of_tile(s) * qk_stride;
    const int options = cla_problem_alters_scores(problem) ? options_bytes(problem, s) : 0;
    const int all = q + s->slots * s->block_n * (qk_stride + v_stride) + options;
    return (size_t)all;
}

/* Accumulators of a work-item; everything else needs about 40 of 255 registers. */
static int accumulators(const clattn_problem *problem, const struct nv_tile *s)
{
    return s->m_tiles * (padded(problem->head_dim_v) + s->block_n / s->key_warps) / 2;
}

enum {
    MAX_ACCUMULATORS = 192,
    MAX_HEAD_DIM = 256,
    SPREAD = 16 << 20,
    FEW_ROWS = 16,
    LEAST_ROWS = 4,
    LEAST_KEYS = 64,
    MAX_KEYS_WITH_OPTIONS = 64,
    MANY_KEYS = 1024
};

/* The most rows that a tile of one head, or of heads that share keys, can have. */
static int64_t rows_at_most(const clattn_problem *problem) { return problem->seq_q * cla_group_size(problem); }

/* Whether the tile suits the problem. Blocks of 48 keys are for head size 128, where the compiler adds register copies with 64
 * keys in two slots, and none with 48. With fewer keys than MANY_KEYS the part-empty last block costs too much, and other head
 * sizes do not divide into whole copies with 48 keys. */
static bool suits(const clattn_problem *problem, const struct nv_tile *s)
{
    return s->block_n != 48 || (problem->head_dim_qk == 128 && problem->head_dim_v == 128 && problem->seq_kv >= MANY_KEYS &&
                                !cla_problem_alters_scores(problem));
}

/* Whether only one group fits a compute unit. Two groups overlap softmax of one with products of the other, so such tiles come
 * last. */
static bool is_alone(const struct facts *facts, size_t bytes) { return bytes + 1024 > facts->local_mem_static / 2; }

/* Numbers of a tile that only these engines use. */
struct numbers {
    int slots;     /* number of blocks of K and of V in local memory */
    int key_warps; /* warps that share rows, each with its own keys of a block; 1: each warp has its own rows */
};

bool cla_nv_mma_tile(const struct engine *engine, const struct nv_tile *tile, int max_accumulators, const struct facts *facts,
                     const clattn_problem *problem, struct config *config)
{
    *config = (struct config){.engine = engine,
                              .block_m = rows_of_tile(tile),
                              .block_n = tile->block_n,
                              .work_group = 32 * tile->warps,
                              .team = 32 * tile->warps,
                              .local_bytes = local_bytes(problem, tile),
                              .packs_heads = true,
                              .spread = SPREAD};
    const struct numbers own = {tile->slots, tile->key_warps};
    cla_config_keep(config, &own, sizeof own);
    /* With few queries, as in decoding, half of a tall tile would be padding. */
    if ((config->block_m > 64 && rows_at_most(problem) <= 64) || (tile->key_warps > 1 && rows_at_most(problem) > FEW_ROWS))
        return false;
    /* 32 columns a row and their options would spill. */
    if (tile->block_n > MAX_KEYS_WITH_OPTIONS && cla_problem_alters_scores(problem) && has_pairs(problem, tile))
        return false;
    return accumulators(problem, tile) <= max_accumulators && config->local_bytes <= facts->local_mem_static;
}

static size_t configs(const struct facts *facts, const clattn_problem *problem, struct config list[CLA_MAX_CONFIGS])
{
    size_t count = 0;
    for (int alone = 0; alone < 2; alone++)
        for (size_t i = 0; i < sizeof tiles / sizeof *tiles && count < CLA_MAX_CONFIGS; i++)
            if (suits(problem, &tiles[i]) &&
                cla_nv_mma_tile(&cla_engine_nv_mma, &tiles[i], MAX_ACCUMULATORS, facts, problem, &list[count]) &&
                is_alone(facts, list[count].local_bytes) == (alone == 1))
                count++;
    return count;
}

bool cla_nv_mma_fits(const struct engine *engine, const struct facts *facts, const clattn_problem *problem, char *why,
                     size_t why_size)
{
    struct config list[CLA_MAX_CONFIGS];
    if (facts->nv_compute < 80)
        return cla_decline(why, why_size, "needs an NVIDIA GPU of compute capability 8.0 or later");
    if (problem->head_dim_qk > MAX_HEAD_DIM || problem->head_dim_v > MAX_HEAD_DIM)
        return cla_decline(why, why_size, "head sizes over %d", MAX_HEAD_DIM);
    if (engine->configs(facts, problem, list) == 0)
        return cla_decline(why, why_size, "no tile of this head size fits %" PRIu64 " bytes of local memory",
                           facts->local_mem_static);
    return true;
}

static bool serves(const struct facts *facts, const clattn_problem *problem, char *why, size_t why_size)
{
    const clattn_type type = problem->q.type;
    if (type == CLATTN_FP32 || problem->k.type != type || problem->v.type != type)
        return cla_decline(why, why_size, "needs Q, K and V all fp16 or all bf16");
    if (rows_at_most(problem) <= LEAST_ROWS && problem->seq_kv <= LEAST_KEYS)
        return cla_decline(why, why_size, "so few rows and keys are faster without tensor cores");
    return cla_nv_mma_fits(&cla_engine_nv_mma, facts, problem, why, why_size);
}

void cla_nv_mma_defines(const struct facts *facts, const clattn_problem *problem, const struct config *config, struct text *out)
{
    struct numbers own;
    (void)facts;
    cla_config_recall(config, &own, sizeof own);
    cla_text_add(out, "#define BIAS_TYPE %d\n", problem->bias.present ? (int)problem->bias.type : 0);
    cla_text_add(out, "#define KEY_WARPS %d\n#define LOCAL_BYTES %zu\n#define SLOTS %d\n", own.key_warps, config->local_bytes,
                 own.slots);
}

const struct engine cla_engine_nv_mma = {
    .name = "nv_mma",
    .file = "cl/engines/nvidia/mma/nv_mma.cl",
    .kernel_file = "cl/attention.cl",
    .vendor = true,
    .merges = true,
    .rounds_weights = true,
    .options_apart = true,
    .serves = serves,
    .configs = configs,
    .defines = cla_nv_mma_defines,
};
