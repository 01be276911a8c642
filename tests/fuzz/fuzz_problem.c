/* SPDX-License-Identifier: Apache-2.0
 * Numbers as a problem, plan options and a call, on the facts of real devices, with OpenCL's buffers replaced by sizes alone.
 * What validation accepts is checked with 128-bit numbers that share nothing with the library: every element that the problem
 * says a kernel may touch lies in its buffer, the workspace to the byte, and launches do not wrap. */
#include "fuzz.h"

#include "call.h"
#include "choose.h"
#include "devices.h"
#include "problem.h"
#include "workspace.h"

__extension__ typedef __int128 wide;

/* ------------------------------------------------------------------------------------------------------- OpenCL's part */

struct memory {
    size_t bytes;
};

enum { MEMORIES = 18 };

static struct memory memories[MEMORIES];
static int the_context;

/* Takes the place of the loader's. */
CL_API_ENTRY cl_int CL_API_CALL clGetMemObjectInfo(cl_mem memory, cl_mem_info what, size_t size, void *value, size_t *needed)
{
    const struct memory *const m = (const void *)memory;
    const cl_context context = (cl_context)(void *)&the_context;
    const cl_mem_object_type type = CL_MEM_OBJECT_BUFFER;
    const cl_mem_flags flags = CL_MEM_READ_WRITE;
    (void)size, (void)needed;
    switch (what) {
    case CL_MEM_SIZE:
        memcpy(value, &m->bytes, sizeof m->bytes);
        return CL_SUCCESS;
    case CL_MEM_CONTEXT:
        memcpy(value, &context, sizeof(cl_context));
        return CL_SUCCESS;
    case CL_MEM_TYPE:
        memcpy(value, &type, sizeof type);
        return CL_SUCCESS;
    case CL_MEM_FLAGS:
        memcpy(value, &flags, sizeof flags);
        return CL_SUCCESS;
    default:
        return CL_INVALID_VALUE;
    }
}

/* ------------------------------------------------------------------------------------------------ numbers from the input */

static const uint8_t *at, *end;

static unsigned byte(void) { return at < end ? *at++ : 0; }

static uint64_t eight(void)
{
    uint64_t x = 0;
    for (int i = 0; i < 8; i++)
        x = x << 8 | byte();
    return x;
}

/* `plain`, which is likely to be accepted, something small, or what arithmetic stumbles over. */
static int64_t number(int64_t plain)
{
    static const int64_t edges[] = {INT64_MIN,
                                    INT64_MAX,
                                    INT64_MAX / 2,
                                    INT64_MAX / 4,
                                    INT64_MAX / 8,
                                    (int64_t)1 << 62,
                                    (int64_t)1 << 60,
                                    (int64_t)1 << 53,
                                    (int64_t)1 << 40,
                                    (int64_t)1 << 33,
                                    (int64_t)1 << 32,
                                    (int64_t)1 << 31,
                                    (1 << 30) - 1,
                                    1 << 30,
                                    1 << 29,
                                    (1 << 29) - 1,
                                    -1,
                                    -2,
                                    0,
                                    1};
    const unsigned how = byte();
    if (how < 110)
        return plain;
    if (how < 170)
        return (int64_t)byte() - (how % 2 ? 0 : 3);
    if (how < 235) {
        const int64_t edge = edges[byte() % (sizeof edges / sizeof edges[0])];
        return how % 2 || edge == INT64_MIN ? edge : -edge;
    }
    return how < 245 ? (int64_t)1 << byte() % 63 : (int64_t)eight();
}

static int64_t size_number(int64_t plain)
{
    const int64_t x = number(plain);
    return byte() % 8 == 0 ? x : x == INT64_MIN ? 0 : x < 0 ? -x : x;
}

static float real(float plain)
{
    float x = plain;
    if (byte() >= 170) {
        const uint32_t bits = (uint32_t)eight();
        memcpy(&x, &bits, sizeof x);
    }
    return x;
}

static void alter(clattn_strides *s)
{
    s->batch = number(s->batch);
    s->head = number(s->head);
    s->row = number(s->row);
    s->column = number(s->column);
}

static void fill_sizes(clattn_problem *p)
{
    const unsigned types = byte();
    p->batch = size_number(2);
    p->heads_kv = size_number(2);
    p->heads_q = byte() % 4 ? (int64_t)((uint64_t)p->heads_kv * (1 + byte() % 9)) : size_number(4);
    p->seq_q = size_number(37);
    p->seq_kv = size_number(53);
    p->head_dim_qk = size_number(64);
    p->head_dim_v = size_number(64);
    p->q.type = (clattn_type)(1 + types % 3);
    p->k.type = types & 64 ? p->q.type : (clattn_type)(1 + types / 3 % 3);
    p->v.type = types & 64 ? p->q.type : (clattn_type)(1 + types / 9 % 3);
    p->o.type = (clattn_type)(1 + types / 27 % 3);
}

static void fill_options(clattn_problem *p)
{
    const unsigned a = byte(), b = byte(), c = byte();
    p->causal = a & 1;
    p->corner = (clattn_corner)(a / 2 % 3);
    p->lse.present = a & 8;
    p->mask.present = a & 16;
    p->bias.present = a & 32;
    p->alibi.present = a & 64;
    p->sinks = a & 128;
    p->offset = number(0);
    if (b & 1) {
        p->window.left = number(-1);
        p->window.right = number(-1);
    }
    p->softcap = b & 2 ? real(5.0f) : 0.0f;
    p->scale = b & 4 ? real(0.1f) : p->scale;
    if (b & 8) {
        p->scores.kind = (clattn_scores_kind)(1 + b / 16 % 4);
        p->scores.first_head = number(0);
        p->scores.heads = number(0);
    }
    p->q_lengths = c & 1 ? (clattn_integer)(1 + c / 2 % 2) : CLATTN_NO_INTEGERS;
    p->kv_lengths = c & 4 ? (clattn_integer)(1 + c / 2 % 2) : CLATTN_NO_INTEGERS;
    p->offsets = c & 8 && p->corner == CLATTN_EXPLICIT ? CLATTN_INT32 : CLATTN_NO_INTEGERS;
    if (c & 16) {
        p->packed.starts = (clattn_integer)(1 + c / 32 % 2);
        p->packed.total_q = size_number(70);
        p->packed.total_kv = size_number(90);
    }
    p->bias.type = (clattn_type)(1 + c / 64 % 3);
    p->bias.factors = c & 2;
}

static void fill_problem(clattn_problem *p)
{
    clattn_problem_init(p);
    fill_sizes(p);
    fill_options(p);
    clattn_problem_set_layout(p, (clattn_layout)(byte() % 3));
    if (p->mask.present) {
        p->mask.columns = number(-1);
        p->mask.strides = (clattn_strides){0, 0, p->seq_kv, 1};
        alter(&p->mask.strides);
    }
    if (p->bias.present) {
        p->bias.columns = number(-1);
        p->bias.strides = (clattn_strides){0, 0, p->seq_kv, 1};
        alter(&p->bias.strides);
    }
    p->alibi.strides.head = 1;
    clattn_strides *const list[] = {&p->q.strides,   &p->k.strides,      &p->v.strides,    &p->o.strides,
                                    &p->lse.strides, &p->scores.strides, &p->alibi.strides};
    const unsigned which = byte();
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++)
        if (which >> i & 1)
            alter(list[i]);
}

static clattn_buffer buffer(struct memory *m)
{
    const unsigned how = byte();
    m->bytes = how < 90 ? (size_t)1 << 20 : how < 200 ? (size_t)1 << 57 : (size_t)number(1 << 20) & (((size_t)1 << 57) - 1);
    if (how < 4)
        return (clattn_buffer){CLATTN_BUFFER_NONE, NULL, 0};
    return (clattn_buffer){CLATTN_BUFFER_MEM, m, how % 2 ? (size_t)number(0) : 0};
}

static void fill_call(clattn_call *call)
{
    clattn_buffer *const list[] = {&call->q,          &call->k,        &call->v,
                                   &call->o,          &call->lse,      &call->scores,
                                   &call->mask,       &call->bias,     &call->bias_factors,
                                   &call->alibi,      &call->sinks,    &call->q_lengths,
                                   &call->kv_lengths, &call->offsets,  &call->q_starts,
                                   &call->kv_starts,  &call->workspace};
    const unsigned which = byte();
    if (which & 1) {
        call->batch = size_number(call->batch);
        call->seq_q = size_number(call->seq_q);
        call->seq_kv = size_number(call->seq_kv);
    }
    if (which & 2) {
        call->mask_columns = number(call->mask_columns);
        call->bias_columns = number(call->bias_columns);
        call->offset = number(0);
    }
    if (which & 4) {
        alter(&call->mask_strides);
        alter(&call->bias_strides);
    }
    if (which & 8) {
        alter(&call->q_strides);
        alter(&call->k_strides);
        alter(&call->v_strides);
        alter(&call->o_strides);
        alter(&call->lse_strides);
    }
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++)
        *list[i] = buffer(&memories[i]);
}

/* -------------------------------------------------------------------------------------------------------- what must hold */

/* Every element of these sizes lies in the buffer. */
static void within(const clattn_buffer *b, size_t item, int64_t batch, int64_t heads, int64_t rows, int64_t columns,
                   clattn_strides s)
{
    const int64_t sizes[4] = {batch, heads, rows, columns}, strides[4] = {s.batch, s.head, s.row, s.column};
    wide low = 0, high = 0;
    for (int i = 0; i < 4; i++) {
        if (sizes[i] <= 0)
            return;
        const wide far = (wide)(sizes[i] - 1) * strides[i];
        *(far < 0 ? &low : &high) += far;
    }
    fuzz_require(b->kind == CLATTN_BUFFER_MEM && b->handle != NULL);
    fuzz_require((wide)b->offset + low * (wide)item >= 0);
    fuzz_require((wide)b->offset + (high + 1) * (wide)item <= (wide)((const struct memory *)b->handle)->bytes);
}

static size_t integer_size(clattn_integer type) { return type == CLATTN_INT64 ? 8 : 4; }

static int64_t columns_of(int64_t columns, int64_t keys) { return columns < 0 || columns > keys ? keys : columns; }

static const clattn_strides one_after_another = {0, 0, 0, 1};

static void check_tensors(const clattn_problem *p, const clattn_call *c)
{
    const bool packed = p->packed.starts != CLATTN_NO_INTEGERS;
    const int64_t batch = packed ? 1 : c->batch, rows_q = packed ? p->packed.total_q : c->seq_q,
                  rows_kv = packed ? p->packed.total_kv : c->seq_kv;
    const int64_t heads = p->scores.heads ? p->scores.heads : p->heads_q - p->scores.first_head;
    clattn_strides lse = c->lse_strides;
    lse.column = 0;
    within(&c->q, cla_type_size(p->q.type), batch, p->heads_q, rows_q, p->head_dim_qk, c->q_strides);
    within(&c->k, cla_type_size(p->k.type), batch, p->heads_kv, rows_kv, p->head_dim_qk, c->k_strides);
    within(&c->v, cla_type_size(p->v.type), batch, p->heads_kv, rows_kv, p->head_dim_v, c->v_strides);
    within(&c->o, cla_type_size(p->o.type), batch, p->heads_q, rows_q, p->head_dim_v, c->o_strides);
    if (p->lse.present)
        within(&c->lse, 4, batch, p->heads_q, rows_q, 1, lse);
    if (p->scores.kind != CLATTN_SCORES_NONE)
        within(&c->scores, 4, c->batch, heads, c->seq_q, c->seq_kv, p->scores.strides);
}

static void check_options(const clattn_problem *p, const clattn_call *c)
{
    const size_t starts = integer_size(p->packed.starts);
    if (p->mask.present)
        within(&c->mask, 1, c->batch, p->heads_q, c->seq_q, columns_of(c->mask_columns, c->seq_kv), c->mask_strides);
    if (p->bias.present)
        within(&c->bias, cla_type_size(p->bias.type), c->batch, p->heads_q, c->seq_q, columns_of(c->bias_columns, c->seq_kv),
               c->bias_strides);
    if (p->bias.present && p->bias.factors)
        within(&c->bias_factors, 4, 1, 1, 1, p->heads_q, one_after_another);
    if (p->alibi.present)
        within(&c->alibi, 4, c->batch, p->heads_q, 1, 1, p->alibi.strides);
    if (p->sinks)
        within(&c->sinks, 4, 1, 1, 1, p->heads_q, one_after_another);
    if (p->q_lengths)
        within(&c->q_lengths, integer_size(p->q_lengths), 1, 1, 1, c->batch, one_after_another);
    if (p->kv_lengths)
        within(&c->kv_lengths, integer_size(p->kv_lengths), 1, 1, 1, c->batch, one_after_another);
    if (p->offsets)
        within(&c->offsets, integer_size(p->offsets), 1, 1, 1, c->batch, one_after_another);
    if (p->packed.starts) {
        within(&c->q_starts, starts, 1, 1, 1, c->batch + 1, one_after_another);
        within(&c->kv_starts, starts, 1, 1, 1, c->batch + 1, one_after_another);
    }
}

static void check_launches(const clattn_plan *plan, const struct choice *choice, const clattn_call *c)
{
    struct launch_args args;
    clattn_problem sized = plan->problem;
    sized.batch = c->batch, sized.seq_q = c->seq_q, sized.seq_kv = c->seq_kv;
    fuzz_require(choice->workspace <= plan->workspace);
    struct launch list[CLA_MAX_LAUNCHES];
    if (plan->workspace == SIZE_MAX) /* no buffer is so large, and no call gets this far */
        return;
    cla_launch_args(&sized, &choice->config, c, &args);
    const size_t count = cla_launch_list(&choice->config, &args, list);
    fuzz_require(count >= 1 && count <= CLA_MAX_LAUNCHES);
    for (size_t i = 0; i < count; i++)
        fuzz_require((wide)list[i].groups * (wide)list[i].work_group <= INT64_MAX);
    if (c->workspace.kind == CLATTN_BUFFER_MEM && choice->workspace > 0 && choice->workspace <= INT64_MAX)
        within(&c->workspace, 1, 1, 1, 1, (int64_t)choice->workspace, one_after_another);
}

/* ------------------------------------------------------------------------------------------------------------- an input */

static void call_plan(clattn_plan *plan)
{
    struct choice choice;
    clattn_call call, full;
    clattn_error error;
    bool empty = false;
    clattn_error_init(&error);
    clattn_call_init(&call, plan);
    fill_call(&call);
    if (cla_call_take(plan, &call, &full, &choice, &empty, &error) != CLATTN_SUCCESS) {
        fuzz_require(error.message[0] != '\0' && error.field[0] != '\0');
        return;
    }
    if (empty)
        return;
    check_tensors(&plan->problem, &full);
    check_options(&plan->problem, &full);
    check_launches(plan, &choice, &full);
}

static void plan_problem(const struct facts *facts, const clattn_problem *problem, struct candidates *list)
{
    static const char *const engines[] = {NULL, NULL, NULL, "unfused", "reference", "simt", "cpu", "cpu_decode"};
    static clattn_plan plan;
    static clattn_context context;
    clattn_plan_options options;
    clattn_error error;
    clattn_error_init(&error);
    clattn_plan_options_init(&options);
    options.engine = engines[byte() % (sizeof engines / sizeof engines[0])];
    options.chunk = byte() % 4 ? 0 : number(64);
    if (cla_decide(facts, problem, &options, list, &error) != CLATTN_SUCCESS) {
        fuzz_require(error.message[0] != '\0');
        return;
    }
    memset(&plan, 0, sizeof plan);
    context.cl = (cl_context)(void *)&the_context;
    plan.context = &context;
    plan.problem = *problem;
    plan.config = list->list[byte() % list->count];
    plan.workspace = cla_workspace_bytes(problem, &plan.config);
    call_plan(&plan);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct candidates list;
    struct {
        clattn_problem problem;
        uint8_t tail[1024]; /* of a newer header's struct: what struct_size reaches */
    } given;
    clattn_problem taken;
    clattn_error error;
    at = data;
    end = data + size;
    clattn_error_init(&error);
    const struct facts *const facts = fuzz_device(byte());
    memset(given.tail, byte() % 8 == 0, sizeof given.tail);
    fill_problem(&given.problem);
    const unsigned mode = byte();
    if (mode < 10)
        given.problem.struct_size = byte() * (size_t)4;
    if (cla_problem_take(&given.problem, &taken, &error) != CLATTN_SUCCESS) {
        fuzz_require(error.message[0] != '\0' && error.field[0] != '\0');
        return 0;
    }
    memset(&list, 0, sizeof list);
    plan_problem(facts, &taken, &list);
    cla_text_free(&list.declined);
    return 0;
}
