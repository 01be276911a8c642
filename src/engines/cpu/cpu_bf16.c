/* SPDX-License-Identifier: Apache-2.0
 * cpu_bf16: bf16 on x86 processors with AVX512-BF16, through inline assembly in OpenCL C. */
#include "cpu.h"
#include "../../quirks.h"

#include <string.h>

static bool serves(const struct facts *facts, const clattn_problem *problem, char *why, size_t why_size)
{
    if (!cla_cpu_serves_pairs(facts, problem, why, why_size))
        return false;
    if (!facts->x86_bf16)
        return cla_decline(why, why_size, "needs a processor of this host with AVX512-BF16");
    /* The throughput is half an instruction a clock; fp32 has two. */
    if (cla_has_quirk(facts, QUIRK_SLOW_BF16_PAIRS))
        return cla_decline(why, why_size, "on Intel's processors its instruction is slower than two of fp32");
    if (problem->head_dim_qk % 2 != 0)
        return cla_decline(why, why_size, "needs an even head size");
    return true;
}

enum { LANES = 16 };

static size_t configs(const struct facts *facts, const clattn_problem *problem, struct config list[CLA_MAX_CONFIGS])
{
    const int count = cla_cpu_vectors(facts, problem, 4, 1);
    list[0] = cla_cpu_config(&cla_engine_cpu_bf16, LANES, count, 96);
    return 1;
}

static void defines(const struct facts *facts, const clattn_problem *problem, const struct config *config, struct text *out)
{
    const int vectors = config->block_m / LANES;
    (void)facts, (void)problem;
    cla_text_add(out, "#define KEYS %d\n#define PAIR_TILES\n#define TRIMS_KEYS\n#define VECTORS %d\n", vectors == 4 ? 6 : 8,
                 vectors);
}

const struct engine cla_engine_cpu_bf16 = {
    .name = "cpu_bf16",
    .file = "cl/engines/cpu/cpu_bf16.cl",
    .kernel_file = "cl/attention.cl",
    .vendor = true,
    .rounds_weights = true,
    .serves = serves,
    .configs = configs,
    .defines = defines,
};
