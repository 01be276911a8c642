/* SPDX-License-Identifier: Apache-2.0
 * cpu_amx: bf16 on x86 processors with matrix tiles, through inline assembly in OpenCL C. */
#include "../processor.h"
#include "cpu.h"

#include <string.h>

enum { MAX_HEAD_DIM = 512, LANES = 16 };

static bool serves(const struct facts *facts, const clattn_problem *problem, char *why, size_t why_size)
{
    if (!cla_cpu_is_known(facts, why, why_size))
        return false;
    if (!facts->x86_amx)
        return cla_decline(why, why_size, "needs a processor of this host with AMX tiles of bf16");
    if (!strstr(facts->platform_name, "Portable Computing Language"))
        return cla_decline(why, why_size, "this compiler does not take inline assembly");
    if (problem->q.type != CLATTN_BF16 || problem->k.type != CLATTN_BF16 || problem->v.type != CLATTN_BF16)
        return cla_decline(why, why_size, "needs Q, K and V all bf16");
    if (problem->head_dim_qk > MAX_HEAD_DIM || problem->head_dim_v > MAX_HEAD_DIM)
        return cla_decline(why, why_size, "head sizes over %d", MAX_HEAD_DIM);
    if (problem->k.stride_dim != 1 || problem->v.stride_dim != 1)
        return cla_decline(why, why_size, "needs the elements of a row of K and of V side by side");
    return true;
}

/* The system must let a process use tiles; that cannot be taken back, and makes the frames of its signals larger. */
static bool permit(char *why, size_t why_size)
{
    return cla_processor_allow_tiles() || cla_decline(why, why_size, "the system does not let this process use AMX tiles");
}

/* Each transposed block of V serves all rows of a tile; fewer where tiles would be half empty or leave cores idle. */
static int vectors(const struct facts *facts, const clattn_problem *problem)
{
    const int64_t group = problem->heads_kv > 0 ? problem->heads_q / problem->heads_kv : 1;
    int count = 8;
    for (; count > 2; count /= 2) {
        const int64_t rows = (int64_t)LANES * count;
        const int64_t tiles = problem->seq_q < rows ? problem->heads_kv * ((problem->seq_q * group + rows - 1) / rows)
                                                    : problem->heads_q * ((problem->seq_q + rows - 1) / rows);
        if (problem->seq_q * group > rows / 2 && problem->batch * tiles >= 4 * (int64_t)facts->compute_units)
            break;
    }
    return count;
}

static size_t configs(const struct facts *facts, const clattn_problem *problem, struct config list[CLA_MAX_CONFIGS])
{
    const int count = vectors(facts, problem);
    const struct config config = {.engine = &cla_engine_cpu_amx,
                                  .block_m = LANES * count,
                                  .block_n = 128,
                                  .work_group = 1,
                                  .team = 1,
                                  .packs_heads = true,
                                  .rows_per_item = count};
    list[0] = config;
    return 1;
}

static void defines(const struct facts *facts, const clattn_problem *problem, const struct config *config, struct text *out)
{
    (void)facts, (void)problem;
    cla_text_add(out, "#define PAIR_TILES\n#define TRIMS_KEYS\n#define VECTORS %d\n", config->rows_per_item);
}

const struct engine cla_engine_cpu_amx = {
    .name = "cpu_amx",
    .file = "cl/engines/cpu_amx.cl",
    .kernel_file = "cl/attention.cl",
    .vendor = true,
    .permit = permit,
    .serves = serves,
    .configs = configs,
    .defines = defines,
};
