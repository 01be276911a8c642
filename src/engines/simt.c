/* SPDX-License-Identifier: Apache-2.0
 * simt: K and V stream through local memory, products are register micro-tiles. For GPUs, and for anything with real
 * work-groups. */
#include "../engine.h"
#include "../problem.h"

#include <inttypes.h>
#include <string.h>

/* How a work-group covers a tile: items_x work-items across, each with `rows` rows and `cols` keys of it. */
struct shape {
    int work_group, items_x, rows, cols;
};

/* Preferred ones first. Rows times columns is what one load from local memory is used for; wider rows of work-items hold larger
 * heads in registers; the last ones are for small limits. */
static const struct shape shapes[] = {
    {256, 8, 8, 8},  /* 256 x  64 */
    {256, 16, 8, 4}, /* 128 x  64 */
    {256, 16, 4, 2}, /*  64 x  32 */
    {512, 32, 8, 2}, /* 128 x  64, half the output columns an item */
    {256, 32, 8, 4}, /*  64 x 128 */
    {128, 16, 8, 2}, /*  64 x  32 */
    {256, 32, 4, 2}, /*  32 x  64 */
    {64, 8, 8, 4},   /*  64 x  32 */
    {128, 16, 4, 1}, /*  32 x  16 */
    {64, 8, 4, 2},   /*  32 x  16 */
    {256, 16, 4, 1}, /*  64 x  16 */
    {32, 8, 8, 2},   /*  32 x  16 */
    {64, 8, 2, 1},   /*  16 x   8 */
    {64, 32, 4, 1},  /*   8 x  32 */
    {32, 16, 4, 1},  /*   8 x  16 */
    {32, 8, 4, 1},   /*  16 x   8 */
};

/* Few sums a work-item, however large the head. */
static const struct shape narrow_shapes[] = {
    {320, 32, 4, 1}, /*  40 x  32 */
    {192, 32, 4, 1}, /*  24 x  32 */
    {256, 64, 4, 1}, /*  16 x  64 */
};

/* What of Q, K and V lies in local memory, in the order in which it is tried. depth 0: all of head_dim. */
struct residence {
    int q_resident, slots, depth;
};

static const struct residence residences[] = {
    {1, 2, 0},  {1, 2, 64}, {1, 2, 32}, {1, 1, 0},  {1, 1, 64}, {1, 1, 32},
    {0, 2, 32}, {0, 2, 16}, {0, 1, 64}, {0, 1, 32}, {0, 1, 16}, {0, 1, 8},
};

static int round_up(int64_t x, int to) { return (int)((x + to - 1) / to * to); }

/* Output columns that a work-item loads at once: the widest that wastes least of head_dim_v. */
static int v_vector(const clattn_problem *problem, const struct config *config)
{
    const int items_x = config->block_n / config->cols_per_item;
    int best = 4;
    for (int vector = 2; vector >= 1; vector /= 2)
        if (round_up(problem->head_dim_v, items_x * vector) < round_up(problem->head_dim_v, items_x * best))
            best = vector;
    return best;
}

/* Output columns of a work-item. */
static int o_cols(const clattn_problem *problem, const struct config *config)
{
    const int items_x = config->block_n / config->cols_per_item;
    return round_up(problem->head_dim_v, items_x * v_vector(problem, config)) / items_x;
}

/* Sizes in local memory, in float4, rows padded by one; the twin of the sizes in cl/engines/simt.cl. */
static int v_size(const clattn_problem *problem, const struct config *config, int rows)
{
    return rows * (o_cols(problem, config) * (config->block_n / config->cols_per_item) / 4 + 1);
}

static int qk_size(const struct config *config)
{
    return (config->block_n + (config->q_resident ? 0 : config->block_m)) * (config->depth_chunk / 4 + 1);
}

static size_t local_bytes(const clattn_problem *problem, const struct config *config)
{
    const int depth = round_up(problem->head_dim_qk, config->depth_chunk);
    const int q = config->q_resident ? config->block_m * (depth / 4 + 1) : 0;
    const int p = config->block_m * (config->block_n / 4 + 1);
    const int v = v_size(problem, config, config->value_chunk);
    const int slot = qk_size(config) > v ? qk_size(config) : v;
    /* A flag a key, as in SEEN_SIZE. */
    const int flags = cla_problem_alters_scores(problem) ? config->block_n : 1;
    return 16 * ((size_t)q + (size_t)p + (size_t)config->slots * (size_t)slot) + sizeof(int32_t) * (size_t)flags;
}

static void reside(const clattn_problem *problem, struct config *config, struct residence residence)
{
    const int whole = round_up(problem->head_dim_qk, 8);
    config->q_resident = residence.q_resident;
    config->slots = residence.slots;
    config->depth_chunk = residence.depth && residence.depth < whole ? residence.depth : whole;
    config->value_chunk = config->block_n;
    /* Chunks of V about as large as those of K, since both take turns in the same place. */
    while (config->value_chunk > 4 && v_size(problem, config, config->value_chunk) * 2 > qk_size(config) * 3)
        config->value_chunk /= 2;
    config->local_bytes = local_bytes(problem, config);
}

/* Copies that need no registers on the way. */
static bool copies_by_itself(const struct facts *facts) { return facts->nv_compute >= 80; }

/* The first residence within `limit` bytes. */
static bool find_residence(const struct facts *facts, const clattn_problem *problem, struct config *config, uint64_t limit)
{
    for (size_t i = 0; i < sizeof residences / sizeof *residences; i++) {
        /* A second slot pays where copies run beside the products; elsewhere more groups at once do. */
        if (residences[i].slots == 2 && !copies_by_itself(facts))
            continue;
        reside(problem, config, residences[i]);
        if (config->local_bytes <= limit)
            return true;
    }
    return false;
}

/* Whether four neighbours along an axis of stride 1 lie on a 4-element boundary whenever the first of the buffer does. */
static bool by_four(const clattn_problem *problem, int64_t heads, const clattn_tensor *tensor, int64_t near, int64_t far)
{
    return near == 1 && far % 4 == 0 && (problem->batch <= 1 || tensor->stride_batch % 4 == 0) &&
           (heads <= 1 || tensor->stride_head % 4 == 0);
}

static void find_vectors(const clattn_problem *problem, struct config *config)
{
    const clattn_tensor *const k = &problem->k, *const v = &problem->v;
    const bool k_rows = by_four(problem, problem->heads_kv, k, k->stride_dim, k->stride_seq);
    const bool v_rows = by_four(problem, problem->heads_kv, v, v->stride_dim, v->stride_seq);
    const bool k_cols = !k_rows && by_four(problem, problem->heads_kv, k, k->stride_seq, k->stride_dim);
    const bool v_cols = !v_rows && by_four(problem, problem->heads_kv, v, v->stride_seq, v->stride_dim);
    config->vector_k = k_rows || k_cols ? 4 : 1;
    config->vector_v = v_rows || v_cols ? 4 : 1;
    config->transposed = (k_cols ? 1 : 0) | (v_cols ? 2 : 0);
}

enum { MAX_ACCUMULATORS = 128 };

/* Above 0: the compiler does not keep the sums of a work-item in registers beside everything else. Intel's gives all of them up
 * at once, for memory, where a few do not fit, or where options make the loop over columns too long to be unrolled
 * (docs/portability.md); of tiles that it treats so, those with many sums are the worst. */
static int spills(const struct facts *facts, const clattn_problem *problem, const struct config *config)
{
    const int floats = config->rows_per_item * (o_cols(problem, config) + config->cols_per_item);
    if (!cla_facts_is_intel_gpu(facts))
        return floats > (facts->nv_compute ? 160 : 96) ? 4 : 0;
    const bool rolled = cla_problem_alters_scores(problem) && config->cols_per_item > 1;
    return floats > 96 ? 6 : rolled || floats > (cla_facts_has_large_registers(facts) ? 34 : 20) ? 4 : 0;
}

/* Higher is worse; shapes of equal rank keep the order of the table. */
static int rank(const struct facts *facts, const clattn_problem *problem, const struct config *config)
{
    const bool alone = config->local_bytes > facts->local_mem_static / 2 && !copies_by_itself(facts);
    /* Few rows read all keys for little work; few keys mean many rounds. */
    const bool small = config->block_m * config->block_n < 1024;
    /* Tall tiles that leave half of the device without one. */
    const int64_t tiles = problem->batch * problem->heads_q * ((problem->seq_q + config->block_m - 1) / config->block_m);
    const bool starves = config->block_m > 128 && tiles * 2 <= (int64_t)facts->compute_units;
    const bool wastes = problem->causal && config->block_m < config->block_n;
    return spills(facts, problem, config) + (small ? 3 : 0) + (alone || starves ? 2 : 0) + (wastes ? 1 : 0);
}

static size_t configs(const struct facts *facts, const clattn_problem *problem, struct config list[CLA_MAX_CONFIGS])
{
    const uint64_t items = facts->max_work_group < facts->max_work_item_0 ? facts->max_work_group : facts->max_work_item_0;
    int ranks[CLA_MAX_CONFIGS];
    const size_t usual = sizeof shapes / sizeof *shapes, narrow = sizeof narrow_shapes / sizeof *narrow_shapes;
    const size_t last = usual + (cla_facts_is_intel_gpu(facts) ? narrow : 0);
    size_t count = 0;
    for (size_t i = 0; i < last && count < CLA_MAX_CONFIGS; i++) {
        const struct shape *const s = i < usual ? &shapes[i] : &narrow_shapes[i - usual];
        struct config config = {.engine = &cla_engine_simt,
                                .block_m = s->work_group / s->items_x * s->rows,
                                .block_n = s->items_x * s->cols,
                                .work_group = s->work_group,
                                .team = s->work_group,
                                .packs_heads = true,
                                .rows_per_item = s->rows,
                                .cols_per_item = s->cols};
        if ((uint64_t)s->work_group > items || s->rows * o_cols(problem, &config) > MAX_ACCUMULATORS)
            continue;
        if (!(!copies_by_itself(facts) && find_residence(facts, problem, &config, facts->local_mem_static / 2)) &&
            !find_residence(facts, problem, &config, facts->local_mem_static))
            continue;
        find_vectors(problem, &config);
        const int r = rank(facts, problem, &config);
        size_t at = count++;
        for (; at > 0 && ranks[at - 1] > r; at--) {
            ranks[at] = ranks[at - 1];
            list[at] = list[at - 1];
        }
        ranks[at] = r;
        list[at] = config;
    }
    return count;
}

static bool serves(const struct facts *facts, const clattn_problem *problem, char *why, size_t why_size)
{
    const uint64_t items = facts->max_work_group < facts->max_work_item_0 ? facts->max_work_group : facts->max_work_item_0;
    struct config list[CLA_MAX_CONFIGS];
    if (items < 32)
        return cla_decline(why, why_size, "needs work-groups of 32, the device allows %" PRIu64, items);
    if (problem->head_dim_qk > 4096 || problem->head_dim_v > 4096)
        return cla_decline(why, why_size, "head sizes over 4096");
    if (configs(facts, problem, list) == 0)
        return cla_decline(why, why_size,
                           "no tile of this head size fits %" PRIu64 " bytes of local memory and work-groups of %" PRIu64,
                           facts->local_mem_static, items);
    return true;
}

static void defines(const struct facts *facts, const clattn_problem *problem, const struct config *config, struct text *out)
{
    const bool rows_only = config->vector_k == 4 && config->vector_v == 4 && !config->transposed;
    const int walks = rows_only ? 1 : config->vector_k == 4 || config->vector_v == 4 ? 2 : 0;
    cla_text_add(out, "#define COLS_PER_ITEM %d\n#define DEPTH_CHUNK %d\n", config->cols_per_item, config->depth_chunk);
    if (facts->device_kind == DEVICE_CPU)
        cla_text_add(out, "#define KEEP_LOOPS\n");
    if (cla_facts_is_intel_gpu(facts) && !cla_facts_has_large_registers(facts))
        cla_text_add(out, "#define FEW_REGISTERS\n");
    cla_text_add(out, "#define LOCAL_BYTES %zu\n", config->local_bytes);
    if (facts->nv_compute)
        cla_text_add(out, "#define NVIDIA_PTX %" PRIu64 "\n", facts->nv_compute);
    cla_text_add(out, "#define Q_RESIDENT %d\n#define ROWS_PER_ITEM %d\n", config->q_resident, config->rows_per_item);
    cla_text_add(out, "#define SLOTS %d\n#define STAGE_WALKS %d\n", config->slots, walks);
    cla_text_add(out, "#define VALUE_CHUNK %d\n#define V_VECTOR %d\n", config->value_chunk, v_vector(problem, config));
}

const struct engine cla_engine_simt = {
    .name = "simt",
    .file = "cl/engines/simt.cl",
    .kernel_file = "cl/attention.cl",
    .serves = serves,
    .configs = configs,
    .defines = defines,
};
