/* SPDX-License-Identifier: Apache-2.0 */
#include "attend.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

bool complain(const char *what, const char *why)
{
    GGML_LOG_ERROR("clattn: %s: %s\n", what, why);
    return false;
}

static bool take_tensor(const struct ggml_tensor *t, int head, int seq, clattn_tensor *out)
{
    const size_t size = ggml_type_size(t->type);
    out->type = t->type == GGML_TYPE_F16 ? CLATTN_FP16 : t->type == GGML_TYPE_BF16 ? CLATTN_BF16 : CLATTN_FP32;
    out->strides.column = (int64_t)(t->nb[0] / size);
    out->strides.row = (int64_t)(t->nb[seq] / size);
    out->strides.head = (int64_t)(t->nb[head] / size);
    out->strides.batch = (int64_t)(t->nb[3] / size);
    return (t->type == GGML_TYPE_F32 || t->type == GGML_TYPE_F16 || t->type == GGML_TYPE_BF16) && t->nb[0] % size == 0 &&
           t->nb[1] % size == 0 && t->nb[2] % size == 0 && t->nb[3] % size == 0;
}

/* The mask is added, shared by heads and batch entries where it has but one of them. */
static const char *take_mask(const struct ggml_tensor *m, clattn_problem *p)
{
    clattn_tensor t;
    if (!take_tensor(m, 2, 1, &t))
        return "type or strides of the mask";
    if ((m->ne[2] != 1 && m->ne[2] != p->heads_q) || (m->ne[3] != 1 && m->ne[3] != p->batch))
        return "a mask that repeats along heads or batch";
    if (m->ne[0] < p->seq_kv || m->ne[1] < p->seq_q)
        return "a mask smaller than the scores";
    p->bias.present = true;
    p->bias.type = t.type;
    p->bias.strides.column = t.strides.column;
    p->bias.strides.row = t.strides.row;
    p->bias.strides.head = m->ne[2] == 1 ? 0 : t.strides.head;
    p->bias.strides.batch = m->ne[3] == 1 ? 0 : t.strides.batch;
    return NULL;
}

static float max_bias_of(const struct ggml_tensor *op) { return ggml_get_op_params_f32(op, 1); }

/* FLASH_ATTN_EXT: q [dim, seq, heads, batch], k and v likewise, an optional mask [seq_kv, seq_q, heads or 1, batch or 1] and
 * optional sinks; the output is [dim, heads, seq, batch]. Returns NULL, or the reason why not. The bound on finite entries
 * of the mask (parameter 4) and the precision (parameter 3) permit less work and fewer digits than clattn gives. */
const char *take_problem(const struct ggml_tensor *op, clattn_problem *p)
{
    const struct ggml_tensor *q = op->src[0], *k = op->src[1], *v = op->src[2], *mask = op->src[3], *sinks = op->src[4];
    const float scale = ggml_get_op_params_f32(op, 0), softcap = ggml_get_op_params_f32(op, 2);
    clattn_problem_init(p);
    p->batch = q->ne[3];
    p->heads_q = q->ne[2];
    p->heads_kv = k->ne[2];
    p->seq_q = q->ne[1];
    p->seq_kv = k->ne[1];
    p->head_dim_qk = k->ne[0];
    p->head_dim_v = v->ne[0];
    p->scale = scale;
    p->softcap = softcap;
    p->sinks = sinks != NULL;
    if (!take_tensor(k, 2, 1, &p->k) || !take_tensor(v, 2, 1, &p->v))
        return ggml_type_name(ggml_is_quantized(v->type) ? v->type : k->type);
    if (!take_tensor(q, 2, 1, &p->q) || !take_tensor(op, 1, 2, &p->o))
        return "type or strides of Q or of the output";
    if (v->ne[2] != k->ne[2] || v->ne[1] != k->ne[1] || k->ne[3] != q->ne[3] || v->ne[3] != q->ne[3])
        return "K and V of different heads or lengths";
    if (sinks && (sinks->type != GGML_TYPE_F32 || !ggml_is_contiguous(sinks)))
        return "sinks that are not contiguous fp32";
    p->bias.factors = mask && max_bias_of(op) > 0.0f;
    return mask ? take_mask(mask, p) : NULL;
}

static clattn_buffer buffer_of(const struct ggml_tensor *t)
{
    const struct memory *memory = (t->view_src ? t->view_src->buffer : t->buffer)->context;
    return memory->pointer ? clattn_svm(memory->pointer, (size_t)((char *)t->data - (char *)memory->pointer))
                           : clattn_mem(memory->mem, (size_t)((char *)t->data - FAKE_BASE));
}

static int64_t power_of_two(int64_t length)
{
    int64_t bound = 1;
    while (bound < length)
        bound *= 2;
    return bound;
}

/* ggml's slopes are those of ALiBi with max_bias in place of 8. */
static cl_mem make_factors(clattn_context *clattn, int64_t heads, float max_bias)
{
    const size_t size = (size_t)heads * sizeof(float);
    float *factors = malloc(size);
    if (!factors)
        return NULL;
    clattn_alibi_slopes(heads, factors);
    for (int64_t i = 0; i < heads; i++)
        factors[i] = powf(factors[i], max_bias / 8.0f);
    cl_mem mem = clCreateBuffer(clattn_context_cl(clattn), CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, size, factors, NULL);
    free(factors);
    return mem;
}

static void drop_plan(struct kept_plan *kept)
{
    clattn_plan_destroy(kept->plan);
    if (kept->factors)
        clReleaseMemObject(kept->factors);
    memset(kept, 0, sizeof *kept);
}

/* With few queries, fewer keys would be another class of sizes, whose program would be built in the middle of a chat. */
enum { LEAST_KEYS = 1024 };

/* A kept plan for this problem, whatever its lengths are, or a new one instead of the oldest. */
static struct kept_plan *find_plan(struct stream *stream, const clattn_problem *problem, float max_bias, clattn_error *error)
{
    const int64_t seq_q = power_of_two(problem->seq_q), keys = power_of_two(problem->seq_kv);
    const int64_t seq_kv = keys > LEAST_KEYS ? keys : LEAST_KEYS;
    struct kept_plan *oldest = &stream->plans[0];
    for (int i = 0; i < MAX_PLANS; i++) {
        struct kept_plan *kept = &stream->plans[i];
        if (kept->plan && kept->seq_q == seq_q && kept->seq_kv == seq_kv && kept->max_bias == max_bias &&
            clattn_plan_serves(kept->plan, problem)) {
            kept->used = ++stream->clock;
            return kept;
        }
        if (kept->used < oldest->used)
            oldest = kept;
    }
    clattn_problem bounds = *problem;
    clattn_plan_options options;
    clattn_plan_options_init(&options);
    options.at_bounds = true; /* more than half of the queries, always */
    bounds.seq_q = seq_q;
    bounds.seq_kv = seq_kv;
    drop_plan(oldest);
    if (clattn_plan_create(stream->clattn, &bounds, &options, &oldest->plan, error) != CLATTN_SUCCESS)
        return NULL;
    oldest->factors = problem->bias.factors ? make_factors(stream->clattn, problem->heads_q, max_bias) : NULL;
    oldest->seq_q = seq_q;
    oldest->seq_kv = seq_kv;
    oldest->max_bias = max_bias;
    oldest->used = ++stream->clock;
    return oldest;
}

/* Scratch memory of the stream, as large as any plan so far needs. OpenCL keeps the old one until its commands end. */
static bool grow_workspace(struct stream *stream, size_t size)
{
    if (size <= stream->workspace_size)
        return true;
    if (stream->workspace)
        clReleaseMemObject(stream->workspace);
    stream->workspace = clCreateBuffer(clattn_context_cl(stream->clattn), CL_MEM_READ_WRITE, size, NULL, NULL);
    stream->workspace_size = stream->workspace ? size : 0;
    return stream->workspace != NULL || complain("workspace", "out of device memory");
}

bool attend(struct stream *stream, const struct ggml_tensor *op)
{
    clattn_problem problem;
    clattn_error error;
    clattn_call call;
    size_t workspace = 0;
    const char *why = take_problem(op, &problem);
    if (why)
        return complain("declined", why);
    clattn_error_init(&error);
    const struct kept_plan *kept = find_plan(stream, &problem, problem.bias.factors ? max_bias_of(op) : 0.0f, &error);
    if (!kept)
        return complain("plan", error.message);
    clattn_call_init(&call, kept->plan);
    clattn_call_set_problem(&call, &problem);
    if (clattn_call_workspace(kept->plan, &call, &workspace, &error) != CLATTN_SUCCESS)
        return complain(error.field, error.message);
    if (!grow_workspace(stream, workspace))
        return false;
    call.q = buffer_of(op->src[0]);
    call.k = buffer_of(op->src[1]);
    call.v = buffer_of(op->src[2]);
    call.o = buffer_of(op);
    if (op->src[3])
        call.bias = buffer_of(op->src[3]);
    if (op->src[4])
        call.sinks = buffer_of(op->src[4]);
    if (kept->factors)
        call.bias_factors = clattn_mem(kept->factors, 0);
    if (stream->workspace)
        call.workspace = clattn_mem(stream->workspace, 0);
    return clattn_enqueue(kept->plan, stream->queue, &call, 0, NULL, NULL, &error) == CLATTN_SUCCESS ||
           complain(error.field, error.message);
}

void stream_init(struct stream *stream, clattn_context *clattn, cl_command_queue queue)
{
    memset(stream, 0, sizeof *stream);
    stream->clattn = clattn;
    stream->queue = queue;
}

void stream_release(struct stream *stream)
{
    clFinish(stream->queue);
    for (int i = 0; i < MAX_PLANS; i++)
        drop_plan(&stream->plans[i]);
    if (stream->workspace)
        clReleaseMemObject(stream->workspace);
    clReleaseCommandQueue(stream->queue);
}
