/* SPDX-License-Identifier: Apache-2.0
 * An engine: one way to do the two tile products. Its host half says where it applies, with which tiles, and what stands in its
 * kernel text; all of it pure functions of facts and problem. docs/adding-an-engine.md walks through one. */
#ifndef CLATTN_ENGINE_H
#define CLATTN_ENGINE_H

#include "facts.h"
#include "launch.h"
#include "text.h"

struct engine;

enum { CLA_OWN_NUMBERS = 48 };

/* What was chosen. The names are the field's: a tile is block_m rows by block_n keys. */
struct config {
    const struct engine *engine;
    int block_m, block_n;
    int work_group;     /* work-items of a group */
    int team;           /* of these, how many share one tile; divides work_group */
    size_t local_bytes; /* local memory that the text declares */
    bool packs_heads;   /* query heads of a group may share a tile's rows when there are few queries */
    /* Keys of one chunk where few queries leave most of the device idle, a multiple of block_n; 0: keys are not split. Set by
     * cla_choose_split. */
    int chunk;
    int merge_group, merge_columns, head_dim_v; /* for the launch that adds the chunks up */
    bool merge_inside;                          /* there is none: the group that ends a tile's last chunk does it */
    bool scores_only;   /* the scores of a head range, for a plan whose O another engine gives. Set by cla_choose_scores */
    int classify_group; /* of the launch that looks through explicit masks first; 0: there is none */
    int64_t spread;     /* bytes of K and V over which running tiles may spread, so that long ones come first; 0: one head */
    int resident;       /* groups that a launch has at most, each taking one tile after another; 0: a group a tile */
    /* The engine's own numbers, as it keeps them by cla_config_keep. */
    unsigned char own[CLA_OWN_NUMBERS];
};

enum { CLA_MAX_CONFIGS = 28, CLA_MAX_LAUNCHES = 4, CLA_MAX_ENGINES = 16 };

struct engine {
    const char *name;
    const char *file; /* its device half, such as "cl/engines/simt/simt.cl" */
    const char
        *kernel_file; /* the loop: "cl/attention.cl" for every fused engine; NULL: its device half has kernels of its own */
    bool on_request;  /* chosen only when the caller names it */
    bool vendor;      /* goes past the standard: believed only after the self-check (src/selfcheck.h) */
    const char *ptx_target; /* NULL, or the architecture for which its program is built a second time (src/ptx.h) */
    bool has_scores;        /* gives the caller's scores along with O */
    bool visits_classes;    /* its own launches include the look through explicit masks, where config.classify_group is set */
    bool merges;         /* its groups can add up the chunks of keys themselves: each is whole warps, and a tile's only one */
    bool rounds_weights; /* its second product takes weights in V's storage type */
    bool options_apart;  /* each set of options has a text of its own; else one text has all, and more plans share a build */
    bool numbers_calls;  /* its groups share what begins anew with each call: they want args.call_number */

    /* Does it serve this problem on this device? If not, `why` says so in a few words. The problem is valid. */
    bool (*serves)(const struct facts *facts, const clattn_problem *problem, char *why, size_t why_size);
    /* Asks the operating system for what the engine's instructions need of it; NULL: nothing. Called once it is to serve. What
     * changes the process is asked only where the context's options allow it: the facts say so. */
    bool (*permit)(char *why, size_t why_size);
    /* Tiles that fit the device's limits, best first; at least one where it serves. Engines run at block_m != block_n,
     * which shows swapped axes, unless a vendor's instructions are best at square tiles. */
    size_t (*configs)(const struct facts *facts, const clattn_problem *problem, struct config list[CLA_MAX_CONFIGS]);
    /* Adds `#define NAME value` lines, beyond those that every engine gets (types, head sizes, BLOCK_N, WORK_GROUP, HAS_FMA).
     */
    void (*defines)(const struct facts *facts, const clattn_problem *problem, const struct config *config, struct text *out);
    /* The launches of a call of this size, in order; NULL: one of "attention", a team a tile. */
    size_t (*launches)(const struct config *config, const struct launch_args *args, struct launch list[CLA_MAX_LAUNCHES]);
    /* Workspace at the problem's upper bounds; NULL: none. */
    size_t (*workspace)(const clattn_problem *problem, const struct config *config);
};

/* In the order of engine_list.h. */
extern const struct engine *const cla_engines[];
extern const size_t cla_engine_count;

/* cla_engine_NAME, each defined by its host half. */
#define ENGINE(name) extern const struct engine cla_engine_##name;
#include "engine_list.h"
#undef ENGINE

const struct engine *cla_engine_find(const char *name); /* NULL if there is none */

/* An engine's own numbers of a configuration, a struct without padding: only the engine knows what they mean, and equal ones
 * have equal bytes. */
void cla_config_keep(struct config *config, const void *numbers, size_t size);
void cla_config_recall(const struct config *config, void *numbers, size_t size);

/* A pass-through for `why`, as in: return cla_decline(why, size, "needs %d bytes", n). Always false. */
bool cla_decline(char *why, size_t size, const char *format, ...) CLA_PRINTF(3, 4);

#endif
