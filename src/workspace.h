/* SPDX-License-Identifier: Apache-2.0
 * The contents of a plan's workspace: the engine's own data or partial results of split keys, then the classes of mask tiles.
 */
#ifndef CLATTN_WORKSPACE_H
#define CLATTN_WORKSPACE_H

#include "engine.h"

/* Bytes at the problem's upper bounds; SIZE_MAX if the number does not fit a size_t. */
size_t cla_workspace_bytes(const clattn_problem *problem, const struct config *config);

/* Of these, the bytes before the classes of mask and bias. */
size_t cla_classes_offset(const clattn_problem *problem, const struct config *config);

/* The classes of mask and bias, one byte a tile, for a call of this size. */
struct class_table {
    int64_t q_blocks, key_blocks;
    int64_t stride_batch, stride_head; /* 0 if batch entries, or heads, share them */
    size_t bytes;
};
struct class_table cla_class_table(const clattn_problem *problem, const struct config *config, int64_t batch, int64_t seq_q,
                                   int64_t seq_kv);

#endif
