/* SPDX-License-Identifier: Apache-2.0
 * Shared by nv_mma and nv_tf32x3: one device half, cl/engines/nvidia/mma/nv_mma.cl, and the rules for its tiles. */
#ifndef CLATTN_NV_MMA_H
#define CLATTN_NV_MMA_H

#include "../../engine.h"

/* How a work-group covers a tile: each warp has 16 * m_tiles rows; or key_warps warps share these rows and each has its own
 * keys. */
struct nv_tile {
    int warps, key_warps, m_tiles, block_n, slots;
};

/* Whether the tile fits the device and the problem, and needs no more accumulators a work-item than `max_accumulators`. */
bool cla_nv_mma_tile(const struct engine *engine, const struct nv_tile *tile, int max_accumulators, const struct facts *facts,
                     const clattn_problem *problem, struct config *config);
/* Whether device and head sizes allow the engine, whatever the types are. */
bool cla_nv_mma_fits(const struct engine *engine, const struct facts *facts, const clattn_problem *problem, char *why,
                     size_t why_size);
void cla_nv_mma_defines(const struct facts *facts, const clattn_problem *problem, const struct config *config,
                        struct text *out);

#endif
