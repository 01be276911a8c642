/* SPDX-License-Identifier: Apache-2.0 */
#include "launch.h"

#include "arithmetic.h"
#include "engine.h"
#include "problem.h"
#include "workspace.h"

size_t cla_type_size(clattn_type type) { return type == CLATTN_FP32 ? 4 : 2; }

size_t cla_lse_size(clattn_lse_form form) { return form == CLATTN_MAX_AND_SUM ? 2 * sizeof(float) : sizeof(float); }

static struct tensor_view view(clattn_type type, const clattn_buffer *buffer, const clattn_strides *strides)
{
    const struct tensor_view v = {(int64_t)(buffer->offset / cla_type_size(type)), strides->batch, strides->head, strides->row,
                                  strides->column};
    return v;
}

/* How many query heads of a group share the rows of a tile: as many as fit, if the queries of one head do not fill it. A
 * divisor of the group, so that no tile mixes key/value heads. */
static int32_t choose_pack(const struct config *config, int64_t seq_q, int32_t group)
{
    if (!config->packs_heads || config->classify_group)
        return 1;
    /* A tile has few rows, even if the group is large. */
    const int64_t most = seq_q > 0 ? config->block_m / seq_q : group;
    int32_t pack = most < group ? (int32_t)most : group;
    while (pack > 1 && group % pack != 0)
        pack--;
    return pack > 1 ? pack : 1;
}

static struct tensor_view float_view(const clattn_buffer *buffer, size_t size, int64_t batch, int64_t head, int64_t seq,
                                     int64_t dim)
{
    const struct tensor_view v = {(int64_t)(buffer->offset / size), batch, head, seq, dim};
    return v;
}

static size_t integer_size(clattn_integer type) { return type == CLATTN_INT64 ? 8 : 4; }

/* A much larger softcap would overflow a float in base two, and scores divided by it would underflow. */
#define LARGEST_SOFTCAP 1e30f

static void set_options(const clattn_problem *p, const clattn_call *call, struct launch_args *args)
{
    const clattn_strides *mask = &call->mask_strides, *bias = &call->bias_strides;
    args->mask = float_view(&call->mask, 1, mask->batch, mask->head, mask->row, mask->column);
    args->bias = float_view(&call->bias, cla_type_size(p->bias.type), bias->batch, bias->head, bias->row, bias->column);
    args->slopes = float_view(&call->alibi, sizeof(float), p->alibi.strides.batch, p->alibi.strides.head, 0, 0);
    args->sinks = (int64_t)(call->sinks.offset / sizeof(float));
    args->factors = (int64_t)(call->bias_factors.offset / sizeof(float));
    args->mask_columns = (int32_t)(call->mask_columns < 0 ? call->seq_kv : call->mask_columns);
    args->bias_columns = (int32_t)(call->bias_columns < 0 ? call->seq_kv : call->bias_columns);
    args->has_mask = p->mask.present;
    args->bias_type = p->bias.present ? (int32_t)p->bias.type : 0;
    args->has_slopes = p->alibi.present;
    args->has_sinks = p->sinks;
    args->has_factors = p->bias.present && p->bias.factors;
    args->softcap = p->softcap > LARGEST_SOFTCAP ? LARGEST_SOFTCAP : p->softcap;
}

static void set_sequences(const clattn_problem *p, const clattn_call *call, struct launch_args *args)
{
    args->q_lengths = (int64_t)(call->q_lengths.offset / integer_size(p->q_lengths));
    args->kv_lengths = (int64_t)(call->kv_lengths.offset / integer_size(p->kv_lengths));
    args->offsets = (int64_t)(call->offsets.offset / integer_size(p->offsets));
    args->q_starts = (int64_t)(call->q_starts.offset / integer_size(p->packed.starts));
    args->kv_starts = (int64_t)(call->kv_starts.offset / integer_size(p->packed.starts));
    args->q_lengths_type = (int32_t)p->q_lengths;
    args->kv_lengths_type = (int32_t)p->kv_lengths;
    args->offsets_type = (int32_t)p->offsets;
    args->starts_type = (int32_t)p->packed.starts;
    args->total_q = p->packed.total_q;
    args->total_kv = p->packed.total_kv;
    if (p->packed.starts)
        args->q.batch = args->k.batch = args->v.batch = args->o.batch = args->lse.batch = 0;
}

/* -1 and any side that reaches past every key mean the same: no limit. Twice CLA_OPEN_END is past every key even from the
 * largest offset. */
static int64_t reach(int64_t given) { return given < 0 || given > CLA_OPEN_END ? CLA_OPEN_END * 2 : given; }

static void set_diagonal(const clattn_problem *p, const clattn_call *call, struct launch_args *args)
{
    args->offset = call->offset > CLA_OPEN_END ? CLA_OPEN_END : call->offset < -CLA_OPEN_END ? -CLA_OPEN_END : call->offset;
    args->left = reach(call->window_left);
    args->right = p->causal ? 0 : reach(call->window_right);
    args->corner = (int32_t)p->corner;
}

/* The classes come after everything else in the workspace. The plan's bounds set the place, so that no call can write past the
 * end. */
static void set_classes(const clattn_problem *p, const struct config *config, const clattn_call *call, struct launch_args *args)
{
    if (!config->classify_group) {
        args->classes = -1;
        return;
    }
    const struct class_table table = cla_class_table(p, config, call->batch, call->seq_q, call->seq_kv);
    args->classes = (int64_t)(call->workspace.offset + cla_classes_offset(p, config));
    args->class_batch = table.stride_batch;
    args->class_head = table.stride_head;
    args->key_blocks = (int32_t)table.key_blocks;
}

/* How many packed heads have their tiles interleaved, long ones first. Without a diagonal all tiles are equally long, and one
 * head follows another, so that fewer keys are in use at a time. */
static int64_t choose_together(const clattn_problem *p, const struct config *config, const struct launch_args *args)
{
    const int64_t row = p->head_dim_qk * (int64_t)cla_type_size(p->k.type) + p->head_dim_v * (int64_t)cla_type_size(p->v.type);
    const int64_t heads = (int64_t)args->batches * args->heads_q / args->pack;
    const int64_t bytes = (args->seq_kv > 0 ? args->seq_kv : 1) * row * args->pack / args->group;
    if (args->right >= CLA_OPEN_END || config->spread == 0)
        return 1;
    const int64_t fit = config->spread / (bytes > 0 ? bytes : 1);
    return fit < 1 || heads < 1 ? 1 : fit < heads ? fit : heads < INT32_MAX ? heads : INT32_MAX;
}

void cla_launch_args(const clattn_problem *p, const struct config *config, const clattn_call *call, struct launch_args *args)
{
    const struct launch_args fresh = {0};
    *args = fresh;
    args->q = view(p->q.type, &call->q, &call->q_strides);
    args->k = view(p->k.type, &call->k, &call->k_strides);
    args->v = view(p->v.type, &call->v, &call->v_strides);
    args->o = view(p->o.type, &call->o, &call->o_strides);
    args->lse = float_view(&call->lse, cla_lse_size(p->lse.form), call->lse_strides.batch, call->lse_strides.head,
                           call->lse_strides.row, 0);
    args->scores = float_view(&call->scores, sizeof(float), p->scores.strides.batch, p->scores.strides.head,
                              p->scores.strides.row, p->scores.strides.column);
    args->workspace = (int64_t)(call->workspace.offset / sizeof(float));
    args->batches = (int32_t)call->batch;
    args->heads_q = (int32_t)p->heads_q;
    args->heads_kv = (int32_t)p->heads_kv;
    args->seq_q = (int32_t)call->seq_q;
    args->seq_kv = (int32_t)call->seq_kv;
    args->group = (int32_t)cla_group_size(p);
    args->pack = choose_pack(config, call->seq_q, args->group);
    args->q_blocks = (int32_t)cla_divide_up(call->seq_q * args->pack, config->block_m);
    args->chunk = config->chunk;
    args->chunks = config->chunk && call->seq_kv > config->chunk ? (int32_t)cla_divide_up(call->seq_kv, config->chunk) : 1;
    set_classes(p, config, call, args);
    args->lse_floats = p->lse.present ? (int32_t)(cla_lse_size(p->lse.form) / sizeof(float)) : 0;
    args->scores_kind = (int32_t)p->scores.kind;
    args->score_head = (int32_t)p->scores.first_head;
    args->score_heads = (int32_t)cla_score_heads(p);
    args->scores_only = config->scores_only;
    args->scale = call->scale;
    set_diagonal(p, call, args);
    args->together = choose_together(p, config, args);
    set_options(p, call, args);
    set_sequences(p, call, args);
}

struct launch cla_classify_launch(const struct config *config, const struct launch_args *args)
{
    const size_t tables = (args->class_head ? (size_t)args->heads_q : 1) * (args->class_batch ? (size_t)args->batches : 1);
    const struct launch classify = {"classify", (size_t)args->q_blocks * (size_t)args->key_blocks * tables,
                                    (size_t)config->classify_group, 0.0};
    return classify;
}

size_t cla_launch_list(const struct config *config, const struct launch_args *args, struct launch *list)
{
    if (config->engine->launches)
        return config->engine->launches(config, args, list);
    const size_t heads = (size_t)args->heads_q * (size_t)args->batches;
    const size_t teams = (size_t)args->q_blocks * (size_t)args->chunks * (heads / (size_t)args->pack);
    size_t count = 0;
    if (config->classify_group)
        list[count++] = cla_classify_launch(config, args);
    const int teams_of_group = config->work_group / config->team;
    const double keys = args->chunk && args->chunk < args->seq_kv ? args->chunk : args->seq_kv;
    const struct launch attention = {"attention", (size_t)cla_divide_up((int64_t)teams, teams_of_group),
                                     (size_t)config->work_group, (double)config->block_m * teams_of_group * keys};
    list[count++] = attention;
    if (config->chunk && !config->merge_inside) {
        const struct launch merge = {
            "merge",
            (size_t)cla_divide_up((int64_t)(heads * (size_t)args->seq_q) * (config->head_dim_v / config->merge_columns),
                                  config->merge_group),
            (size_t)config->merge_group, 0.0};
        list[count++] = merge;
    }
    return count;
}
