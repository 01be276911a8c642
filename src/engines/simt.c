/* SPDX-License-Identifier: Apache-2.0
 * simt: K and V stream through local memory, products are register micro-tiles; for few rows, K and V go from memory straight
 * to registers. For GPUs, and any device whose work-groups run in parallel. */
#include "../arithmetic.h"
#include "../engine.h"
#include "../problem.h"

#include <inttypes.h>
#include <string.h>

enum { BARRIERS_SIZE = 32 }; /* two barriers for each of two slots */

/* What only this engine knows of a tile. All ints: no padding, so that equal ones have equal bytes. */
struct numbers {
    int rows_per_item, cols_per_item;
    int depth_chunk;        /* columns of Q and K in local memory at a time */
    int value_chunk;        /* rows of V in local memory at a time */
    int slots;              /* chunks of K or V in local memory: 2 to copy the next one meanwhile, 1 to save memory */
    int q_resident;         /* 1: all of Q stays in local memory, 0: its chunks are copied with those of K */
    int vector_k, vector_v; /* elements that one load of K and V may read, as strides and alignment allow */
    int transposed;         /* bit 0: K's sequence axis is the contiguous one, bit 1: V's */
    int few_rows;           /* 1: K and V go straight to registers */
    int slot_barriers;      /* 1: each slot has its own barriers, so that warps need not stay together */
    int k_by_rows;          /* 1: K is row by row in local memory, as in memory, not column by column */
};

/* A tile while it is chosen. */
struct tile {
    struct config config;
    struct numbers own;
};

static struct tile tile_of(const struct config *config)
{
    struct tile tile = {.config = *config};
    cla_config_recall(config, &tile.own, sizeof tile.own);
    return tile;
}

static struct config config_of(const struct tile *tile)
{
    struct config config = tile->config;
    cla_config_keep(&config, &tile->own, sizeof tile->own);
    return config;
}

/* How a work-group covers a tile: items_x work-items across, each with `rows` rows and `cols` keys of it. */
struct shape {
    int work_group, items_x, rows, cols;
};

/* Preferred ones first. The more rows times columns, the more products a load from local memory serves; more work-items across
 * hold larger heads in registers; the last ones are for devices with small limits. */
static const struct shape shapes[] = {
    {128, 8, 8, 8},  /* 128 x  64 */
    {256, 16, 8, 8}, /* 128 x 128 */
    {256, 16, 8, 4}, /* 128 x  64 */
    {128, 16, 8, 8}, /*  64 x 128 */
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

/* Few sums a work-item, even for large heads. */
static const struct shape narrow_shapes[] = {
    {320, 32, 4, 1}, /*  40 x  32 */
    {192, 32, 4, 1}, /*  24 x  32 */
    {256, 64, 4, 1}, /*  16 x  64 */
};

/* Which parts of Q, K and V are in local memory, in the order in which they are tried. depth 0: all of head_dim. */
struct residence {
    int q_resident, slots, depth;
};

static const struct residence residences[] = {
    {1, 2, 0},  {1, 2, 64}, {1, 2, 32}, {1, 1, 0},  {1, 1, 64}, {1, 1, 32},
    {0, 2, 32}, {0, 2, 16}, {0, 1, 64}, {0, 1, 32}, {0, 1, 16}, {0, 1, 8},
};

static int round_up(int64_t x, int to) { return (int)cla_round_up(x, to); }

/* Output columns that a work-item loads at once: the most, among those that add the least padding to head_dim_v. */
static int v_vector(const clattn_problem *problem, const struct tile *tile)
{
    const int items_x = tile->config.block_n / tile->own.cols_per_item;
    int best = 4;
    for (int vector = 2; vector >= 1; vector /= 2)
        if (round_up(problem->head_dim_v, items_x * vector) < round_up(problem->head_dim_v, items_x * best))
            best = vector;
    return best;
}

/* Output columns of a work-item. */
static int o_cols(const clattn_problem *problem, const struct tile *tile)
{
    const int items_x = tile->config.block_n / tile->own.cols_per_item;
    return round_up(problem->head_dim_v, items_x * v_vector(problem, tile)) / items_x;
}

/* Whether the device copies to local memory without registers in between. */
static bool copies_by_itself(const struct facts *facts) { return facts->nv_compute >= 80; }

/* Sizes in local memory, in float4, rows padded by one; the twin of the sizes in cl/engines/simt/simt.cl. */
static int v_size(const clattn_problem *problem, const struct tile *tile, int rows)
{
    return rows * (o_cols(problem, tile) * (tile->config.block_n / tile->own.cols_per_item) / 4 + 1);
}

static int qk_size(const struct tile *tile)
{
    const int depth = tile->own.depth_chunk, q = tile->own.q_resident ? 0 : depth * (tile->config.block_m / 4 + 1);
    return q + (tile->own.k_by_rows ? tile->config.block_n * (depth / 4 + 1) : depth * (tile->config.block_n / 4 + 1));
}

static size_t local_bytes(const clattn_problem *problem, const struct tile *tile)
{
    const int depth = round_up(problem->head_dim_qk, tile->own.depth_chunk);
    const int q = tile->own.q_resident ? depth * (tile->config.block_m / 4 + 1) : 0;
    const int p = tile->config.block_n * (tile->config.block_m / 4 + 1);
    const int v = v_size(problem, tile, tile->own.value_chunk);
    const int slot = qk_size(tile) > v ? qk_size(tile) : v;
    /* Two numbers a row if a row is not within one warp, as in PARTS_SIZE. */
    const int parts = tile->config.block_n / tile->own.cols_per_item > 16 ? tile->config.block_m / 2 : 0;
    /* A flag a key, as in SEEN_SIZE. */
    const int flags = cla_problem_alters_scores(problem) ? tile->config.block_n : 1;
    return 16 * ((size_t)q + (size_t)p + (size_t)parts + (size_t)tile->own.slots * (size_t)slot) +
           sizeof(int32_t) * (size_t)flags + (tile->own.slot_barriers ? BARRIERS_SIZE : 0);
}

/* Whether chunks are filled only by copies that a barrier can count, and warps share nothing except chunks. Copies of fewer
 * than four elements, and those that widen a type, are ordinary stores, which it cannot count. Smaller heads gain nothing, and
 * lose 2% with a causal mask. */
static bool takes_slot_barriers(const struct facts *facts, const clattn_problem *problem, const struct tile *tile)
{
    const bool fp32 = problem->q.type == CLATTN_FP32 && problem->k.type == CLATTN_FP32 && problem->v.type == CLATTN_FP32;
    return copies_by_itself(facts) && tile->own.slots == 2 && fp32 && problem->head_dim_v > 128 &&
           problem->head_dim_qk % 4 == 0 && problem->head_dim_v % 4 == 0 && problem->k.strides.column == 1 &&
           problem->v.strides.column == 1 && tile->config.block_n / tile->own.cols_per_item <= 16 &&
           tile->config.work_group % 32 == 0 && !cla_problem_alters_scores(problem);
}

static void reside(const struct facts *facts, const clattn_problem *problem, struct tile *tile, struct residence residence)
{
    const int whole = round_up(problem->head_dim_qk, 8);
    tile->own.q_resident = residence.q_resident;
    tile->own.slots = residence.slots;
    tile->own.depth_chunk = residence.depth && residence.depth < whole ? residence.depth : whole;
    tile->own.value_chunk = tile->config.block_n;
    /* Chunks of V are about as large as those of K, since both use the same slots alternately. */
    while (tile->own.value_chunk > 4 && v_size(problem, tile, tile->own.value_chunk) * 2 > qk_size(tile) * 3)
        tile->own.value_chunk /= 2;
    tile->own.slot_barriers = takes_slot_barriers(facts, problem, tile);
    tile->config.local_bytes = local_bytes(problem, tile);
}

/* The first residence within `limit` bytes. */
static bool find_residence(const struct facts *facts, const clattn_problem *problem, struct tile *tile, uint64_t limit)
{
    for (size_t i = 0; i < sizeof residences / sizeof *residences; i++) {
        /* A second slot pays if copies overlap with products; otherwise more concurrent groups are better. */
        if (residences[i].slots == 2 && !copies_by_itself(facts))
            continue;
        reside(facts, problem, tile, residences[i]);
        if (tile->config.local_bytes <= limit)
            return true;
    }
    return false;
}

/* Whether groups of four elements along an axis of stride 1 are aligned to 4 elements if the start of the buffer is. */
static bool by_four(const clattn_problem *problem, int64_t heads, const clattn_tensor *tensor, int64_t near, int64_t far)
{
    return near == 1 && far % 4 == 0 && (problem->batch <= 1 || tensor->strides.batch % 4 == 0) &&
           (heads <= 1 || tensor->strides.head % 4 == 0);
}

/* Whether the sequence axis is the contiguous one. */
static bool along_keys(const clattn_tensor *tensor) { return tensor->strides.row == 1 && tensor->strides.column != 1; }

static bool is_by_four(const clattn_problem *problem, const clattn_tensor *tensor)
{
    return along_keys(tensor) ? by_four(problem, problem->heads_kv, tensor, tensor->strides.row, tensor->strides.column)
                              : by_four(problem, problem->heads_kv, tensor, tensor->strides.column, tensor->strides.row);
}

/* K in its order in memory is copied 16 bytes at a time, which takes a quarter of the copies, but products read more of it at
 * once. That is faster for the largest tile, whose copies wait longest for each other, and slower for the others
 * (docs/notes/simt.md). */
static bool k_by_rows(const struct facts *facts, const clattn_problem *problem, const struct shape *shape)
{
    return copies_by_itself(facts) && !along_keys(&problem->k) && shape->work_group == 256 && shape->rows * shape->cols == 64;
}

static void find_vectors(const clattn_problem *problem, struct tile *tile)
{
    tile->own.vector_k = is_by_four(problem, &problem->k) ? 4 : 1;
    tile->own.vector_v = is_by_four(problem, &problem->v) ? 4 : 1;
    tile->own.transposed = (along_keys(&problem->k) ? 1 : 0) | (along_keys(&problem->v) ? 2 : 0);
}

/* Rows of one K/V head, which may share a tile. */
static int64_t rows_of_group(const clattn_problem *problem) { return problem->seq_q * cla_group_size(problem); }

/* Few rows: the twin of cl/engines/simt/simt_few.cl. Up to FEW_MAX_ROWS rows of one K/V head, small tiles that read K and V
 * several times are faster than tall tiles that are mostly padding. */
enum { FEW_ITEMS_X = 32, FEW_MAX_ROWS = 32, FEW_MAX_DIM = 256, FEW_QUADS = 8 };

static int few_lanes(int64_t width) { return width <= 32 ? 4 : width <= 64 ? 8 : width <= 128 ? 16 : 32; }

/* Keys of a block: so many that each work-item has eight loads of 16 bytes in flight, but at least FEW_ITEMS_X. */
static int few_block_n(const clattn_problem *problem, int work_group)
{
    const int k = few_lanes(problem->head_dim_qk) * (problem->k.type == CLATTN_FP32 ? 2 : 1);
    const int v = few_lanes(problem->head_dim_v) * (problem->v.type == CLATTN_FP32 ? 2 : 1);
    const int keys = FEW_QUADS * work_group / (k > v ? k : v), most = work_group;
    return keys < FEW_ITEMS_X ? FEW_ITEMS_X : keys > most ? most : keys;
}

/* 16 bytes a work-item and step, as in RING_SIZE. */
static size_t few_ring_bytes(const clattn_problem *problem, const struct tile *tile)
{
    const int k = few_lanes(problem->head_dim_qk) * (problem->k.type == CLATTN_FP32 ? 2 : 1);
    const int v = few_lanes(problem->head_dim_v) * (problem->v.type == CLATTN_FP32 ? 2 : 1);
    return 16 * (size_t)tile->own.slots * (size_t)(tile->config.block_n * (k + v));
}

static size_t few_local_bytes(const clattn_problem *problem, const struct tile *tile)
{
    const int k_lanes = few_lanes(problem->head_dim_qk);
    const int pieces = tile->config.block_m * tile->config.block_n * (k_lanes / 4 | 1) * 4;
    const int sums = tile->config.work_group * 8 * tile->config.block_m;
    const int weights = tile->config.block_m * tile->config.block_n, folds = tile->config.block_m * FEW_ITEMS_X;
    const int floats = (pieces > sums ? pieces : sums) + weights + folds + round_up(tile->config.block_m, 4);
    return sizeof(float) * (size_t)floats + few_ring_bytes(problem, tile);
}

static struct tile few_tile(const struct facts *facts, const clattn_problem *problem, int rows)
{
    const int items_y = rows < 4 ? rows : 4;
    struct tile tile = {.config = {.engine = &cla_engine_simt,
                                   .spread = INT64_MAX,
                                   .block_m = rows,
                                   .work_group = FEW_ITEMS_X * items_y,
                                   .team = FEW_ITEMS_X * items_y,
                                   .packs_heads = true},
                        .own = {.few_rows = true,
                                .vector_k = 1,
                                .vector_v = 1,
                                .slots = copies_by_itself(facts) ? 2 : 0,
                                .rows_per_item = rows / items_y}};
    tile.config.block_n = few_block_n(problem, tile.config.work_group);
    tile.own.cols_per_item = tile.config.block_n / FEW_ITEMS_X;
    tile.config.local_bytes = few_local_bytes(problem, &tile);
    return tile;
}

/* Lists tiles of 1, 2, 4 or 8 rows of a K/V head; none for Intel's GPUs, whose compiler would keep nothing in registers.
 * Returns the number of tiles. */
static size_t few_configs(const struct facts *facts, const clattn_problem *problem, uint64_t items, struct config *list)
{
    const bool wide = problem->head_dim_qk > 128 || problem->head_dim_v > 128;
    const int most = wide && (problem->k.type == CLATTN_FP32 || problem->v.type == CLATTN_FP32) ? 4 : 8;
    /* Thirty-two loads of 16 bytes and the code of options spill in the loops of a compiler with 256 registers (gfx1030). */
    const bool fp32 = problem->k.type == CLATTN_FP32 || problem->v.type == CLATTN_FP32;
    const bool long_rows = problem->head_dim_qk > 64 || problem->head_dim_v > 64;
    if (!facts->nv_compute && cla_problem_alters_scores(problem) && fp32 && long_rows)
        return 0;
    if (cla_facts_is_intel_gpu(facts) || problem->head_dim_qk > FEW_MAX_DIM || problem->head_dim_v > FEW_MAX_DIM ||
        rows_of_group(problem) > FEW_MAX_ROWS)
        return 0;
    int rows = 1;
    while (rows < most && rows < rows_of_group(problem))
        rows *= 2;
    size_t count = 0;
    for (; rows >= 1; rows /= 2) {
        /* On a CPU this engine only serves tests, and each tile is a program that takes seconds to build. */
        if (facts->device_kind == DEVICE_CPU && rows != 4)
            continue;
        const struct tile tile = few_tile(facts, problem, rows);
        if ((uint64_t)tile.config.work_group <= items && tile.config.local_bytes <= facts->local_mem_static)
            list[count++] = config_of(&tile);
    }
    return count;
}

enum { MAX_ACCUMULATORS = 128 };

/* Above 0: the compiler spills the sums of a work-item. Intel's compiler moves all of them to memory if a few do not fit in
 * registers, or if options make the loop over columns too long to be unrolled (docs/portability.md); among such tiles, those
 * with many sums are the slowest. */
static int spills(const struct facts *facts, const clattn_problem *problem, const struct tile *tile)
{
    const int floats = tile->own.rows_per_item * (o_cols(problem, tile) + tile->own.cols_per_item);
    /* Operands of one product: if there are many columns, eight are read at once. */
    const int cols = o_cols(problem, tile), read = tile->own.rows_per_item + (cols % 8 == 0 ? 8 : cols);
    if (!cla_facts_is_intel_gpu(facts))
        return floats + read > (facts->nv_compute ? 176 : 112) ? 4 : 0;
    const bool rolled = cla_problem_alters_scores(problem) && tile->own.cols_per_item > 1;
    return floats > 96 ? 6 : rolled || floats > (cla_facts_has_large_registers(facts) ? 34 : 20) ? 4 : 0;
}

/* Higher is worse; shapes of equal rank keep the order of the table. */
static int rank(const struct facts *facts, const clattn_problem *problem, const struct tile *tile)
{
    /* With one group on a compute unit, nothing overlaps its waits; a small one also leaves most of the unit idle. */
    const bool alone =
        tile->config.local_bytes > facts->local_mem_static / 2 && (tile->config.work_group < 256 || !copies_by_itself(facts));
    /* With few rows, all keys are read for little work; with few keys a block, there are many blocks. */
    const bool small = tile->config.block_m * tile->config.block_n < 1024;
    /* Tall tiles that are too few for half of the device, or at least half of which is padding. */
    const int64_t tiles = cla_times(problem->batch * problem->heads_q, cla_divide_up(problem->seq_q, tile->config.block_m));
    const bool starves = tile->config.block_m > 128 && (uint64_t)tiles * 2 <= facts->compute_units;
    const bool empty = tile->config.block_m >= 2 * rows_of_group(problem);
    const bool waits = tile->own.slots == 1 && copies_by_itself(facts);
    const bool wastes = problem->causal && tile->config.block_m < tile->config.block_n;
    return spills(facts, problem, tile) + (small ? 3 : 0) + (alone || waits || starves || empty ? 2 : 0) + (wastes ? 1 : 0);
}

static size_t configs(const struct facts *facts, const clattn_problem *problem, struct config list[CLA_MAX_CONFIGS])
{
    const uint64_t items = facts->max_work_group < facts->max_work_item_0 ? facts->max_work_group : facts->max_work_item_0;
    int ranks[CLA_MAX_CONFIGS];
    const size_t usual = sizeof shapes / sizeof *shapes, narrow = sizeof narrow_shapes / sizeof *narrow_shapes;
    const size_t last = usual + (cla_facts_is_intel_gpu(facts) ? narrow : 0), few = few_configs(facts, problem, items, list);
    size_t count = few;
    for (size_t i = 0; i < last && count < CLA_MAX_CONFIGS; i++) {
        const struct shape *const s = i < usual ? &shapes[i] : &narrow_shapes[i - usual];
        struct tile tile = {
            .config = {.engine = &cla_engine_simt,
                       .spread = INT64_MAX,
                       .block_m = s->work_group / s->items_x * s->rows,
                       .block_n = s->items_x * s->cols,
                       .work_group = s->work_group,
                       .team = s->work_group,
                       .packs_heads = true},
            .own = {.rows_per_item = s->rows, .cols_per_item = s->cols, .k_by_rows = k_by_rows(facts, problem, s)}};
        if ((uint64_t)s->work_group > items || s->rows * o_cols(problem, &tile) > MAX_ACCUMULATORS)
            continue;
        /* If one group cannot keep a compute unit busy, two must fit at once. */
        const bool half = s->work_group < 256 || !copies_by_itself(facts);
        if (!(half && find_residence(facts, problem, &tile, facts->local_mem_static / 2)) &&
            !find_residence(facts, problem, &tile, facts->local_mem_static))
            continue;
        find_vectors(problem, &tile);
        const int r = rank(facts, problem, &tile);
        size_t at = count++;
        for (; at > few && ranks[at - 1] > r; at--) {
            ranks[at] = ranks[at - 1];
            list[at] = list[at - 1];
        }
        ranks[at] = r;
        list[at] = config_of(&tile);
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
    const struct tile tile = tile_of(config);
    cla_text_add(out, "#define COLS_PER_ITEM %d\n#define DEPTH_CHUNK %d\n", tile.own.cols_per_item, tile.own.depth_chunk);
    if (tile.own.few_rows)
        cla_text_add(out, "#define FEW_ROWS\n#define RING_SLOTS %d\n", tile.own.slots);
    if (facts->device_kind == DEVICE_CPU)
        cla_text_add(out, "#define KEEP_LOOPS\n");
    cla_text_add(out, "#define K_ALONG_KEYS %d\n#define K_BY_FOUR %d\n", tile.own.transposed & 1, tile.own.vector_k == 4);
    cla_text_add(out, "#define K_BY_ROWS %d\n", tile.own.k_by_rows);
    if (cla_facts_is_intel_gpu(facts) && !cla_facts_has_large_registers(facts))
        cla_text_add(out, "#define FEW_REGISTERS\n");
    cla_text_add(out, "#define LOCAL_BYTES %zu\n", config->local_bytes);
    if (facts->nv_compute)
        cla_text_add(out, "#define NVIDIA_PTX %" PRIu64 "\n", facts->nv_compute);
    cla_text_add(out, "#define Q_RESIDENT %d\n#define ROWS_PER_ITEM %d\n", tile.own.q_resident, tile.own.rows_per_item);
    cla_text_add(out, "#define SLOTS %d\n#define SLOT_BARRIERS %d\n", tile.own.slots, tile.own.slot_barriers);
    cla_text_add(out, "#define V_ALONG_KEYS %d\n#define V_BY_FOUR %d\n", tile.own.transposed >> 1, tile.own.vector_v == 4);
    cla_text_add(out, "#define VALUE_CHUNK %d\n#define V_VECTOR %d\n", tile.own.value_chunk, v_vector(problem, &tile));
}

const struct engine cla_engine_simt = {
    .name = "simt",
    .file = "cl/engines/simt/simt.cl",
    .kernel_file = "cl/attention.cl",
    .merges = true,
    .serves = serves,
    .configs = configs,
    .defines = defines,
};
