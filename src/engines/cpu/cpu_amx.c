/* SPDX-License-Identifier: Apache-2.0
 * cpu_amx: bf16 on x86 processors with matrix tiles, through inline assembly in OpenCL C. */
#include "../../os/os.h"
#include "cpu.h"

static bool serves(const struct facts *facts, const clattn_problem *problem, char *why, size_t why_size)
{
    if (!cla_cpu_serves_pairs(facts, problem, why, why_size))
        return false;
    return facts->x86_amx || cla_decline(why, why_size, "needs a processor of this host with AMX tiles of bf16");
}

/* The system must permit a process to use tiles; that cannot be undone, and makes its signal frames larger. */
static bool permit(char *why, size_t why_size)
{
    return cla_processor_allow_tiles() || cla_decline(why, why_size, "the system does not let this process use AMX tiles");
}

enum { LANES = 16 };

static size_t configs(const struct facts *facts, const clattn_problem *problem, struct config list[CLA_MAX_CONFIGS])
{
    /* Each transposed block of V serves all rows of a tile. */
    const int count = cla_cpu_vectors(facts, problem, 8, 2);
    list[0] = cla_cpu_config(&cla_engine_cpu_amx, LANES, count, 128);
    return 1;
}

static void defines(const struct facts *facts, const clattn_problem *problem, const struct config *config, struct text *out)
{
    (void)facts, (void)problem;
    cla_text_add(out, "#define PAIR_TILES\n#define TRIMS_KEYS\n#define VECTORS %d\n", config->block_m / LANES);
}

const struct engine cla_engine_cpu_amx = {
    .name = "cpu_amx",
    .file = "cl/engines/cpu/cpu_amx.cl",
    .kernel_file = "cl/attention.cl",
    .vendor = true,
    .rounds_weights = true,
    .permit = permit,
    .serves = serves,
    .configs = configs,
    .defines = defines,
};
