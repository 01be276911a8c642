/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel_text.h"

#include "problem.h"
#include "quirks.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Twins of those in cl/args.cl. */
enum { OPTION_MASK = 1, OPTION_BIAS = 2, OPTION_SOFTCAP = 4, OPTION_SLOPES = 8 };

/* The options that the kernel source contains. */
static int score_options(const clattn_problem *p, const struct engine *engine)
{
    if (!engine->options_apart)
        return cla_problem_alters_scores(p) ? OPTION_MASK | OPTION_BIAS | OPTION_SOFTCAP | OPTION_SLOPES : 0;
    return (p->mask.present ? OPTION_MASK : 0) | (p->bias.present ? OPTION_BIAS : 0) |
           (p->softcap != 0.0f ? OPTION_SOFTCAP : 0) | (p->alibi.present ? OPTION_SLOPES : 0);
}

void cla_kernel_defines(const struct facts *facts, const clattn_problem *problem, const struct config *config, struct text *out)
{
    cla_text_add(out, "#define BLOCK_M %d\n#define BLOCK_N %d\n", config->block_m, config->block_n);
    if (facts->fma)
        cla_text_add(out, "#define HAS_FMA 1\n");
    cla_text_add(out, "#define HEAD_DIM %" PRId64 "\n#define HEAD_DIM_V %" PRId64 "\n", problem->head_dim_qk,
                 problem->head_dim_v);
    cla_text_add(out, "#define K_TYPE %d\n#define O_TYPE %d\n#define Q_TYPE %d\n", (int)problem->k.type, (int)problem->o.type,
                 (int)problem->q.type);
    if (cla_has_quirk(facts, QUIRK_LOADS_BOTH_WAYS))
        cla_text_add(out, "#define LOADS_EVERY_WAY\n");
    if (config->chunk)
        cla_text_add(out, "#define MERGE_COLUMNS %d\n#define MERGE_GROUP %d\n", config->merge_columns, config->merge_group);
    if (config->merge_inside)
        cla_text_add(out, "#define MERGE_INSIDE\n");
    if (config->classify_group)
        cla_text_add(out, "#define CLASSIFY_GROUP %d\n", config->classify_group);
    cla_text_add(out, "#define PREPASS %d\n", config->classify_group != 0);
    cla_text_add(out, "#define SCORE_OPTIONS %d\n#define SPLIT %d\n", score_options(problem, config->engine),
                 config->chunk != 0);
    cla_text_add(out, "#define TEAM %d\n#define V_TYPE %d\n#define WORK_GROUP %d\n", config->team, (int)problem->v.type,
                 config->work_group);
    if (config->engine->defines)
        config->engine->defines(facts, problem, config, out);
}

clattn_status cla_kernel_source(const struct facts *facts, const clattn_problem *problem, const struct config *config,
                                const char *folder, struct source *source, clattn_error *error)
{
    /* The engine's file comes after the rows and keys that it processes and before the kernels that call it. */
    const char *const files[] = {"cl/base.cl", "cl/args.cl", "cl/tile.cl", config->engine->file, config->engine->kernel_file};
    struct text defines = {0};
    cla_kernel_defines(facts, problem, config, &defines);
    clattn_status status =
        defines.failed ? cla_fail(error, CLATTN_OUT_OF_HOST_MEMORY, "", "out of host memory while composing kernel source")
                       : cla_source_compose(source, defines.data, files, sizeof files / sizeof *files, folder, error);
    cla_text_free(&defines);
    snprintf(source->kernel, sizeof source->kernel,
             "%s (block_m %d, block_n %d, work_group %d, head_dim %" PRId64 "/%" PRId64 ")", config->engine->name,
             config->block_m, config->block_n, config->work_group, problem->head_dim_qk, problem->head_dim_v);
    return status;
}
