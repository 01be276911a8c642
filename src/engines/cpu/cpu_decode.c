/* SPDX-License-Identifier: Apache-2.0
 * cpu_decode: few rows and many keys on CPU devices, at the speed of memory; lanes are elements of the head. */
#include "cpu.h"
#include "../../problem.h"

enum { MAX_ROWS = 8, MAX_HEAD_DIM = 1024 };

/* The most rows that share keys in a call. */
static int64_t rows_at_most(const clattn_problem *problem) { return problem->seq_q * cla_group_size(problem); }

static bool serves(const struct facts *facts, const clattn_problem *problem, char *why, size_t why_size)
{
    const int width = cla_cpu_lanes(facts), most = width < MAX_ROWS ? width : MAX_ROWS;
    if (!cla_cpu_is_known(facts, why, why_size))
        return false;
    if (rows_at_most(problem) > most)
        return cla_decline(why, why_size, "for at most %d queries of heads that share keys", most);
    if (problem->head_dim_qk < width || problem->head_dim_v < width)
        return cla_decline(why, why_size, "head sizes under %d", width);
    if (problem->head_dim_qk > MAX_HEAD_DIM || problem->head_dim_v > MAX_HEAD_DIM)
        return cla_decline(why, why_size, "head sizes over %d do not fit a work-item's private memory", MAX_HEAD_DIM);
    if (problem->k.strides.column != 1 || problem->v.strides.column != 1)
        return cla_decline(why, why_size, "needs contiguous rows of K and of V");
    return true;
}

static size_t configs(const struct facts *facts, const clattn_problem *problem, struct config list[CLA_MAX_CONFIGS])
{
    const int64_t rows = rows_at_most(problem);
    (void)facts;
    const struct config config = {.engine = &cla_engine_cpu_decode,
                                  .block_m = rows <= 1   ? 1
                                             : rows <= 4 ? 4
                                                         : 8,
                                  .block_n = 64,
                                  .work_group = 1,
                                  .team = 1,
                                  .packs_heads = true};
    list[0] = config;
    return 1;
}

static void defines(const struct facts *facts, const clattn_problem *problem, const struct config *config, struct text *out)
{
    (void)problem;
    if (cla_cpu_has_prefetch(facts))
        cla_text_add(out, "#define HAS_PREFETCH\n");
    cla_text_add(out, "#define LANES %d\n#define TRIMS_KEYS\n#define WIDTH %d\n", config->block_m, cla_cpu_lanes(facts));
}

const struct engine cla_engine_cpu_decode = {
    .name = "cpu_decode",
    .file = "cl/engines/cpu/cpu_decode.cl",
    .kernel_file = "cl/attention.cl",
    .serves = serves,
    .configs = configs,
    .defines = defines,
};
