/* SPDX-License-Identifier: Apache-2.0 */
#include "workspace.h"

#include "arithmetic.h"

/* A multiple of 64. */
static size_t partial_bytes(const clattn_problem *p, const struct config *config)
{
    if (!config->chunk)
        return 0;
    /* One chunk is written even without keys. */
    const int64_t chunks = p->seq_kv > 0 ? cla_divide_up(p->seq_kv, config->chunk) : 1;
    const size_t rows = cla_bytes_times(cla_bytes_times(cla_bytes_times(sizeof(float), p->batch), p->heads_q), p->seq_q);
    const size_t bytes = cla_bytes_times(cla_bytes_times(rows, chunks), p->head_dim_v + 2 + (config->merge_inside ? 2 : 0));
    return cla_bytes_round_up(bytes, 64);
}

size_t cla_classes_offset(const clattn_problem *p, const struct config *config)
{
    return config->engine->workspace ? config->engine->workspace(p, config) : partial_bytes(p, config);
}

struct class_table cla_class_table(const clattn_problem *p, const struct config *config, int64_t batch, int64_t seq_q,
                                   int64_t seq_kv)
{
    const bool by_head = (p->mask.present && p->mask.strides.head != 0) || (p->bias.present && p->bias.strides.head != 0);
    const bool by_batch = (p->mask.present && p->mask.strides.batch != 0) || (p->bias.present && p->bias.strides.batch != 0);
    struct class_table table = {.q_blocks = cla_divide_up(seq_q, config->block_m),
                                .key_blocks = cla_divide_up(seq_kv, config->block_n)};
    const int64_t tiles = table.q_blocks * table.key_blocks, heads = by_head ? p->heads_q : 1;
    table.stride_head = by_head ? tiles : 0;
    table.stride_batch = by_batch ? (int64_t)cla_bytes_times((size_t)tiles, heads) : 0;
    table.bytes = cla_bytes_times(cla_bytes_times((size_t)tiles, heads), by_batch ? batch : 1);
    return table;
}

size_t cla_workspace_bytes(const clattn_problem *p, const struct config *config)
{
    const size_t before = cla_classes_offset(p, config);
    if (!config->classify_group)
        return before;
    const size_t classes = cla_class_table(p, config, p->batch, p->seq_q, p->seq_kv).bytes;
    /* The caller's buffers are counted in floats. */
    return cla_bytes_round_up(cla_bytes_plus(before, classes), sizeof(float));
}
