/* SPDX-License-Identifier: Apache-2.0
 * The launches of a call, and its numbers in the form that kernels take. The twin of cl/args.cl. */
#ifndef CLATTN_LAUNCH_H
#define CLATTN_LAUNCH_H

#include "status.h"

struct tensor_view {
    int64_t base, batch, head, seq, dim;
};

/* Every field has the size and alignment of its twin; 64-bit ones first, so that no compiler pads differently. */
struct launch_args {
    struct tensor_view q, k, v, o;
    struct tensor_view lse;
    struct tensor_view scores;
    struct tensor_view mask, bias;
    struct tensor_view slopes;
    int64_t offset;
    int64_t workspace;
    int64_t left, right;
    int64_t total_q, total_kv;
    int64_t sinks, factors;
    int64_t q_lengths, kv_lengths, q_starts, kv_starts, offsets;
    int64_t first_team;
    int64_t call_number;
    int64_t classes;
    int64_t class_batch, class_head;
    int64_t together;
    int32_t corner;
    int32_t batches, heads_q, heads_kv;
    int32_t seq_q, seq_kv;
    int32_t group;
    int32_t pack;
    int32_t q_blocks;
    int32_t chunk, chunks;
    int32_t key_blocks;
    int32_t lse_floats;
    int32_t scores_kind, score_head, score_heads, scores_only;
    int32_t mask_columns, bias_columns;
    int32_t has_mask, bias_type, has_slopes, has_sinks, has_factors;
    int32_t q_lengths_type, kv_lengths_type, starts_type, offsets_type;
    float scale, softcap;
};

#define CLA_OPEN_END ((int64_t)1 << 40)

/* One kernel launch of a call. */
struct launch {
    const char *kernel;
    size_t groups; /* one dimension only */
    size_t work_group;
    double scores; /* that a group computes or reads: the measure for slices. 0: not sliced, the kernel has no first_team */
};

struct config;

/* Sets the numbers of `call` with `problem` and `config`. Everything is already validated. */
void cla_launch_args(const clattn_problem *problem, const struct config *config, const clattn_call *call,
                     struct launch_args *args);

/* The launches of a call, in order; `list` has room for CLA_MAX_LAUNCHES. Returns their number. */
size_t cla_launch_list(const struct config *config, const struct launch_args *args, struct launch *list);

/* The launch that classifies the tiles of mask and bias, used if config.classify_group is set. */
struct launch cla_classify_launch(const struct config *config, const struct launch_args *args);

/* Bytes of one element. */
size_t cla_type_size(clattn_type type);
size_t cla_lse_size(clattn_lse_form form);

#endif
