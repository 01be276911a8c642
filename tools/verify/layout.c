/* SPDX-License-Identifier: Apache-2.0 */
#include "layout.h"

#include <string.h>

enum { Q = 1, K = 2, V = 4, O = 8, ALL = 15 };
enum { BATCH, HEAD, SEQ, DIM, AXES };

struct layout {
    const char *name;
    const char *order[4]; /* of q, k, v, o: axes (b, h, s, d) from the outermost to the innermost */
    int pad;              /* unused elements after each run of the innermost axis */
    int interleave;       /* this many tensors alternate row by row in one buffer, as packed QKV does; 0: one */
    unsigned spread;      /* tensors whose innermost stride is 2 */
    unsigned flip_seq, flip_dim, flip_head; /* tensors with that axis mirrored: a negative stride */
    unsigned share_head, share_batch;       /* tensors whose heads or batch entries are one and the same: stride 0 */
};

#define SAME(order)                                                                                                            \
    {                                                                                                                          \
        order, order, order, order                                                                                             \
    }

static const struct layout layouts[] = {
    {.name = "bhsd", .order = SAME("bhsd")},
    {.name = "bshd", .order = SAME("bshd")},
    {.name = "sbhd", .order = SAME("sbhd")},
    {.name = "mixed", .order = {"bhsd", "bshd", "sbhd", "bshd"}},
    {.name = "padded", .order = SAME("bhsd"), .pad = 3},
    {.name = "padded4", .order = SAME("bshd"), .pad = 4},
    {.name = "packed-qkv", .order = SAME("bshd"), .interleave = 3},
    {.name = "inner2", .order = SAME("bhsd"), .spread = ALL},
    {.name = "inner2-q", .order = SAME("bhsd"), .spread = Q},
    {.name = "inner2-k", .order = SAME("bhsd"), .spread = K},
    {.name = "inner2-v", .order = SAME("bhsd"), .spread = V},
    {.name = "inner2-o", .order = SAME("bhsd"), .spread = O},
    {.name = "reversed-seq", .order = SAME("bhsd"), .flip_seq = ALL},
    {.name = "reversed-k", .order = SAME("bhsd"), .flip_seq = K},
    {.name = "reversed-head", .order = SAME("bhsd"), .flip_head = ALL},
    {.name = "reversed-dim", .order = SAME("bhsd"), .flip_dim = ALL},
    {.name = "shared-heads", .order = SAME("bhsd"), .share_head = K | V},
    {.name = "shared-batch", .order = SAME("bshd"), .share_batch = Q | K | V},
    {.name = "k-transposed", .order = {"bhsd", "bhds", "bhsd", "bhsd"}},
    {.name = "v-transposed", .order = {"bhsd", "bhsd", "bhds", "bhsd"}},
    {.name = "kv-transposed", .order = {"bhsd", "bhds", "bhds", "bhsd"}, .pad = 5},
    {.name = "all-transposed", .order = SAME("bhds")},
    {.name = "heads-innermost", .order = SAME("bsdh")},
};

static int axis_of(char letter) { return letter == 'b' ? BATCH : letter == 'h' ? HEAD : letter == 's' ? SEQ : DIM; }

/* Large sizes make a stride that the library refuses, not one that wrapped. */
#define LARGEST_STRIDE ((int64_t)1 << 60)

static int64_t grown(int64_t stride, int64_t times)
{
    return times > 0 && stride > LARGEST_STRIDE / times ? LARGEST_STRIDE : stride * times;
}

static void arrange(const struct layout *layout, unsigned which, const char *order, const int64_t size[AXES],
                    clattn_tensor *tensor)
{
    int64_t *const stride[AXES] = {&tensor->strides.batch, &tensor->strides.head, &tensor->strides.row,
                                   &tensor->strides.column};
    int64_t step = layout->spread & which ? 2 : 1;
    for (int i = AXES - 1; i >= 0; i--) {
        const int axis = axis_of(order[i]);
        if (axis == SEQ && layout->interleave)
            step = grown(step, layout->interleave);
        *stride[axis] = step;
        step = grown(step, size[axis]) + (i == AXES - 1 ? layout->pad : 0);
    }
    tensor->strides.row *= layout->flip_seq & which ? -1 : 1;
    tensor->strides.column *= layout->flip_dim & which ? -1 : 1;
    tensor->strides.head *= layout->flip_head & which ? -1 : 1;
    tensor->strides.head *= layout->share_head & which ? 0 : 1;
    tensor->strides.batch *= layout->share_batch & which ? 0 : 1;
}

bool layout_apply(const char *name, clattn_problem *p)
{
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        const struct layout *layout = &layouts[i];
        if (strcmp(name, layout->name) != 0)
            continue;
        arrange(layout, Q, layout->order[0], (const int64_t[]){p->batch, p->heads_q, p->seq_q, p->head_dim_qk}, &p->q);
        arrange(layout, K, layout->order[1], (const int64_t[]){p->batch, p->heads_kv, p->seq_kv, p->head_dim_qk}, &p->k);
        arrange(layout, V, layout->order[2], (const int64_t[]){p->batch, p->heads_kv, p->seq_kv, p->head_dim_v}, &p->v);
        arrange(layout, O, layout->order[3], (const int64_t[]){p->batch, p->heads_q, p->seq_q, p->head_dim_v}, &p->o);
        return true;
    }
    return false;
}

const char *layout_name(size_t index) { return index < sizeof layouts / sizeof *layouts ? layouts[index].name : NULL; }
