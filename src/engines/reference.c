/* SPDX-License-Identifier: Apache-2.0
 * reference: plain loops, a work-item a row. Serves almost every problem, so that there is always an engine. */
#include "../engine.h"

static bool serves(const struct facts *facts, const clattn_problem *problem, char *why, size_t why_size)
{
    (void)facts;
    if (problem->head_dim_v > 4096)
        return cla_decline(why, why_size, "head_dim_v over 4096 does not fit a work-item's private memory");
    return true;
}

static size_t configs(const struct facts *facts, const clattn_problem *problem, struct config list[CLA_MAX_CONFIGS])
{
    /* Rows are independent, so any group size works. 64 fills a wave of every GPU; large heads take fewer, since each row
     * keeps head_dim_v floats and a CPU device holds those of a whole group at once. */
    uint64_t limit = facts->max_work_group < facts->max_work_item_0 ? facts->max_work_group : facts->max_work_item_0;
    int work_group = problem->head_dim_v > 256 ? 16 : 64;
    while (work_group > 1 && (uint64_t)work_group > limit)
        work_group /= 2;
    /* With 16 keys a row Intel's compiler spills between the products of large heads. */
    const int block_n = cla_facts_has_large_registers(facts) ? 8 : 16;
    const struct config config = {
        .engine = &cla_engine_reference, .block_m = 1, .block_n = block_n, .work_group = work_group, .team = 1};
    list[0] = config;
    return 1;
}

const struct engine cla_engine_reference = {
    .name = "reference",
    .file = "cl/engines/reference/reference.cl",
    .kernel_file = "cl/attention.cl",
    .serves = serves,
    .configs = configs,
};
