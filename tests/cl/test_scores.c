/* SPDX-License-Identifier: Apache-2.0
 * Scores as a second output, stage by stage, for a range of heads, under every option: from `unfused` alone, and next to the O
 * of another engine. Plain double loops in this file compute the expected scores. */
/* ctest: quick */
#include "attend.h"

#include "half.h"
#include "random.h"

enum { MAX_BATCH = 4, BUFFERS = 16, O = 3, LSE, SCORES };

struct setup {
    const char *shape;
    int64_t mask_columns, bias_columns; /* 0: all */
    int64_t batch, seq_q, seq_kv;       /* used of the bounds; 0: all */
    bool transposed;                    /* queries of the scores are the contiguous axis */
};

/* Everything on the host: element counts from 0 on, inputs by buffer. */
static struct {
    const char *shape;
    clattn_problem p;
    clattn_call call;
    void *data[BUFFERS];
    size_t bytes[BUFFERS];
    cl_mem mem[BUFFERS];
} t;

static cl_command_queue queue; /* out of order: only events order anything */

/* ---------------------------------------------------------------------------------------------------------- the answer */

static int64_t held(int64_t x, int64_t low, int64_t high) { return x < low ? low : x > high ? high : x; }

static int64_t integer(int buffer, clattn_integer type, int64_t i)
{
    return type == CLATTN_INT64 ? ((const int64_t *)t.data[buffer])[i] : ((const int32_t *)t.data[buffer])[i];
}

enum { MASK = 6, BIAS, FACTORS, SLOPES, SINKS, Q_LENGTHS, KV_LENGTHS, OFFSETS, Q_STARTS, KV_STARTS };

struct sequence {
    int64_t q_length, kv_length, q_start, kv_start, offset;
    int64_t q_rows, kv_rows; /* rows of Q and K: packed sequences have no padding */
};

static struct sequence sequence_of(int64_t b)
{
    const clattn_problem *p = &t.p;
    struct sequence s = {.q_length = t.call.seq_q, .kv_length = t.call.seq_kv};
    if (p->packed.starts) {
        s.q_start = held(integer(Q_STARTS, p->packed.starts, b), 0, p->packed.total_q);
        s.kv_start = held(integer(KV_STARTS, p->packed.starts, b), 0, p->packed.total_kv);
        s.q_length = held(held(integer(Q_STARTS, p->packed.starts, b + 1), 0, p->packed.total_q) - s.q_start, 0, t.call.seq_q);
        s.kv_length =
            held(held(integer(KV_STARTS, p->packed.starts, b + 1), 0, p->packed.total_kv) - s.kv_start, 0, t.call.seq_kv);
    }
    s.q_rows = s.q_length;
    s.kv_rows = s.kv_length;
    if (p->q_lengths)
        s.q_length = held(integer(Q_LENGTHS, p->q_lengths, b), 0, s.q_length);
    if (p->kv_lengths)
        s.kv_length = held(integer(KV_LENGTHS, p->kv_lengths, b), 0, s.kv_length);
    s.offset = p->corner == CLATTN_BOTTOM_RIGHT ? s.kv_length - s.q_length
               : p->offsets                     ? integer(OFFSETS, p->offsets, b)
               : p->corner == CLATTN_EXPLICIT   ? p->offset
                                                : 0;
    return s;
}

static float at(int buffer, clattn_type type, int64_t i) { return storage_get(type, t.data[buffer], i); }

static bool visible(const struct sequence *s, int64_t b, int64_t h, int64_t i, int64_t j)
{
    const clattn_problem *p = &t.p;
    const int64_t far = j - i - s->offset;
    if (i >= s->q_length || j >= s->kv_length || (p->causal && far > 0))
        return false;
    if ((p->window.left >= 0 && -far > p->window.left) || (p->window.right >= 0 && far > p->window.right))
        return false;
    if (p->mask.present && (j >= t.call.mask_columns ||
                            ((const unsigned char *)t.data[MASK])[b * p->mask.strides.batch + h * p->mask.strides.head +
                                                                  i * p->mask.strides.row + j * p->mask.strides.column] == 0))
        return false;
    return !p->bias.present ||
           (j < t.call.bias_columns && at(BIAS, p->bias.type,
                                          b * p->bias.strides.batch + h * p->bias.strides.head + i * p->bias.strides.row +
                                              j * p->bias.strides.column) != -INFINITY);
}

/* The score at a stage; -inf where there is no query or key, and for masked keys from the bias stage on. */
static double score(const struct sequence *s, int64_t b, int64_t h, int64_t i, int64_t j, clattn_scores_kind stage)
{
    const clattn_problem *p = &t.p;
    const int64_t g = h / (p->heads_q / p->heads_kv), first = p->packed.starts ? 0 : b;
    double x = 0.0;
    if (i >= s->q_rows || j >= s->kv_rows || (stage >= CLATTN_SCORES_BIAS && !visible(s, b, h, i, j)))
        return -INFINITY;
    for (int64_t d = 0; d < p->head_dim_qk; d++)
        x += (double)at(0, p->q.type,
                        first * p->q.strides.batch + h * p->q.strides.head + (s->q_start + i) * p->q.strides.row + d) *
             (double)at(1, p->k.type,
                        first * p->k.strides.batch + g * p->k.strides.head + (s->kv_start + j) * p->k.strides.row + d);
    x *= isnan(p->scale) ? 1.0 / sqrt((double)p->head_dim_qk) : (double)p->scale;
    if (stage >= CLATTN_SCORES_SOFTCAP && p->softcap != 0.0f)
        x = p->softcap * tanh(x / p->softcap);
    if (stage >= CLATTN_SCORES_BIAS && p->bias.present)
        x += (p->bias.factors ? ((const float *)t.data[FACTORS])[h] : 1.0) *
             (double)at(BIAS, p->bias.type,
                        b * p->bias.strides.batch + h * p->bias.strides.head + i * p->bias.strides.row +
                            j * p->bias.strides.column);
    if (stage >= CLATTN_SCORES_BIAS && p->alibi.present)
        x -= (double)((const float *)t.data[SLOPES])[h] * fabs((double)(i + s->offset - j));
    return x;
}

static void near(double got, double want, const char *what, int64_t b, int64_t h, int64_t i, int64_t j)
{
    if (!(got == want || fabs(got - want) <= 1e-5 * (1.0 + fabs(want))))
        fail_msg("\"%s\", scores %d: %s of batch %d, head %d, row %d, column %d: got %.9g, wanted %.9g", t.shape,
                 (int)t.p.scores.kind, what, (int)b, (int)h, (int)i, (int)j, got, want);
}

static void check_row(const struct sequence *s, int64_t b, int64_t h, int64_t i)
{
    const clattn_problem *p = &t.p;
    const int64_t score_head = h - p->scores.first_head, first = p->packed.starts ? 0 : b;
    const int64_t chosen = p->scores.heads ? p->scores.heads : p->heads_q - p->scores.first_head;
    /* A row past the queries of its sequence has no sink. */
    const bool has_sink = p->sinks && i < s->q_length;
    double largest = has_sink ? (double)((const float *)t.data[SINKS])[h] : -INFINITY, sum = 0.0;
    for (int64_t j = 0; j < t.call.seq_kv; j++)
        largest = fmax(largest, score(s, b, h, i, j, CLATTN_SCORES_BIAS));
    const double base = largest == -INFINITY ? 0.0 : largest;
    for (int64_t j = 0; j < t.call.seq_kv; j++)
        sum += exp(score(s, b, h, i, j, CLATTN_SCORES_BIAS) - base);
    sum += has_sink ? exp((double)((const float *)t.data[SINKS])[h] - base) : 0.0;
    for (int64_t j = 0; j < t.call.seq_kv && p->scores.kind && score_head >= 0 && score_head < chosen; j++) {
        const double want = p->scores.kind == CLATTN_SCORES_SOFTMAX
                                ? exp(score(s, b, h, i, j, CLATTN_SCORES_BIAS) - base) / (sum == 0.0 ? 1.0 : sum)
                                : score(s, b, h, i, j, p->scores.kind);
        near(((const float *)t.data[SCORES])[b * p->scores.strides.batch + score_head * p->scores.strides.head +
                                             i * p->scores.strides.row + j * p->scores.strides.column],
             want, "score", b, h, i, j);
    }
    for (int64_t e = 0; e < p->head_dim_v && i < s->q_rows; e++) {
        const int64_t g = h / (p->heads_q / p->heads_kv);
        double want = 0.0;
        for (int64_t j = 0; j < t.call.seq_kv; j++)
            if (visible(s, b, h, i, j))
                want += exp(score(s, b, h, i, j, CLATTN_SCORES_BIAS) - base) / sum *
                        at(2, p->v.type,
                           first * p->v.strides.batch + g * p->v.strides.head + (s->kv_start + j) * p->v.strides.row + e);
        near(((const float *)
                  t.data[O])[first * p->o.strides.batch + h * p->o.strides.head + (s->q_start + i) * p->o.strides.row + e],
             want, "output", b, h, i, e);
    }
    if (i < s->q_rows)
        near(((const float *)
                  t.data[LSE])[first * p->lse.strides.batch + h * p->lse.strides.head + (s->q_start + i) * p->lse.strides.row],
             sum == 0.0 ? -INFINITY : largest + log(sum), "LSE", b, h, i, 0);
}

/* --------------------------------------------------------------------------------------------------------------- inputs */

static float noise(int buffer, int64_t i) { return random_signed(random_mix((uint64_t)i * 64 + (uint64_t)buffer)); }

static void *make(int buffer, size_t count, size_t size)
{
    t.bytes[buffer] = (count > 0 ? count : 1) * size;
    t.data[buffer] = calloc(1, t.bytes[buffer]);
    assert_non_null(t.data[buffer]);
    return t.data[buffer];
}

static void make_storage(int buffer, clattn_type type, int64_t count, float size)
{
    void *data = make(buffer, (size_t)count, storage_size(type));
    for (int64_t i = 0; i < count; i++)
        storage_set(type, data, i, size * noise(buffer, i));
}

static void make_integers(int buffer, clattn_integer type, const int64_t *values, int count)
{
    void *data = make(buffer, (size_t)count, sizeof(int64_t));
    for (int i = 0; i < count; i++) {
        if (type == CLATTN_INT64)
            ((int64_t *)data)[i] = values[i];
        else
            ((int32_t *)data)[i] = (int32_t)values[i];
    }
}

/* Some rows see no key, key 4 is masked for all rows, the rest is random. */
static void make_mask(int64_t count, int64_t keys)
{
    unsigned char *mask = make(MASK, (size_t)count, 1);
    for (int64_t i = 0; i < count; i++)
        mask[i] = i / keys % 27 == 2 || i % keys == 4 || noise(MASK, i) < -0.6f ? 0 : (unsigned char)(1 + i % 255);
}

static void make_bias(int64_t count)
{
    make_storage(BIAS, t.p.bias.type, count, 2.0f);
    for (int64_t i = 0; i < count; i += 7)
        storage_set(t.p.bias.type, t.data[BIAS], i, i % 3 == 0 ? -INFINITY : i % 3 == 1 ? -65504.0f : 30.0f);
}

static void make_inputs(void)
{
    /* Lengths past the capacity and below 0, sequences of nothing. */
    static const int64_t q_lengths[MAX_BATCH] = {99, 5, 0, 1}, kv_lengths[MAX_BATCH] = {17, 99, 3, -5};
    static const int64_t offsets[MAX_BATCH] = {0, -3, 11, (int64_t)1 << 31}, q_starts[] = {0, 4, 4, 13, 12};
    static const int64_t kv_starts[] = {-9, 21, 24, 40, 39};
    const clattn_problem *p = &t.p;
    const int64_t everything = p->batch * p->heads_q * p->seq_q * p->seq_kv;
    make_storage(0, p->q.type, p->batch * p->heads_q * p->seq_q * p->head_dim_qk, 2.0f);
    make_storage(1, p->k.type, p->batch * p->heads_kv * p->seq_kv * p->head_dim_qk, 2.0f);
    make_storage(2, p->v.type, p->batch * p->heads_kv * p->seq_kv * p->head_dim_v, 1.0f);
    make_mask(everything, p->seq_kv);
    make_bias(everything);
    make_storage(FACTORS, CLATTN_FP32, p->heads_q, 2.0f);
    make_storage(SLOPES, CLATTN_FP32, p->heads_q, 0.3f);
    make_storage(SINKS, CLATTN_FP32, p->heads_q, 3.0f);
    ((float *)t.data[SINKS])[0] = -INFINITY;
    make_integers(Q_LENGTHS, p->q_lengths, q_lengths, MAX_BATCH);
    make_integers(KV_LENGTHS, p->kv_lengths, kv_lengths, MAX_BATCH);
    make_integers(OFFSETS, p->offsets, offsets, p->offsets == CLATTN_INT64 ? MAX_BATCH : MAX_BATCH - 1);
    make_integers(Q_STARTS, p->packed.starts, q_starts, MAX_BATCH + 1);
    make_integers(KV_STARTS, p->packed.starts, kv_starts, MAX_BATCH + 1);
    const int64_t outputs[] = {p->batch * p->heads_q * p->seq_q * p->head_dim_v, p->batch * p->heads_q * p->seq_q,
                               p->batch * (p->scores.heads ? p->scores.heads : p->heads_q - p->scores.first_head) * p->seq_q *
                                   p->seq_kv};
    for (int i = 0; i < 3; i++) {
        make(O + i, (size_t)outputs[i], sizeof(float));
        for (int64_t j = 0; j < outputs[i]; j++)
            ((float *)t.data[O + i])[j] = NAN;
    }
}

static bool anyone_sees(const struct sequence *s, int64_t b, int64_t g, int64_t j)
{
    const int64_t group = t.p.heads_q / t.p.heads_kv;
    for (int64_t h = g * group; h < (g + 1) * group; h++)
        for (int64_t i = 0; i < t.call.seq_q; i++)
            if (visible(s, b, h, i, j))
                return true;
    return false;
}

/* NaN and infinity in V of masked keys, and in their K where no score before the mask is requested. */
static void poison_unseen(void)
{
    const clattn_problem *p = &t.p;
    for (int64_t b = 0; b < t.call.batch; b++) {
        const struct sequence s = sequence_of(b);
        for (int64_t g = 0; g < p->heads_kv; g++)
            for (int64_t j = 0; j < s.kv_rows; j++) {
                const int64_t row = s.kv_start + j, batch = p->packed.starts ? 0 : b;
                if (anyone_sees(&s, b, g, j))
                    continue;
                for (int64_t e = 0; e < p->head_dim_v; e++)
                    storage_set(p->v.type, t.data[2],
                                batch * p->v.strides.batch + g * p->v.strides.head + row * p->v.strides.row + e,
                                e % 2 ? NAN : INFINITY);
                if (p->scores.kind >= CLATTN_SCORES_BIAS)
                    storage_set(p->k.type, t.data[1],
                                batch * p->k.strides.batch + g * p->k.strides.head + row * p->k.strides.row, NAN);
            }
    }
}

/* ------------------------------------------------------------------------------------------------------------------ run */

static void run(const char *engine, clattn_plan **plan)
{
    clattn_error error;
    clattn_plan_options options;
    clattn_error_init(&error);
    clattn_plan_options_init(&options);
    options.at_bounds = true;
    options.engine = engine;
    assert_ok(clattn_plan_create(bench.context, &t.p, &options, plan, &error), &error);
}

static void enqueue(clattn_plan *plan)
{
    clattn_error error;
    cl_event event;
    clattn_buffer *const buffers[BUFFERS] = {&t.call.q,          &t.call.k,       &t.call.v,
                                             &t.call.o,          &t.call.lse,     &t.call.scores,
                                             &t.call.mask,       &t.call.bias,    &t.call.bias_factors,
                                             &t.call.alibi,      &t.call.sinks,   &t.call.q_lengths,
                                             &t.call.kv_lengths, &t.call.offsets, &t.call.q_starts,
                                             &t.call.kv_starts};
    clattn_error_init(&error);
    for (int i = 0; i < BUFFERS; i++) {
        cl_int code;
        t.mem[i] = clCreateBuffer(clattn_context_cl(bench.context), CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, t.bytes[i],
                                  t.data[i], &code);
        assert_int_equal(code, CL_SUCCESS);
        *buffers[i] = clattn_mem(t.mem[i], 0);
    }
    assert_ok(clattn_enqueue(plan, queue, &t.call, 0, NULL, &event, &error), &error);
    assert_int_equal(clWaitForEvents(1, &event), CL_SUCCESS);
    clReleaseEvent(event);
    for (int i = O; i <= SCORES; i++)
        assert_int_equal(clEnqueueReadBuffer(queue, t.mem[i], CL_TRUE, 0, t.bytes[i], t.data[i], 0, NULL, NULL), CL_SUCCESS);
    for (int i = 0; i < BUFFERS; i++)
        clReleaseMemObject(t.mem[i]);
}

static void parse(const struct setup *setup, clattn_scores_kind kind)
{
    clattn_error error;
    clattn_error_init(&error);
    memset(&t, 0, sizeof t);
    assert_ok(clattn_problem_parse(setup->shape, &t.p, &error), &error);
    t.p.scores.kind = kind;
    t.shape = setup->shape;
    if (setup->transposed) {
        t.p.scores.strides.column = t.p.seq_q;
        t.p.scores.strides.row = 1;
    }
}

static void check(const struct setup *setup, clattn_scores_kind kind, const char *engine)
{
    clattn_plan *plan;
    parse(setup, kind);
    run(engine, &plan);
    clattn_call_init(&t.call, plan);
    t.call.batch = setup->batch ? setup->batch : t.call.batch;
    t.call.seq_q = setup->seq_q ? setup->seq_q : t.call.seq_q;
    t.call.seq_kv = setup->seq_kv ? setup->seq_kv : t.call.seq_kv;
    t.call.mask_columns = setup->mask_columns ? setup->mask_columns : t.call.seq_kv;
    t.call.bias_columns = setup->bias_columns ? setup->bias_columns : t.call.seq_kv;
    make_inputs();
    if (engine != NULL)
        poison_unseen();
    enqueue(plan);
    clattn_plan_destroy(plan);
    for (int64_t b = 0; b < t.call.batch; b++) {
        const struct sequence s = sequence_of(b);
        for (int64_t h = 0; h < t.p.heads_q; h++)
            for (int64_t i = 0; i < t.call.seq_q; i++)
                check_row(&s, b, h, i);
    }
    /* Rows that no packed sequence has are left alone. */
    for (int64_t i = integer(Q_STARTS, t.p.packed.starts, 3); t.p.packed.starts && i < t.p.packed.total_q; i++)
        assert_true(isnan(((const float *)t.data[O])[i * t.p.o.strides.row]));
    for (int i = 0; i < BUFFERS; i++)
        free(t.data[i]);
}

#define BASE "b3 hq4 hkv2 q9 k21 d8 dv5 lse "
#define LONG "b4 hq4 hkv2 q9 k21 d8 dv5 lse "

static const struct setup setups[] = {
    {.shape = BASE},
    {.shape = BASE "causal=bottom-right score-heads=1,2", .transposed = true},
    {.shape = BASE "scale=-0.5 causal=-3 score-heads=3,0"},
    {.shape = BASE "softcap=1.5"},
    {.shape = BASE "mask=bhqk score-heads=0,1"},
    {.shape = BASE "mask=k", .mask_columns = 13},
    {.shape = BASE "bias=hqk bias-factors", .bias_columns = 16},
    {.shape = BASE "bias=bqk bias-type=fp16 softcap=4"},
    {.shape = BASE "bias=bk bias-type=bf16 mask=bk"},
    {.shape = BASE "alibi causal=6"},
    {.shape = BASE "sinks causal"},
    {.shape = LONG "kv-lengths q-lengths=int64 causal=bottom-right"},
    {.shape = LONG "kv-lengths=int64 q-lengths alibi corner=bottom-right sinks"},
    {.shape = LONG "offsets=int64 window=3,1"},
    {.shape = BASE "offsets alibi window=-1,4"},
    {.shape = LONG "packed causal=bottom-right"},
    {.shape = LONG "packed=int64 kv-lengths q-lengths mask=hqk bias=qk alibi sinks"},
    {.shape =
         LONG "mask=bqk bias=hqk bias-type=fp16 bias-factors alibi sinks softcap=3 kv-lengths window=8,6 corner=bottom-right "
              "score-heads=1,3",
     .mask_columns = 19,
     .bias_columns = 20,
     .transposed = true},
    {.shape = LONG "mask=hqk causal", .batch = 2, .seq_q = 5, .seq_kv = 11},
};

static void check_all(const char *engine)
{
    for (size_t i = 0; i < COUNT_OF(setups); i++)
        for (int kind = CLATTN_SCORES_NONE; kind <= CLATTN_SCORES_SOFTMAX; kind++)
            if (kind != CLATTN_SCORES_NONE || engine != NULL)
                check(&setups[i], (clattn_scores_kind)kind, engine);
}

static void unfused_gives_scores_at_every_stage(void **state)
{
    (void)state;
    check_all("unfused");
}

static void scores_come_with_the_output_of_the_chosen_engine(void **state)
{
    (void)state;
    check_all(NULL);
}

static void scores_come_with_the_output_of_a_named_engine(void **state)
{
    (void)state;
    check_all("reference");
}

/* One query 1 and keys 1 and 2, softcap 1, bias 0 and -1: the numbers of docs/semantics.md. */
static void a_worked_example_has_its_scores(void **state)
{
    (void)state;
    static const struct setup setup = {.shape = "q1 k2 d1 scale=1 softcap=1 bias=qk lse"};
    static const double want[][2] = {{1.0, 2.0}, {0.76159, 0.96403}, {0.76159, -0.03597}, {0.68945, 0.31055}};
    for (int kind = CLATTN_SCORES_RAW; kind <= CLATTN_SCORES_SOFTMAX; kind++) {
        clattn_plan *plan;
        parse(&setup, (clattn_scores_kind)kind);
        run(NULL, &plan);
        clattn_call_init(&t.call, plan);
        make_inputs();
        ((float *)t.data[0])[0] = 1.0f;
        for (int j = 0; j < 2; j++) {
            ((float *)t.data[1])[j] = (float)(j + 1);
            ((float *)t.data[2])[j] = (float)j;
            ((float *)t.data[BIAS])[j] = (float)-j;
        }
        enqueue(plan);
        clattn_plan_destroy(plan);
        for (int j = 0; j < 2; j++)
            assert_near(((float *)t.data[SCORES])[j], want[kind - 1][j], 1e-5);
        assert_near(((float *)t.data[O])[0], 0.31055, 1e-5);
        for (int i = 0; i < BUFFERS; i++)
            free(t.data[i]);
    }
}

/* Scores next to a fused result take memory for their own heads only, and none before softmax. */
static void scores_take_memory_for_their_heads_only(void **state)
{
    (void)state;
    static const struct setup setup = {.shape = "b2 hq8 q40 k50 d8 score-heads=2,3"};
    static const size_t all = 2 * 8 * 40 * 50 * sizeof(float), range = 2 * 3 * 40 * 50 * sizeof(float);
    for (int kind = CLATTN_SCORES_RAW; kind <= CLATTN_SCORES_SOFTMAX; kind++) {
        clattn_plan *fused, *alone;
        char text[4096];
        parse(&setup, (clattn_scores_kind)kind);
        run(NULL, &fused);
        run("unfused", &alone);
        assert_int_equal(clattn_workspace_size(fused), kind == CLATTN_SCORES_SOFTMAX ? range : 0);
        assert_int_equal(clattn_workspace_size(alone), all);
        assert_string_not_equal(clattn_plan_engine(fused), "unfused");
        assert_int_equal(clattn_plan_describe(fused, text, sizeof text, NULL), CLATTN_SUCCESS);
        assert_contains(text, "scores: by unfused");
        assert_lacks(text, "unfused_output");
        assert_int_equal(clattn_plan_describe(alone, text, sizeof text, NULL), CLATTN_SUCCESS);
        assert_lacks(text, "scores: by");
        clattn_plan_destroy(fused);
        clattn_plan_destroy(alone);
    }
}

/* An avoided engine cannot give scores either, and the refusal comes before anything is built. */
static void avoided_scores_are_unsupported(void **state)
{
    (void)state;
    clattn_error error;
    clattn_plan_options options;
    clattn_error_init(&error);
    clattn_plan_options_init(&options);
    options.at_bounds = true;
    options.avoid = "unfused";
    static const struct setup setup = {.shape = "q4 d8"};
    parse(&setup, CLATTN_SCORES_BIAS);
    assert_refused(clattn_supported(bench.context, &t.p, &options, &error), CLATTN_UNSUPPORTED, &error, "");
    clattn_plan *plan;
    assert_refused(clattn_plan_create(bench.context, &t.p, &options, &plan, &error), CLATTN_UNSUPPORTED, &error, "");
    assert_null(plan);
    parse(&setup, CLATTN_SCORES_NONE);
    assert_ok(clattn_supported(bench.context, &t.p, &options, &error), &error);
}

static int open_queue(void **state)
{
    if (bench_open(state) != 0)
        return -1;
    queue = bench_queue_with(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    return queue ? 0 : -1;
}

static int close_queue(void **state)
{
    clReleaseCommandQueue(queue);
    return bench_close(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unfused_gives_scores_at_every_stage),
        cmocka_unit_test(scores_come_with_the_output_of_the_chosen_engine),
        cmocka_unit_test(scores_come_with_the_output_of_a_named_engine),
        cmocka_unit_test(a_worked_example_has_its_scores),
        cmocka_unit_test(scores_take_memory_for_their_heads_only),
        cmocka_unit_test(avoided_scores_are_unsupported),
    };
    return cmocka_run_group_tests_name("cl/scores", tests, open_queue, close_queue);
}
