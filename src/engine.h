/* SPDX-License-Identifier: Apache-2.0
 * An engine: one way to compute the two tile products. Its host half says which problems it serves, with which tiles, and
 * which definitions its kernel source gets; all are pure functions of facts and problem. docs/adding-an-engine.md explains one
 * step by step. */
#ifndef CLATTN_ENGINE_H
#define CLATTN_ENGINE_H

#include "facts.h"
#include "launch.h"
#include "text.h"

struct engine;

enum { CLA_OWN_NUMBERS = 48 };

/* A configuration of an engine. A tile is block_m rows by block_n keys. */
struct config {
    const struct engine *engine;
    int block_m, block_n;
    int work_group;     /* work-items of a group */
    int team;           /* number of these that share one tile; divides work_group */
    size_t local_bytes; /* local memory that the kernel source declares */
    bool packs_heads;   /* with few queries, the query heads of a group may share a tile's rows */
    /* Keys of one chunk, a multiple of block_n, when few queries would leave most of the device idle; 0: keys are not split.
     * Set by cla_decide. */
    int chunk;
    int merge_group, merge_columns, head_dim_v; /* for the launch that merges the chunks */
    bool merge_inside;                          /* no such launch: the group that ends a tile's last chunk merges */
    bool scores_only;   /* only the scores of a head range; another engine computes O. Set by cla_choose_scores */
    int classify_group; /* of the launch that classifies mask tiles first; 0: no such launch */
    int64_t spread;     /* bytes of K and V that running tiles may cover, so that long tiles can come first; 0: one head */
    int resident; /* maximum number of groups of a launch, each of which takes one tile after another; 0: a group a tile */
    /* The engine's own numbers, stored by cla_config_keep. */
    unsigned char own[CLA_OWN_NUMBERS];
};

enum { CLA_MAX_CONFIGS = 28, CLA_MAX_LAUNCHES = 4, CLA_MAX_ENGINES = 16 };

struct engine {
    const char *name;
    const char *file;        /* its device half, such as "cl/engines/simt/simt.cl" */
    const char *kernel_file; /* the file of its kernels: "cl/attention.cl", if it has no loop of its own */
    bool on_request;         /* chosen only when the caller names it */
    bool vendor;             /* goes past the standard: used only after the self-check (src/selfcheck.h) */
    const char *ptx_target;  /* NULL, or the architecture for which its program is built a second time (src/ptx.h) */
    bool has_scores;         /* can output scores along with O */
    bool visits_classes;     /* its own launches include the one that classifies mask tiles, if config.classify_group is set */
    bool merges;             /* its groups can merge the chunks of keys: each is whole warps, and a tile has one group */
    bool rounds_weights;     /* its second product takes weights in V's storage type */
    bool options_apart;      /* each set of options has its own kernel source; else one has all, and more plans share a build */
    bool numbers_calls;      /* its groups share state that each call resets: they need args.call_number */

    /* Whether it serves this valid problem on this device. If not, `why` gets the reason in a few words. */
    bool (*serves)(const struct facts *facts, const clattn_problem *problem, char *why, size_t why_size);
    /* Asks the operating system for permissions that the engine's instructions need; NULL: none. Called when the engine is
     * about to be used. Permissions that change the process are requested only if the context's options allow it; the facts
     * show that. */
    bool (*permit)(char *why, size_t why_size);
    /* Tiles that fit the device's limits, best first; at least one if it serves. block_m != block_n, so that tests find
     * swapped axes, unless a vendor's instructions are fastest with square tiles. */
    size_t (*configs)(const struct facts *facts, const clattn_problem *problem, struct config list[CLA_MAX_CONFIGS]);
    /* Adds `#define NAME value` lines to those that every engine gets (types, head sizes, BLOCK_N, WORK_GROUP, HAS_FMA). */
    void (*defines)(const struct facts *facts, const clattn_problem *problem, const struct config *config, struct text *out);
    /* The launches of a call of this size, in order; NULL: one launch of "attention", with a team a tile. */
    size_t (*launches)(const struct config *config, const struct launch_args *args, struct launch list[CLA_MAX_LAUNCHES]);
    /* Workspace at the problem's upper bounds; NULL: none. */
    size_t (*workspace)(const clattn_problem *problem, const struct config *config);
};

/* The engines in the order of engine_list.h. */
extern const struct engine *const cla_engines[];
extern const size_t cla_engine_count;

/* cla_engine_NAME, each defined by its host half. */
#define ENGINE(name) extern const struct engine cla_engine_##name;
#include "engine_list.h"
#undef ENGINE

const struct engine *cla_engine_find(const char *name); /* NULL if there is none */

/* Store and load an engine's own numbers of a configuration. They are a struct without padding, so that equal ones have equal
 * bytes; only the engine knows their meaning. */
void cla_config_keep(struct config *config, const void *numbers, size_t size);
void cla_config_recall(const struct config *config, void *numbers, size_t size);

/* Formats `why` and returns false, as in: return cla_decline(why, size, "needs %d bytes", n). */
bool cla_decline(char *why, size_t size, const char *format, ...) CLA_PRINTF(3, 4);

#endif
