/* SPDX-License-Identifier: Apache-2.0 */
#include "strides.h"

#include "launch.h"
#include "problem.h"

enum { AXES = 4, WIDEST_LOAD = 16 };

/* The alignment that the Tensor Memory Accelerator needs, in elements. */
#define LARGEST_STRIDE ((int64_t)1 << 39)

static bool is_usual(int64_t stride) { return stride > 0 && stride < LARGEST_STRIDE; }

/* The largest power of two up to a load of 16 bytes that divides every stride but those of 1. Along an axis of at most one
 * element the stride has no effect. */
static int64_t alignment(const int64_t sizes[AXES], const int64_t strides[AXES], clattn_type type)
{
    int64_t multiple = WIDEST_LOAD / (int64_t)cla_type_size(type);
    for (int i = 0; i < AXES; i++)
        while (sizes[i] > 1 && strides[i] != 1 && strides[i] % multiple != 0)
            multiple /= 2;
    return multiple;
}

bool cla_strides_serve(const clattn_problem *p, const clattn_tensor *tensor, const clattn_strides *given, const char **axis,
                       int64_t *multiple)
{
    static const char *const names[AXES] = {"batch", "head", "row", "column"};
    const bool is_q = tensor == &p->q || tensor == &p->o, is_qk = tensor == &p->q || tensor == &p->k;
    const int64_t queries = cla_rows_q(p, p->seq_q), keys = cla_rows_kv(p, p->seq_kv);
    const int64_t sizes[AXES] = {cla_entries(p, p->batch), is_q ? p->heads_q : p->heads_kv, is_q ? queries : keys,
                                 is_qk ? p->head_dim_qk : p->head_dim_v};
    const int64_t planned[AXES] = {tensor->strides.batch, tensor->strides.head, tensor->strides.row, tensor->strides.column};
    const int64_t strides[AXES] = {given->batch, given->head, given->row, given->column};
    const int64_t needed = alignment(sizes, planned, tensor->type);
    for (int i = 0; i < AXES; i++) {
        const bool differs = sizes[i] > 1 && strides[i] != planned[i];
        *axis = names[i];
        *multiple = planned[i] == 1 ? 0 : needed;
        if (differs && (planned[i] == 1 || strides[i] % needed != 0 || (is_usual(planned[i]) && !is_usual(strides[i]))))
            return false;
    }
    return true;
}
