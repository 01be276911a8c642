/* SPDX-License-Identifier: Apache-2.0
 * nv_wgmma: Hopper's warp-group products, fed by the Tensor Memory Accelerator. */
#include "../../arithmetic.h"
#include "../../engine.h"
#include "../../problem.h"

#include <inttypes.h>

/* Tiles: warp-groups that compute, keys of a block, slots for K and V. Causal tiles with few blocks are fastest with narrow
 * blocks and one more consumer, which overlaps the fixed cost of a tile; such small blocks must be loaded further ahead. Among
 * the others, small heads leave registers for a third consumer, which speeds up their softmax; otherwise the widest block up
 * to 128 keys whose two slots of K and V fit local memory. Wider blocks were slower: those of 176 keys compute more scores
 * past the diagonal and the last key. */
struct shape {
    int consumers, block_n, slots;
};

static const struct shape shapes[] = {{4, 64, 4},  {3, 64, 4}, {3, 128, 2}, {2, 128, 2},
                                      {2, 112, 2}, {2, 96, 2}, {2, 80, 2},  {2, 64, 2}};

enum {
    MAX_HEAD_DIM = 256,
    MAX_TILES = 1 << 30,
    MIN_ROWS = 64,         /* queries of one head; fewer are nv_mma's */
    ALIGNMENT = 1024,      /* of the panels in local memory */
    TILES_SIZE = 480 + 16, /* four tiles, and the barriers that belong to no slot */
    SLOT_SIZE = 64 + 16,   /* barriers and a note, in addition to K and V */
    MAP_SIZE = 128,
    MAPS = 4,              /* of a group: Q, K, V and O */
    SPREAD = 16 << 20,     /* a quarter of the second-level cache: Q and O pass through it too */
    FEW_KEYS = 512,        /* causal tiles have so few blocks that narrow ones are faster; measured at 512 and 2048 */
    FEW_KEYS_SMALL = 1024, /* with heads up to 64; measured at 512, 1024 and 2048 */
    BITS_KEYS = 4096,      /* up to here masking by bits pays, although fully visible blocks take 1 to 2% longer; */
    END_KEYS = 1024,       /* up to here even if only the last block has keys to mask */
    MERGED_TURNS = 2,      /* the last heads, which decide the load balance, are interleaved in larger groups */
};

static int padded(int64_t head_dim) { return (int)cla_round_up(head_dim, 16); }
static int panels(int64_t head_dim) { return (int)cla_divide_up(head_dim, 64); }

/* Bytes of an element of the bias, 0 without a bias. */
static int bias_width(const clattn_problem *problem)
{
    return problem->bias.present ? (int)cla_type_size(problem->bias.type) : 0;
}

/* The twin of MAY_HIDE in cl/args.cl. */
static bool may_hide(const clattn_problem *problem) { return problem->mask.present || problem->bias.present; }

/* The twin of LOCAL_SIZE in cl/engines/nvidia/wgmma/nv_wgmma.cl. */
static size_t local_bytes(const clattn_problem *problem, const struct shape *s, int q_places)
{
    const int qk = panels(problem->head_dim_qk), v = panels(problem->head_dim_v);
    const int hidden = s->slots * (s->consumers * 64 + 16), bias = 64 * s->consumers * (s->block_n + 8) * bias_width(problem);
    const int options = (may_hide(problem) ? hidden : 0) + bias;
    const int slots = s->slots * (s->block_n * 128 * (qk + v) + SLOT_SIZE);
    const int all = ALIGNMENT + q_places * 64 * s->consumers * 128 * qk + slots + TILES_SIZE + options;
    return (size_t)all;
}

static int registers(const clattn_problem *problem, const struct shape *s)
{
    return padded(problem->head_dim_v) / 2 + s->block_n / 2 + s->block_n / 4;
}

/* By the number of consumers: registers of a loader's work-item, of a consumer's work-item, and how many of the latter S, P
 * and O may take; the others hold addresses and the like. */
static const struct {
    int loader, consumer, arrays;
} shares[] = {[2] = {40, 232, 200}, [3] = {32, 160, 128}, [4] = {24, 112, 80}};

/* Options need some registers as well. */
static int max_registers(const clattn_problem *problem, const struct shape *s)
{
    const int options = cla_problem_alters_scores(problem) ? 20 : 0;
    return shares[s->consumers].arrays - options;
}

/* Short causal calls: one more consumer for heads up to 64 and up to 128, and 64-key blocks instead of 80. */
static bool suits(const clattn_problem *problem, const struct shape *s)
{
    const int64_t keys = problem->head_dim_qk <= 64 ? FEW_KEYS_SMALL : FEW_KEYS;
    const bool few = problem->causal && problem->seq_kv <= keys && !cla_problem_alters_scores(problem);
    if (s->slots > 2)
        return few &&
               (s->consumers == 4 ? problem->head_dim_qk <= 64 : problem->head_dim_qk > 64 && problem->head_dim_qk <= 128);
    return !(few && s->block_n == 80);
}

/* Whether so many blocks of a tile are partly masked that masking by bits pays. */
static bool hides_by_bits(const clattn_problem *problem, const struct shape *s)
{
    const bool ends_within = problem->seq_kv % s->block_n != 0;
    return !cla_problem_alters_scores(problem) &&
           (problem->causal ? problem->seq_kv <= BITS_KEYS : ends_within && problem->seq_kv <= END_KEYS);
}

/* Whether the Tensor Memory Accelerator can read the tensor: numbers of rows fit an int, rows are contiguous, and every stride
 * is a positive multiple of 16 bytes below 2^40. */
static bool is_mappable(const clattn_problem *problem, int64_t heads, int64_t rows, const clattn_tensor *tensor)
{
    const int64_t limit = (int64_t)1 << 39;
    const int64_t strides[] = {tensor->strides.row, tensor->strides.head, tensor->strides.batch};
    const int64_t sizes[] = {rows, heads, cla_entries(problem, problem->batch)};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i] > INT32_MAX || (sizes[i] > 1 && (strides[i] <= 0 || strides[i] % 8 != 0 || strides[i] >= limit)))
            return false;
    return tensor->strides.column == 1;
}

/* Whether O can be written through the local memory of Q. */
static bool stages_output(const clattn_problem *problem)
{
    const int64_t rows = cla_rows_q(problem, problem->seq_q);
    return problem->o.type == problem->q.type && panels(problem->head_dim_v) <= panels(problem->head_dim_qk) &&
           is_mappable(problem, problem->heads_q, rows, &problem->o);
}

/* Numbers of a tile that only this engine uses. */
struct numbers {
    int q_places;      /* stages for Q in local memory: 2 if Q of the next tile is loaded during this one */
    int kv_slots;      /* slots for blocks of K, and as many for V */
    int hides_by_bits; /* 1: the masked columns of a row are a bit mask, applied without a branch */
};

static size_t configs(const struct facts *facts, const clattn_problem *problem, struct config list[CLA_MAX_CONFIGS])
{
    size_t count = 0;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes && count < CLA_MAX_CONFIGS; i++) {
        const struct shape *const s = &shapes[i];
        const int q_places = stages_output(problem) && local_bytes(problem, s, 2) <= facts->local_mem_static ? 2 : 1;
        const struct numbers own = {q_places, s->slots, hides_by_bits(problem, s)};
        struct config config = {.engine = &cla_engine_nv_wgmma,
                                .block_m = 64 * s->consumers,
                                .block_n = s->block_n,
                                .work_group = 128 * (s->consumers + 1),
                                .team = 128 * (s->consumers + 1),
                                .local_bytes = local_bytes(problem, s, q_places),
                                .spread = SPREAD,
                                .resident = facts->compute_units > INT32_MAX ? INT32_MAX
                                            : facts->compute_units > 0       ? (int)facts->compute_units
                                                                             : 1};
        cla_config_keep(&config, &own, sizeof own);
        if (suits(problem, s) && registers(problem, s) <= max_registers(problem, s) &&
            config.local_bytes <= facts->local_mem_static)
            list[count++] = config;
    }
    return count;
}

static bool serves(const struct facts *facts, const clattn_problem *problem, char *why, size_t why_size)
{
    struct config list[CLA_MAX_CONFIGS];
    const clattn_type type = problem->q.type;
    if (facts->nv_compute != 90)
        return cla_decline(why, why_size, "needs an NVIDIA GPU of compute capability 9.0");
    if (type == CLATTN_FP32 || problem->k.type != type || problem->v.type != type)
        return cla_decline(why, why_size, "needs Q, K and V all fp16 or all bf16");
    if (problem->seq_q < MIN_ROWS)
        return cla_decline(why, why_size, "nv_mma serves fewer than %d queries", MIN_ROWS);
    if (problem->head_dim_qk > MAX_HEAD_DIM || problem->head_dim_v > MAX_HEAD_DIM || problem->head_dim_qk % 8 != 0 ||
        problem->head_dim_v % 8 != 0)
        return cla_decline(why, why_size, "needs head sizes up to %d that are multiples of 8", MAX_HEAD_DIM);
    const int64_t rows_q = cla_rows_q(problem, problem->seq_q);
    const int64_t rows_kv = cla_rows_kv(problem, problem->seq_kv);
    if (!is_mappable(problem, problem->heads_q, rows_q, &problem->q) ||
        !is_mappable(problem, problem->heads_kv, rows_kv, &problem->k) ||
        !is_mappable(problem, problem->heads_kv, rows_kv, &problem->v))
        return cla_decline(
            why, why_size,
            "needs fewer than 2^31 rows, each in one piece, and strides that are positive multiples of 16 bytes");
    if ((problem->seq_q / MIN_ROWS + 1) * problem->heads_q > MAX_TILES / (problem->batch > 0 ? problem->batch : 1))
        return cla_decline(why, why_size, "more than %d tiles", MAX_TILES);
    if (configs(facts, problem, list) == 0)
        return cla_decline(why, why_size, "no tile of this head size fits %" PRIu64 " bytes of local memory",
                           facts->local_mem_static);
    return true;
}

static void defines(const struct facts *facts, const clattn_problem *problem, const struct config *config, struct text *out)
{
    const int consumers = config->work_group / 128 - 1;
    struct numbers own;
    (void)facts;
    cla_config_recall(config, &own, sizeof own);
    cla_text_add(out, "#define TEAM_INDEX int\n#define BIAS_TYPE %d\n", problem->bias.present ? (int)problem->bias.type : 0);
    cla_text_add(out, "#define CONSUMER_REGISTERS %d\n", shares[consumers].consumer);
    cla_text_add(out, "#define LOADER_REGISTERS %d\n#define LOCAL_BYTES %zu\n", shares[consumers].loader, config->local_bytes);
    cla_text_add(out, "#define O_REGISTERS %d\n#define O_WIDTH %d\n", padded(problem->head_dim_v) / 2,
                 padded(problem->head_dim_v));
    cla_text_add(out, "#define S_REGISTERS %d\n#define MERGED_TURNS %d\n", config->block_n / 2, MERGED_TURNS);
    cla_text_add(out, "#define Q_PLACES %d\n#define STAGES_O %d\n", own.q_places, own.q_places == 2);
    cla_text_add(out, "#define KV_SLOTS %d\n", own.kv_slots);
    cla_text_add(out, "#define HIDES_BY_BITS %d\n", own.hides_by_bits);
    /* If the rows of a tile span several blocks, a warp-group may have blocks that are masked for all its rows. */
    cla_text_add(out, "#define SKIPS_BLOCKS %d\n", config->block_n < config->block_m && !cla_problem_alters_scores(problem));
}

static size_t launches(const struct config *config, const struct launch_args *args, struct launch list[CLA_MAX_LAUNCHES])
{
    const size_t heads = (size_t)args->heads_q * (size_t)args->batches;
    const size_t teams = (size_t)args->q_blocks * heads, resident = (size_t)config->resident;
    const struct launch attention = {"attention", teams < resident ? teams : resident, (size_t)config->work_group, 0.0};
    size_t count = 0;
    if (config->classify_group)
        list[count++] = cla_classify_launch(config, args);
    list[count++] = attention;
    return count;
}

/* A counter and the descriptors of each group, aligned to the size of a descriptor. */
static size_t workspace(const clattn_problem *problem, const struct config *config)
{
    (void)problem;
    return (size_t)(2 + MAPS * config->resident) * MAP_SIZE;
}

const struct engine cla_engine_nv_wgmma = {
    .name = "nv_wgmma",
    .file = "cl/engines/nvidia/wgmma/nv_wgmma.cl",
    .kernel_file = "cl/engines/nvidia/wgmma/nv_wgmma_attention.cl",
    .ptx_target = "sm_90a",
    .vendor = true,
    .visits_classes = true,
    .rounds_weights = true,
    .options_apart = true,
    .numbers_calls = true,
    .serves = serves,
    .configs = configs,
    .defines = defines,
    .launches = launches,
    .workspace = workspace,
};
