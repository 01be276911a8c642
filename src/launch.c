/* SPDX-License-Identifier: Apache-2.0 */
#include "launch.h"

#include "engine.h"

size_t cla_type_size(clattn_type type) { return type == CLATTN_FP32 ? 4 : 2; }

static struct tensor_view view(const clattn_tensor *tensor, const clattn_buffer *buffer)
{
    const struct tensor_view v = {(int64_t)(buffer->offset / cla_type_size(tensor->type)), tensor->stride_batch,
                                  tensor->stride_head, tensor->stride_seq, tensor->stride_dim};
    return v;
}

/* How many query heads of a group share the rows of a tile: as many as fit while their queries alone would leave it part-empty.
 * A divisor of the group, so that no tile mixes key/value heads. */
static int32_t choose_pack(const struct config *config, int64_t seq_q, int32_t group)
{
    int32_t pack = 1;
    if (config->packs_heads)
        for (int32_t p = 2; p <= group; p++)
            if (group % p == 0 && seq_q * p <= config->block_m)
                pack = p;
    return pack;
}

void cla_launch_args(const clattn_problem *p, const struct config *config, const clattn_call *call, struct launch_args *args)
{
    const struct launch_args fresh = {0};
    *args = fresh;
    args->q = view(&p->q, &call->q);
    args->k = view(&p->k, &call->k);
    args->v = view(&p->v, &call->v);
    args->o = view(&p->o, &call->o);
    args->lse.base = (int64_t)(call->lse.offset / sizeof(float));
    args->lse.batch = p->lse.stride_batch;
    args->lse.head = p->lse.stride_head;
    args->lse.seq = p->lse.stride_seq;
    args->scores.base = (int64_t)(call->scores.offset / sizeof(float));
    args->scores.batch = p->scores.stride_batch;
    args->scores.head = p->scores.stride_head;
    args->scores.seq = p->scores.stride_seq_q;
    args->scores.dim = p->scores.stride_seq_kv;
    args->offset = call->offset > CLA_OPEN_END ? CLA_OPEN_END : call->offset < -CLA_OPEN_END ? -CLA_OPEN_END : call->offset;
    args->workspace = (int64_t)(call->workspace.offset / sizeof(float));
    args->left = CLA_OPEN_END * 2; /* open even from the largest offset */
    args->right = p->causal ? 0 : CLA_OPEN_END * 2;
    args->corner = (int32_t)p->corner;
    args->batches = (int32_t)call->batch;
    args->heads_q = (int32_t)p->heads_q;
    args->heads_kv = (int32_t)p->heads_kv;
    args->seq_q = (int32_t)call->seq_q;
    args->seq_kv = (int32_t)call->seq_kv;
    args->group = p->heads_kv > 0 ? (int32_t)(p->heads_q / p->heads_kv) : 1;
    args->pack = choose_pack(config, call->seq_q, args->group);
    args->q_blocks = (int32_t)((call->seq_q * args->pack + config->block_m - 1) / config->block_m);
    args->has_lse = p->lse.present;
    args->has_scores = p->scores.kind != CLATTN_SCORES_NONE;
    args->scale = call->scale;
}

size_t cla_launch_list(const struct config *config, const struct launch_args *args, struct launch *list)
{
    if (config->engine->launches)
        return config->engine->launches(config, args, list);
    const size_t teams = (size_t)args->q_blocks * (size_t)(args->heads_q / args->pack) * (size_t)args->batches;
    const size_t per_group = (size_t)(config->work_group / config->team);
    list[0].kernel = "attention";
    list[0].groups = (teams + per_group - 1) / per_group;
    list[0].work_group = (size_t)config->work_group;
    return 1;
}
