/* SPDX-License-Identifier: Apache-2.0
 * cpu: a lane is a query, and a work-item computes a tile of whole vectors of queries. For CPU devices, where local memory is
 * plain memory and sharing it only makes work-items wait for each other. */
#include "cpu.h"
#include "../../problem.h"
#include "../../quirks.h"

#include "../../arithmetic.h"

#include <string.h>

enum { MAX_HEAD_DIM = 1024 };

bool cla_cpu_is_known(const struct facts *facts, char *why, size_t why_size)
{
    if (facts->device_kind != DEVICE_CPU)
        return cla_decline(why, why_size, "for CPU devices only");
    if (cla_has_quirk(facts, QUIRK_WRONG_VECTORS))
        return cla_decline(why, why_size, "this simulator mistranslates vector code");
    return true;
}

static bool serves(const struct facts *facts, const clattn_problem *problem, char *why, size_t why_size)
{
    if (!cla_cpu_is_known(facts, why, why_size))
        return false;
    if (problem->head_dim_qk > MAX_HEAD_DIM || problem->head_dim_v > MAX_HEAD_DIM)
        return cla_decline(why, why_size, "head sizes over %d do not fit a work-item's private memory", MAX_HEAD_DIM);
    return true;
}

int cla_cpu_lanes(const struct facts *facts) { return facts->vector_width >= 16 ? 16 : facts->vector_width >= 8 ? 8 : 4; }

int cla_cpu_vectors(const struct facts *facts, const clattn_problem *problem, int most, int least)
{
    const int64_t group = cla_group_size(problem);
    int count = most;
    for (; count > least; count /= 2) {
        const int64_t rows = (int64_t)cla_cpu_lanes(facts) * count;
        const int64_t tiles = problem->seq_q < rows ? problem->heads_kv * cla_divide_up(problem->seq_q * group, rows)
                                                    : problem->heads_q * cla_divide_up(problem->seq_q, rows);
        const bool half_empty = problem->seq_q * group <= rows / 2;
        if (!half_empty && (uint64_t)cla_times(problem->batch, tiles) / 4 >= facts->compute_units)
            break;
    }
    return count;
}

struct config cla_cpu_config(const struct engine *engine, int lanes, int vectors, int block_n)
{
    const struct config config = {
        .engine = engine, .block_m = lanes * vectors, .block_n = block_n, .work_group = 1, .team = 1, .packs_heads = true};
    return config;
}

enum { MAX_PAIRS_HEAD_DIM = 512 };

bool cla_cpu_serves_pairs(const struct facts *facts, const clattn_problem *problem, char *why, size_t why_size)
{
    if (!cla_cpu_is_known(facts, why, why_size))
        return false;
    if (problem->q.type != CLATTN_BF16 || problem->k.type != CLATTN_BF16 || problem->v.type != CLATTN_BF16)
        return cla_decline(why, why_size, "needs Q, K and V all bf16");
    if (!cla_facts_is_pocl(facts))
        return cla_decline(why, why_size, "this compiler does not accept inline assembly");
    if (problem->head_dim_qk > MAX_PAIRS_HEAD_DIM || problem->head_dim_v > MAX_PAIRS_HEAD_DIM)
        return cla_decline(why, why_size, "head sizes over %d", MAX_PAIRS_HEAD_DIM);
    if (problem->k.strides.column != 1 || problem->v.strides.column != 1)
        return cla_decline(why, why_size, "needs contiguous rows of K and of V");
    return true;
}

/* Each loaded key serves all vectors of rows, so more vectors are better as long as their sums stay in registers (16 with 8
 * lanes, otherwise 32) and Q and O in the cache. */
static int vectors(const struct facts *facts, const clattn_problem *problem)
{
    const bool large = problem->head_dim_qk > 256 || problem->head_dim_v > 256;
    return cla_cpu_vectors(facts, problem, cla_cpu_lanes(facts) == 8 || large ? 2 : 4, 1);
}

/* Multiples of 6 and 8 keys. Scores share the first-level cache with Q and O; with one vector of rows, memory limits the
 * speed, and fewer keys keep its reads continuous. */
static int keys_of_tile(const clattn_problem *problem, int vectors)
{
    return problem->head_dim_qk > 128 || problem->head_dim_v > 128 || vectors == 1 ? 48 : 96;
}

static size_t configs(const struct facts *facts, const clattn_problem *problem, struct config list[CLA_MAX_CONFIGS])
{
    const int count = vectors(facts, problem);
    list[0] = cla_cpu_config(&cla_engine_cpu, cla_cpu_lanes(facts), count, keys_of_tile(problem, count));
    return 1;
}

/* Whether K and V are read in place; narrower types are widened into a copy. */
static bool reads_in_place(const clattn_problem *problem)
{
    return problem->k.type == CLATTN_FP32 && problem->v.type == CLATTN_FP32;
}

/* Keys whose sums are in registers at once: the sums take 24 of 32 registers or 12 of 16, and each row of K needs a register
 * for its address. The same holds for columns of V; widened ones are read LANES at a time. */
static int products(int lanes, int vectors_of_rows)
{
    return vectors_of_rows == 4 || (lanes == 8 && vectors_of_rows == 2) ? 6 : 8;
}

bool cla_cpu_has_prefetch(const struct facts *facts) { return cla_facts_is_pocl(facts) || cla_facts_is_intel_runtime(facts); }

static void defines(const struct facts *facts, const clattn_problem *problem, const struct config *config, struct text *out)
{
    const bool in_place = reads_in_place(problem);
    const int lanes = cla_cpu_lanes(facts), vectors_of_rows = config->block_m / lanes, keys = products(lanes, vectors_of_rows);
    cla_text_add(out, "#define COLUMNS %d\n", in_place ? keys : keys == 8 && lanes >= 8 ? 8 : 4);
    if (cla_cpu_has_prefetch(facts))
        cla_text_add(out, "#define HAS_PREFETCH\n");
    cla_text_add(out, "#define KEYS %d\n#define KV_IN_PLACE %d\n", keys, in_place);
    cla_text_add(out, "#define LANES %d\n#define PAIR_TILES\n#define TRIMS_KEYS\n#define VECTORS %d\n", lanes, vectors_of_rows);
}

const struct engine cla_engine_cpu = {
    .name = "cpu",
    .file = "cl/engines/cpu/cpu.cl",
    .kernel_file = "cl/attention.cl",
    .serves = serves,
    .configs = configs,
    .defines = defines,
};
