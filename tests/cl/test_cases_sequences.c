/* SPDX-License-Identifier: Apache-2.0
 * Batches of sequences: lengths, packing, split keys and merging, as public bug reports have them; and one real layer three
 * ways. */
#include "attend.h"
#include "files.h"

#include "arrays.h"

static void set_starts(const struct trial_tensor *t, const int64_t *starts)
{
    for (int64_t i = 0; i < t->size[3]; i++) {
        trial_set_integer(t, i, starts[i]);
    }
}

static void set_noise(const struct trial_tensor *t)
{
    for (int64_t b = 0; b < t->size[0]; b++) {
        for (int64_t h = 0; h < t->size[1]; h++) {
            for (int64_t s = 0; s < t->size[2]; s++) {
                for (int64_t d = 0; d < t->size[3]; d++) {
                    trial_set(t, b, h, s, d, (float)((b * 5 + h * 7 + s * 37 + d * 11) % 29) / 14.0f - 1.0f);
                }
            }
        }
    }
}

/* Those examples of docs/semantics.md that the tests below do not hold. */
static void worked_examples_of_the_semantics_page_hold(void **state)
{
    (void)state;
    static const int64_t starts[] = {0, 1, 3};
    static const struct {
        const char *shape;
        float v[4];
        int64_t number; /* of lengths or offsets */
        double want[3];
    } rows[] = {
        {"q1 k4 d8 kv-lengths", {5.0f, 10.0f, NAN, INFINITY}, 2, {7.5}},
        {"q1 k4 d8 kv-lengths=int64 causal=bottom-right", {5.0f, 10.0f, NAN, INFINITY}, 2, {7.5}},
        {"q1 k2 d8 offsets causal", {5.0f, 10.0f}, 0, {5.0}},
        {"q1 k2 d8 offsets causal", {5.0f, 10.0f}, 1, {7.5}},
        {"q1 k2 d8 offsets=int64 causal", {5.0f, 10.0f}, -1, {0.0}},
        {"q1 k2 d8 alibi", {0.0f, 1.0f}, 0, {0.26894}},
        {"q1 k2 d8 mask=k", {0.0f, 1.0f}, 0, {0.0}},
        {"b2 q2 k2 d8 packed causal", {1.0f, 2.0f, 3.0f}, 0, {1.0, 2.0, 2.5}},
        {"b2 q2 k2 d8 packed=int64 causal=bottom-right", {1.0f, 2.0f, 3.0f}, 0, {1.0, 2.0, 2.5}},
    };
    FOR_EACH_ENGINE(engine)
    {
        for (size_t i = 0; i < COUNT_OF(rows); i++) {
            struct attend a;
            attend_begin(&a, rows[i].shape);
            attend_fill(&a.data.alibi, 1.0f);
            for (int64_t j = 0; j < a.data.mask.size[3]; j++) {
                trial_set(&a.data.mask, 0, 0, 0, j, j == 0 ? 1.0f : 0.0f);
            }
            set_starts(&a.data.q_starts, starts);
            set_starts(&a.data.kv_starts, starts);
            set_starts(&a.data.kv_lengths, &rows[i].number);
            set_starts(&a.data.offsets, &rows[i].number);
            for (int64_t j = 0; j < a.data.v.size[2]; j++) {
                trial_set(&a.data.v, 0, 0, j, 0, rows[i].v[j]);
            }
            if (attend_run(&a, engine)) {
                for (int64_t s = 0; s < (a.data.q_starts.count > 0 ? 3 : 1); s++) {
                    assert_near(trial_get(&a.data.o, 0, 0, s, 0), rows[i].want[s], 1e-5);
                }
            }
            attend_end(&a);
        }
    }
}

/* Merging chunks must use the output's row stride, not its head size. */
static void split_keys_are_right_in_any_layout(void **state)
{
    (void)state;
    static const char *const shapes[] = {"b3 hq3 q4 k96 d64 lse layout=bshd chunk=32",
                                         "b3 hq3 q4 k300 d64 lse layout=padded chunk=100",
                                         "b3 hq3 q4 k300 d64 lse layout=reversed-seq chunk=100 seed=2"};
    FOR_EACH_ENGINE(engine)
    {
        for (size_t i = 0; i < COUNT_OF(shapes); i++) {
            attend_check(engine, shapes[i]);
        }
    }
}

static void shared_heads_with_a_mask_are_right(void **state)
{
    (void)state;
    static const int keys[] = {32, 33, 34, 65, 97};
    FOR_EACH_ENGINE(engine)
    {
        for (size_t i = 0; i < COUNT_OF(keys); i++) {
            char shape[128];
            snprintf(shape, sizeof shape, "b2 hq8 q5 k%d d64 bf16 mask=bqk layout=shared-heads seed=%d", keys[i], (int)i);
            attend_check(engine, shape);
        }
    }
}

/* Sequences without queries or without keys must not write out of bounds. */
static void empty_sequences_touch_no_other_rows(void **state)
{
    (void)state;
    static const int64_t cu_q[] = {0, 0, 3, 5, 5}, cu_k[] = {0, 4, 9, 12, 20}, no_k[] = {0, 4, 4, 12, 20};
    FOR_EACH_ENGINE(engine)
    {
        for (int empty_keys = 0; empty_keys < 2; empty_keys++) {
            struct attend a;
            attend_begin(&a, "b4 hq2 q5 k8 d256 packed lse");
            set_noise(&a.data.q);
            set_noise(&a.data.k);
            set_noise(&a.data.v);
            set_starts(&a.data.q_starts, cu_q);
            set_starts(&a.data.kv_starts, empty_keys ? no_k : cu_k);
            if (attend_run(&a, engine)) {
                for (int64_t i = 0; i < 5; i++) {
                    const bool empty = empty_keys && i < 3;
                    assert_true((trial_get(&a.data.lse, 0, 1, i, 0) == -INFINITY) == empty);
                    assert_true((trial_get(&a.data.o, 0, 1, i, 200) == 0.0f) == empty);
                }
            }
            attend_end(&a);
        }
    }
}

/* With split keys, rows after the first sequence are written too. */
static void packed_sequences_with_split_keys_are_all_written(void **state)
{
    (void)state;
    static const int64_t cu_q[] = {0, 1, 2}, cu_k[] = {0, 1024, 1500};
    FOR_EACH_ENGINE(engine)
    {
        struct attend one, two;
        attend_begin(&one, "b2 hq4 q1 k1024 d64 packed lse chunk=-1");
        attend_begin(&two, "b2 hq4 q1 k1024 d64 packed lse chunk=512");
        struct attend *const both[] = {&one, &two};
        bool ran = true;
        for (int i = 0; i < 2; i++) {
            set_noise(&both[i]->data.q);
            set_noise(&both[i]->data.k);
            set_noise(&both[i]->data.v);
            set_starts(&both[i]->data.q_starts, cu_q);
            set_starts(&both[i]->data.kv_starts, cu_k);
            ran = attend_run(both[i], engine) && ran;
        }
        for (int64_t i = 0; ran && i < 2 * 4 * 64; i++) {
            const int64_t h = i / 128, s = i / 64 % 2, d = i % 64;
            assert_near(trial_get(&one.data.o, 0, h, s, d), trial_get(&two.data.o, 0, h, s, d), 1e-5);
        }
        attend_end(&one);
        attend_end(&two);
    }
}

/* The number of chunks must not matter, and one that owns no key contributes nothing. */
static void the_number_of_chunks_does_not_matter(void **state)
{
    (void)state;
    static const int keys[] = {1, 2, 3, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 127, 128, 129, 255, 256, 257, 299, 300};
    static const int splits[] = {1, 2, 3, 7, 16, 305};
    FOR_EACH_ENGINE(engine)
    {
        for (size_t i = 0; i < COUNT_OF(keys); i++) {
            char shape[128];
            snprintf(shape, sizeof shape, "hq4 hkv2 q1 k%d d64 lse chunk=0 seed=%zu", keys[i], i);
            attend_check(engine, shape);
            for (size_t n = 0; n < COUNT_OF(splits); n++) {
                snprintf(shape, sizeof shape, "hq4 hkv2 q1 k%d d64 lse chunk=%d seed=%zu", keys[i],
                         (keys[i] + splits[n] - 1) / splits[n], i);
                attend_check(engine, shape);
                snprintf(shape, sizeof shape, "b3 hq4 hkv2 q1 k%d d64 lse kv-lengths chunk=%d seed=%zu", keys[i],
                         (keys[i] + splits[n] - 1) / splits[n], i + n);
                attend_check(engine, shape);
            }
        }
    }
}

/* However a row comes to see no key, its LSE is -inf. */
static void every_kind_of_empty_row_has_an_lse_of_minus_infinity(void **state)
{
    (void)state;
    static const char *const shapes[] = {"q3 k2 d64 lse kv-lengths", "q3 k2 d64 lse packed",
                                         "q3 k2 d64 lse mask=k",     "q3 k2 d64 lse bias=k",
                                         "q3 k2 d64 lse causal=-9",  "q3 k2 d64 lse chunk=1 mask=k",
                                         "q3 k2 d64 lse q-lengths",  "q3 k2 d64 lse chunk=1 kv-lengths"};
    static const int64_t starts[] = {0, 3}, no_keys[] = {0, 0};
    FOR_EACH_ENGINE(engine)
    {
        for (size_t i = 0; i < COUNT_OF(shapes); i++) {
            struct attend a;
            attend_begin(&a, shapes[i]);
            attend_fill(&a.data.v, 1.0f);
            attend_fill(&a.data.kv_lengths, 0.0f);
            attend_fill(&a.data.q_lengths, 0.0f);
            attend_fill(&a.data.mask, 0.0f);
            attend_fill(&a.data.bias, -INFINITY);
            set_starts(&a.data.q_starts, starts);
            set_starts(&a.data.kv_starts, no_keys);
            if (attend_run(&a, engine)) {
                for (int64_t s = 0; s < 3; s++) {
                    assert_true(trial_get(&a.data.lse, 0, 0, s, 0) == -INFINITY);
                    assert_true(trial_get(&a.data.o, 0, 0, s, 63) == 0.0f);
                }
            }
            attend_end(&a);
        }
    }
}

/* Every run gives the same bits. */
static void thirty_runs_give_the_same_bits(void **state)
{
    (void)state;
    FOR_EACH_ENGINE(engine)
    {
        attend_check(engine, "hq2 q96 k1024 d64 fp16 causal=bottom-right lse repeats=30");
        attend_check(engine, "hq2 q1 k1024 d64 fp16 lse chunk=128 repeats=30");
    }
}

enum { MATE_KEYS = 1024, MATE_LENGTH = 777 };

/* Runs a batch of `batch` in which sequence `place` is the one under test; its output goes to o[4 * 64]. */
static bool run_among(const char *engine, int batch, int place, float *o)
{
    char shape[128];
    struct attend a;
    snprintf(shape, sizeof shape, "b%d hq4 hkv2 q1 k%d d64 kv-lengths", batch, MATE_KEYS);
    attend_begin(&a, shape);
    set_noise(&a.data.q);
    set_noise(&a.data.k);
    set_noise(&a.data.v);
    for (int64_t b = 0; b < batch; b++) {
        trial_set_integer(&a.data.kv_lengths, b, b == place ? MATE_LENGTH : b * 131 % MATE_KEYS);
    }
    for (int64_t h = 0; h < 4; h++) {
        for (int64_t d = 0; d < 64; d++) {
            trial_set(&a.data.q, place, h, 0, d, (float)((h * 3 + d * 5) % 17) / 8.0f - 1.0f);
            for (int64_t j = 0; h < 2 && j < MATE_LENGTH; j++) {
                trial_set(&a.data.k, place, h, j, d, (float)((h + j * 7 + d * 3) % 23) / 11.0f - 1.0f);
                trial_set(&a.data.v, place, h, j, d, (float)((h + j * 5 + d * 2) % 19) / 9.0f - 1.0f);
            }
        }
    }
    const bool ran = attend_launch(&a, engine);
    for (int64_t i = 0; ran && i < 4 * 64; i++) {
        o[i] = trial_get(&a.data.o, place, i / 64, 0, i % 64);
    }
    attend_end(&a);
    return ran;
}

static void other_batch_entries_do_not_change_a_result(void **state)
{
    (void)state;
    static const int batches[] = {4, 4, 40, 40, 40}, places[] = {0, 3, 0, 17, 39};
    FOR_EACH_ENGINE(engine)
    {
        float alone[4 * 64], among[4 * 64];
        if (!run_among(engine, 1, 0, alone)) {
            continue;
        }
        for (size_t i = 0; i < COUNT_OF(batches); i++) {
            assert_true(run_among(engine, batches[i], places[i], among));
            assert_memory_equal(among, alone, sizeof alone);
        }
    }
}

/* ------------------------------------------------------------------------------------------------------------- merging */

static cl_mem floats(const float *x, size_t count)
{
    cl_int code;
    const cl_mem mem = clCreateBuffer(clattn_context_cl(bench.context), CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR,
                                      count * sizeof *x, (void *)(uintptr_t)x, &code);
    assert_int_equal(code, CL_SUCCESS);
    return mem;
}

static void get_floats(cl_mem mem, float *x, size_t count)
{
    assert_int_equal(clEnqueueReadBuffer(bench.queue, mem, CL_TRUE, 0, count * sizeof *x, x, 0, NULL, NULL), CL_SUCCESS);
}

static clattn_partial partial(cl_mem o, cl_mem lse, int64_t heads, int64_t rows, int64_t dim)
{
    return (clattn_partial){.o = clattn_mem(o, 0),
                            .lse = clattn_mem(lse, 0),
                            .o_layout = {CLATTN_FP32, {heads * rows * dim, rows * dim, dim, 1}},
                            .lse_strides = {.batch = heads * rows, .head = rows, .row = 1}};
}

enum { ROWS = 5 };

/* One element a row: merges a with b, into a buffer of its own or (in_place) into a's. */
static void merge_rows(const float *a, const float *a_lse, const float *b, const float *b_lse, bool in_place, float *o,
                       float *lse)
{
    static const float nothing[ROWS] = {NAN, NAN, NAN, NAN, NAN};
    cl_mem mems[] = {floats(a, ROWS),     floats(a_lse, ROWS),   floats(b, ROWS),
                     floats(b_lse, ROWS), floats(nothing, ROWS), floats(nothing, ROWS)};
    clattn_merge m;
    clattn_error error;
    clattn_error_init(&error);
    clattn_merge_init(&m);
    m.batch = m.heads = 1;
    m.seq_q = ROWS;
    m.head_dim = 1;
    m.a = partial(mems[0], mems[1], 1, ROWS, 1);
    m.b = partial(mems[2], mems[3], 1, ROWS, 1);
    m.out = in_place ? m.a : partial(mems[4], mems[5], 1, ROWS, 1);
    assert_ok(clattn_enqueue_merge(bench.context, bench.queue, &m, 0, NULL, NULL, &error), &error);
    get_floats(in_place ? mems[0] : mems[4], o, ROWS);
    get_floats(in_place ? mems[1] : mems[5], lse, ROWS);
    for (size_t i = 0; i < COUNT_OF(mems); i++) {
        clReleaseMemObject(mems[i]);
    }
}

/* Two empty parts must not give NaN; one empty part must leave the other bit for bit. */
static void merging_an_empty_part_changes_nothing(void **state)
{
    (void)state;
    const float a[ROWS] = {0.0f, 2.0f, 0.1f, NAN, 1.0f}, a_lse[ROWS] = {-INFINITY, logf(3.0f), -7.3f, -INFINITY, 1000.0f};
    const float b[ROWS] = {0.0f, 5.0f, 0.0f, 0.7f, 3.0f}, b_lse[ROWS] = {-INFINITY, 0.0f, -INFINITY, 2.5f, 1000.0f};
    for (int in_place = 0; in_place < 2; in_place++) {
        float o[ROWS], lse[ROWS];
        merge_rows(a, a_lse, b, b_lse, in_place, o, lse);
        assert_true(o[0] == 0.0f && lse[0] == -INFINITY);
        assert_near(o[1], 2.75, 1e-6);
        assert_near(lse[1], log(4.0), 1e-6);
        assert_true(o[2] == 0.1f && lse[2] == -7.3f);
        assert_true(o[3] == 0.7f && lse[3] == 2.5f);
        assert_near(o[4], 2.0, 1e-4);
        assert_near(lse[4], 1000.0 + log(2.0), 1e-3);
    }
}

/* Attention over two parts of the keys, merged, is attention over all of them. */
static void two_merged_halves_equal_the_whole(void **state)
{
    (void)state;
    enum { KEYS = 200, FIRST = 77, COUNT = 3 * 64, LSES = 3 };
    struct attend parts[3];
    static const char *const shapes[] = {"hq1 q3 k200 d64 lse", "hq1 q3 k77 d64 lse", "hq1 q3 k123 d64 lse"};
    float o[3][COUNT], lse[3][LSES];
    for (int i = 0; i < 3; i++) {
        attend_begin(&parts[i], shapes[i]);
        set_noise(&parts[i].data.q);
        for (int64_t j = 0; j < parts[i].trial.seq_kv; j++) {
            const int64_t key = i == 2 ? j + FIRST : j;
            for (int64_t d = 0; d < 64; d++) {
                trial_set(&parts[i].data.k, 0, 0, j, d, (float)((key * 7 + d * 3) % 23) / 11.0f - 1.0f);
                trial_set(&parts[i].data.v, 0, 0, j, d, (float)((key * 5 + d * 2) % 19) / 9.0f - 1.0f);
            }
        }
        assert_true(attend_run(&parts[i], "reference"));
        for (int64_t n = 0; n < COUNT; n++) {
            o[i][n] = trial_get(&parts[i].data.o, 0, 0, n / 64, n % 64);
            lse[i][n / 64] = trial_get(&parts[i].data.lse, 0, 0, n / 64, 0);
        }
        attend_end(&parts[i]);
    }
    cl_mem mems[] = {floats(o[1], COUNT), floats(lse[1], LSES), floats(o[2], COUNT), floats(lse[2], LSES)};
    clattn_merge m;
    clattn_error error;
    float merged[COUNT], merged_lse[LSES];
    clattn_error_init(&error);
    clattn_merge_init(&m);
    m.batch = m.heads = 1;
    m.seq_q = 3;
    m.head_dim = 64;
    m.a = partial(mems[0], mems[1], 1, 3, 64);
    m.b = partial(mems[2], mems[3], 1, 3, 64);
    m.out = m.a;
    assert_ok(clattn_enqueue_merge(bench.context, bench.queue, &m, 0, NULL, NULL, &error), &error);
    get_floats(mems[0], merged, COUNT);
    get_floats(mems[1], merged_lse, LSES);
    for (int i = 0; i < COUNT; i++) {
        assert_near(merged[i], o[0][i], 2e-6);
        assert_near(merged_lse[i / 64], lse[0][i / 64], 2e-6);
    }
    for (size_t i = 0; i < COUNT_OF(mems); i++) {
        clReleaseMemObject(mems[i]);
    }
}

/* ----------------------------------------------------------------------------------------------- real activations */

enum { BATCH = 4, HEADS = 12, LONGEST = 58, DIM = 32, TOTAL = 12 + 58 + 7 + 3 };
static const int64_t real[BATCH] = {12, 58, 7, 3}, cumulative[BATCH + 1] = {0, 12, 70, 77, 80};

static struct npy minilm(const char *name)
{
    char path[512], why[NPY_WHY_SIZE];
    struct npy array;
    snprintf(path, sizeof path, "%s/tests/data/minilm/%s.npy", CLATTN_SOURCE_DIR, name);
    if (!npy_read(path, &array, why)) {
        fail_msg("%s: %s", path, why);
    }
    return array;
}

static double minilm_at(const struct npy *array, int64_t b, int64_t h, int64_t s, int64_t d)
{
    return array_get(array, (size_t)(((b * HEADS + h) * LONGEST + s) * DIM + d));
}

/* Real rows as they are; the rows after them are NaN and infinity. */
static void set_layer(const struct trial_tensor *t, const char *name, bool packed)
{
    struct npy array = minilm(name);
    for (int64_t b = 0; b < BATCH; b++) {
        for (int64_t h = 0; h < HEADS; h++) {
            for (int64_t s = 0; s < (packed ? real[b] : LONGEST); s++) {
                for (int64_t d = 0; d < DIM; d++) {
                    const float padding = d % 3 == 0 ? NAN : d % 3 == 1 ? INFINITY : -INFINITY;
                    const float x = s < real[b] ? (float)minilm_at(&array, b, h, s, d) : padding;
                    trial_set(t, packed ? 0 : b, h, packed ? cumulative[b] + s : s, d, x);
                }
            }
        }
    }
    npy_free(&array);
}

/* The packed tensors hold exactly the real rows. */
static void cut_to_rows(struct attend *a)
{
    clattn_problem *p = &a->trial.problem;
    trial_data_destroy(&a->data);
    p->packed.total_q = p->packed.total_kv = TOTAL;
    clattn_problem_set_layout(p, CLATTN_BHSD);
    assert_true(trial_data_create(&a->data, &a->trial));
}

static void minilm_is_right_padded_packed_and_split(void **state)
{
    (void)state;
    static const char *const ways[] = {"b4 hq12 q58 k58 d32 fp16 kv-lengths q-lengths", "b4 hq12 q58 k58 d32 fp16 packed",
                                       "b4 hq12 q58 k58 d32 fp16 mask=bqk"};
    struct npy expected = minilm("expected");
    FOR_EACH_ENGINE(engine)
    {
        for (size_t way = 0; way < COUNT_OF(ways); way++) {
            struct attend a;
            attend_begin(&a, ways[way]);
            const bool packed = a.data.q_starts.count > 0;
            if (packed) {
                cut_to_rows(&a);
                set_starts(&a.data.q_starts, cumulative);
                set_starts(&a.data.kv_starts, cumulative);
            }
            set_layer(&a.data.q, "q", packed);
            set_layer(&a.data.k, "k", packed);
            set_layer(&a.data.v, "v", packed);
            for (int64_t b = 0; b < BATCH; b++) {
                if (a.data.kv_lengths.count > 0) {
                    trial_set_integer(&a.data.q_lengths, b, real[b]);
                    trial_set_integer(&a.data.kv_lengths, b, real[b]);
                }
                for (int64_t i = 0; a.data.mask.count > 0 && i < LONGEST; i++) {
                    for (int64_t j = 0; j < LONGEST; j++) {
                        trial_set(&a.data.mask, b, 0, i, j, i < real[b] && j < real[b]);
                    }
                }
            }
            if (attend_run(&a, engine)) {
                for (int64_t b = 0; b < BATCH; b++) {
                    for (int64_t h = 0; h < HEADS; h++) {
                        for (int64_t s = 0; s < (packed ? real[b] : LONGEST); s++) {
                            for (int64_t d = 0; d < DIM; d++) {
                                const double got =
                                    (double)trial_get(&a.data.o, packed ? 0 : b, h, packed ? cumulative[b] + s : s, d);
                                const double want = s < real[b] ? minilm_at(&expected, b, h, s, d) : 0.0;
                                assert_near(got, want, 1e-3 * (1.0 + fabs(want)) * (s < real[b]));
                            }
                        }
                    }
                }
            }
            attend_end(&a);
        }
    }
    npy_free(&expected);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(worked_examples_of_the_semantics_page_hold),
        cmocka_unit_test(split_keys_are_right_in_any_layout),
        cmocka_unit_test(shared_heads_with_a_mask_are_right),
        cmocka_unit_test(empty_sequences_touch_no_other_rows),
        cmocka_unit_test(packed_sequences_with_split_keys_are_all_written),
        cmocka_unit_test(the_number_of_chunks_does_not_matter),
        cmocka_unit_test(every_kind_of_empty_row_has_an_lse_of_minus_infinity),
        cmocka_unit_test(merging_an_empty_part_changes_nothing),
        cmocka_unit_test(two_merged_halves_equal_the_whole),
        cmocka_unit_test(thirty_runs_give_the_same_bits),
        cmocka_unit_test(other_batch_entries_do_not_change_a_result),
        cmocka_unit_test(minilm_is_right_padded_packed_and_split),
    };
    return cmocka_run_group_tests(tests, bench_open, bench_close);
}
