/* SPDX-License-Identifier: Apache-2.0
 * nv_tf32x3: fp32 on the tensor cores of NVIDIA GPUs from sm_80 on, three products of tf32 for each of fp32. Chosen on request
 * only: its sums differ from plain fp32 in the last digits, and infinities in visible keys become NaN. */
#include "nv_mma.h"

/* Warps, key warps, row tiles of a warp, keys of a block, slots. Preferred ones first: with two row tiles a warp uses an
 * operand of K or V, and its remainder, twice. */
static const struct nv_tile tiles[] = {
    {4, 1, 2, 64, 1}, {4, 1, 2, 32, 1}, {8, 1, 1, 32, 1}, {4, 1, 1, 32, 2},
    {4, 1, 1, 32, 1}, {4, 1, 1, 16, 1}, {2, 1, 1, 16, 1},
};

/* Everything else, mainly the remainders, needs up to 90 of 255 registers. */
enum { MAX_ACCUMULATORS = 160 };

static size_t configs(const struct facts *facts, const clattn_problem *problem, struct config list[CLA_MAX_CONFIGS])
{
    size_t count = 0;
    for (size_t i = 0; i < sizeof tiles / sizeof *tiles && count < CLA_MAX_CONFIGS; i++)
        if (cla_nv_mma_tile(&cla_engine_nv_tf32x3, &tiles[i], MAX_ACCUMULATORS, facts, problem, &list[count]))
            count++;
    return count;
}

static bool serves(const struct facts *facts, const clattn_problem *problem, char *why, size_t why_size)
{
    if (problem->q.type != CLATTN_FP32 || problem->k.type != CLATTN_FP32 || problem->v.type != CLATTN_FP32)
        return cla_decline(why, why_size, "needs Q, K and V in fp32");
    return cla_nv_mma_fits(&cla_engine_nv_tf32x3, facts, problem, why, why_size);
}

const struct engine cla_engine_nv_tf32x3 = {
    .name = "nv_tf32x3",
    .file = "cl/engines/nvidia/mma/nv_mma.cl",
    .kernel_file = "cl/attention.cl",
    .on_request = true,
    .vendor = true,
    .serves = serves,
    .configs = configs,
    .defines = cla_nv_mma_defines,
};
