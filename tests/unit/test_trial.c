/* SPDX-License-Identifier: Apache-2.0
 * tools/verify/trial*.c without a device: the text form, the buffers, and that the verdict fails for every defect. */
#include "support.h"

#include "../../tools/base/half.c"
#include "../../tools/verify/layout.c"
#include "../../tools/verify/oracle.c"
#include "../../tools/verify/trial_tensor.c"
#include "../../tools/verify/trial_data.c"
#include "../../tools/verify/trial_inputs.c"
#include "../../tools/verify/trial_judge.c"
#include "../../tools/verify/trial_options.c"
#include "../../tools/verify/trial_text.c"

static struct trial parse(const char *text)
{
    struct trial trial;
    clattn_error error;
    clattn_error_init(&error);
    if (trial_parse(text, &trial, &error) != CLATTN_SUCCESS)
        fail_msg("%s: %s", text, error.message);
    return trial;
}

/* Outputs as a perfect library would leave them. */
static struct trial_data answered(const struct trial *trial)
{
    struct trial_data data;
    struct oracle oracle;
    double o[512], lse;
    assert_true(trial_data_create(&data, trial));
    struct oracle_call call;
    trial_oracle_call(trial, &data, &call);
    assert_true(oracle_begin(&oracle, &call));
    for (int64_t b = 0; b < trial->batch; b++)
        for (int64_t h = 0; h < trial->problem.heads_q; h++)
            for (int64_t i = 0; i < trial->seq_q; i++) {
                oracle_row(&oracle, b, h, i, o, &lse, NULL);
                const bool packed = trial->problem.packed.starts != CLATTN_NO_INTEGERS;
                if (packed && i >= oracle.sequence.q_rows)
                    continue;
                const int64_t batch = packed ? 0 : b, row = packed ? oracle.sequence.q_start + i : i;
                for (int64_t e = 0; e < trial->problem.head_dim_v; e++)
                    trial_set(&data.o, batch, h, row, e, (float)o[e]);
                if (data.lse.count > 0)
                    trial_set(&data.lse, batch, h, row, 0, (float)lse);
            }
    oracle_end(&oracle);
    return data;
}

static struct trial_result judge(const struct trial *trial, const struct trial_data *data)
{
    struct trial_result result;
    memset(&result, 0, sizeof result);
    trial_judge(trial, data, &result);
    return result;
}

static const char *const shapes[] = {
    "b2 hq4 hkv2 q7 k9 d8 lse",
    "b2 hq4 hkv2 q7 k9 d8 dv5 fp16 causal=bottom-right lse layout=bshd seed=2",
    "hq2 q9 k5 d8 bf16 causal=bottom-right lse layout=reversed-seq seed=3",
    "b3 hq2 q9 k70 d8 layout=inner2 call=2,5,66 causal=12 lse seed=4",
    "q5 k70 d8 inputs=nan-rows seed=5",
    "q5 k70 d8 fp16 inputs=ones layout=padded seed=6",
    "q5 k0 d8 lse",
    "b2 hq4 hkv2 q7 k90 d8 mask=bhqk lse seed=7",
    "b2 hq4 hkv2 q70 k9 d8 mask=k bias=hqk bias-type=fp16 bias-factors lse seed=8",
    "b9 hq2 q7 k9 d8 q-lengths kv-lengths=int64 causal=bottom-right sinks lse seed=9",
    "b9 hq2 q7 k9 d8 packed kv-lengths alibi softcap=2 window=3,2 lse seed=10",
    "b9 hq2 q7 k9 d8 packed=int64 offsets causal mask-columns=4 mask=qk lse seed=11",
};

static void the_right_answer_passes(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(shapes); i++) {
        const struct trial trial = parse(shapes[i]);
        struct trial_data data = answered(&trial);
        const struct trial_result result = judge(&trial, &data);
        if (!result.ok)
            fail_msg("%s: %s", shapes[i], result.message);
        if (!trial.problem.packed.starts)
            assert_int_equal(result.rows_checked, trial.batch * trial.problem.heads_q * trial.seq_q);
        trial_data_destroy(&data);
    }
}

/* Alters one output and expects a complaint that holds `expected`. */
static void expect_red(const char *shape, const char *expected, void (*alter)(struct trial_data *))
{
    const struct trial trial = parse(shape);
    struct trial_data data = answered(&trial);
    alter(&data);
    const struct trial_result result = judge(&trial, &data);
    if (result.ok || !strstr(result.message, expected))
        fail_msg("%s: expected a complaint with \"%s\", got \"%s\"", shape, expected, result.message);
    trial_data_destroy(&data);
}

static void forget_an_element(struct trial_data *data)
{
    const struct trial_tensor *t = &data->o;
    storage_fill_poison(t->type, (char *)t->data + (size_t)index_of(t, 0, 0, 2, 3) * storage_size(t->type), 1);
}
static void forget_an_lse(struct trial_data *data)
{
    storage_fill_poison(CLATTN_FP32, (float *)data->lse.data + data->lse.origin, 1);
}
static void write_past_the_end(struct trial_data *data)
{
    storage_set(data->o.type, data->o.data, data->o.count - GUARD, 0.0f);
}
static void write_before_the_start(struct trial_data *data) { storage_set(data->o.type, data->o.data, 3, 0.0f); }
static void write_a_gap(struct trial_data *data) { storage_set(data->o.type, data->o.data, data->o.origin + 1, 0.0f); }
static void shift_an_output(struct trial_data *data)
{
    trial_set(&data->o, 0, 0, 1, 1, trial_get(&data->o, 0, 0, 1, 1) + 0.02f);
}
static void make_a_nan(struct trial_data *data) { trial_set(&data->o, 0, 0, 1, 1, NAN); }
static void shift_an_lse(struct trial_data *data)
{
    trial_set(&data->lse, 0, 0, 1, 0, trial_get(&data->lse, 0, 0, 1, 0) + 1e-3f);
}
static void drop_an_lse(struct trial_data *data) { trial_set(&data->lse, 0, 0, 1, 0, -INFINITY); }
static void drop_the_nans(struct trial_data *data)
{
    for (int64_t i = 0; i < data->o.size[2]; i++)
        for (int64_t d = 0; d < data->o.size[3]; d++)
            if (isnan(trial_get(&data->o, 0, 0, i, d)))
                trial_set(&data->o, 0, 0, i, d, 0.0f);
}
static void scale_all(struct trial_data *data)
{
    for (int64_t i = 0; i < data->o.size[2]; i++)
        for (int64_t d = 0; d < data->o.size[3]; d++)
            trial_set(&data->o, 0, 0, i, d, trial_get(&data->o, 0, 0, i, d) * 1.02f);
}

static void every_defect_is_noticed(void **state)
{
    (void)state;
    expect_red("q4 k9 d8 lse", "o[b=0 h=0 i=2 d=3] was never written", forget_an_element);
    expect_red("q4 k9 d8 bf16 lse", "o[b=0 h=0 i=2 d=3] was never written", forget_an_element);
    expect_red("q4 k9 d8 lse", "lse[b=0 h=0 i=0 d=0] was never written", forget_an_lse);
    expect_red("q4 k9 d8", "outside of the tensor", write_past_the_end);
    expect_red("q4 k9 d8 fp16 layout=reversed-seq", "outside of the tensor", write_past_the_end);
    expect_red("q4 k9 d8", "outside of the tensor", write_before_the_start);
    expect_red("q4 k9 d8 layout=inner2", "outside of the tensor", write_a_gap);
    expect_red("q4 k9 d8", "o[b=0 h=0 i=1 d=1]", shift_an_output);
    expect_red("q4 k9 d8 bf16", "o[b=0 h=0 i=1 d=1]", shift_an_output);
    expect_red("q4 k9 d8", "o[b=0 h=0 i=1 d=1] is nan", make_a_nan);
    expect_red("q4 k9 d8 lse", "lse[b=0 h=0 i=1]", shift_an_lse);
    expect_red("q40 k9 d8 inputs=nan-rows", "expected nan", drop_the_nans);
    expect_red("hq2 q4 k9 d8 causal sinks sink=nan", "expected nan", drop_the_nans);
    expect_red("q4 k900 d8 bf16 inputs=equal", "|out - ref| / |ref|", scale_all); /* too small to show in the largest error */
}

/* fp32 has a spacing of 64 at -1e9, and yet 64 equal scores of that size weigh the same. */
static void large_scores_allow_no_more_than_others(void **state)
{
    (void)state;
    expect_red("q4 k64 d8 lse level=-1e9 winner=all", "o[b=0 h=0 i=1 d=1]", shift_an_output);
    expect_red("q4 k64 d8 lse level=1e30 winner=thirds", "o[b=0 h=0 i=1 d=1]", shift_an_output);
    expect_red("q4 k64 d8 bf16 lse level=3.4e38 winner=first", "o[b=0 h=0 i=1 d=1] is nan", make_a_nan);
    expect_red("q4 k64 d8 lse level=-1e37 winner=all", "lse[b=0 h=0 i=1]", drop_an_lse);
}

/* Equal keys have equal scores in any order of summation; otherwise a unit in the last place would decide which key wins. */
static void equal_keys_have_equal_scores_in_any_order(void **state)
{
    static const char *const texts[] = {"q2 k9 d128 level=-1e30 winner=all", "q2 k9 d40 bf16 level=3.4e38 winner=thirds",
                                        "q2 k9 d128 fp16 level=1e37 winner=middle", "q2 k9 d80 fp16 level=65504 winner=last"};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        const struct trial trial = parse(texts[i]);
        const int64_t dim = trial.problem.head_dim_qk;
        struct trial_data data;
        assert_true(trial_data_create(&data, &trial));
        for (int64_t j = 0; j < 9; j++) {
            float up = 0.0f, down = 0.0f;
            for (int64_t d = 0; d < dim; d++) {
                up += trial_get(&data.q, 0, 0, 1, d) * trial_get(&data.k, 0, 0, j, d);
                down += trial_get(&data.q, 0, 0, 1, dim - 1 - d) * trial_get(&data.k, 0, 0, j, dim - 1 - d);
            }
            assert_true(isfinite(up) && fabsf(up) > 30000.0f);
            assert_true(up == down);
        }
        trial_data_destroy(&data);
    }
}

static void trials_read_back_what_they_print(void **state)
{
    static const char *const texts[] = {
        ("b2 hq4 hkv2 q7 k9 d8 dv8 fp16 causal=bottom-right lse layout=bshd call=1,5,9 inputs=ones shift=3 repeats=2 "
         "override=local_mem=16K,max_work_group=64 seed=7"),
        "b1 hq1 hkv1 q7 k9 d8 dv4 q=fp32 k=fp16 v=fp16 o=fp32 causal=-3 scale=-0.5 scores=softmax seed=1",
        "b1 hq1 hkv1 q7 k9 d8 dv8 fp32 mask=bk bias=1 bias-type=bf16 mask-columns=4 bias-columns=5 chunk=64 slice=0.25 seed=1",
        "b1 hq1 hkv1 q7 k9 d8 dv8 fp32 sinks level=-1e+30 winner=thirds sink=nan value=0.5 seed=1",
        "b2 hq1 hkv1 q7 k9 d8 dv8 fp32 packed level=65504 winner=first totals=0,5 seed=1",
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        const struct trial trial = parse(texts[i]);
        char text[512];
        trial_print(&trial, text, sizeof text);
        assert_string_equal(text, texts[i]);
    }
}

static void wrong_words_of_a_trial_are_named(void **state)
{
    static const char *const words[] = {"call=1,2", "inputs=odd", "layout=none",    "seed=x",  "shift=99",  "repeats=0",
                                        "chunk=-2", "slice=x",    "mask-columns=x", "quatsch", "level=inf", "winner=odd",
                                        "sink=x",   "value=1e39", "totals=3",       "sink=1",  "totals=1,1"};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(words); i++) {
        char text[128];
        struct trial trial;
        clattn_error error;
        clattn_error_init(&error);
        snprintf(text, sizeof text, "q3 k3 d8 %s", words[i]);
        assert_int_equal(trial_parse(text, &trial, &error), CLATTN_INVALID_ARGUMENT);
        assert_non_null(strstr(words[i], error.field));
        assert_true(error.message[0] != '\0');
    }
}

/* Each layout places all elements of a tensor apart, except where it shares heads or batch entries. */
static void layouts_are_injective(void **state)
{
    (void)state;
    for (size_t i = 0; layout_name(i); i++) {
        char text[128];
        struct trial_data data;
        snprintf(text, sizeof text, "b2 hq4 hkv2 q3 k5 d4 dv6 layout=%s", layout_name(i));
        const struct trial trial = parse(text);
        assert_true(trial_data_create(&data, &trial));
        const struct trial_tensor *const all[] = {&data.q, &data.k, &data.v, &data.o};
        for (size_t n = 0; n < COUNT_OF(all); n++) {
            const bool due[5] = {true, true, true, true, true};
            uint8_t *covered = covered_elements(all[n], due);
            int64_t distinct = 0, elements = 1;
            for (int64_t at = 0; at < all[n]->count; at++)
                distinct += covered[at];
            for (int axis = 0; axis < 4; axis++)
                elements *= all[n]->stride[axis] == 0 ? 1 : all[n]->size[axis];
            assert_int_equal(distinct, elements);
            free(covered);
        }
        trial_data_destroy(&data);
    }
}

/* A buffer of such a size must not come out small because its size wrapped. */
static void tensors_past_all_memory_are_refused(void **state)
{
    (void)state;
    static const int64_t strides[] = {INT64_MAX, INT64_MIN, (int64_t)1 << 62, ((int64_t)1 << 61) + 1, -((int64_t)1 << 60)};
    for (size_t i = 0; i < COUNT_OF(strides); i++) {
        struct trial_data data;
        struct trial trial = parse("b5 q3 k5 d4");
        trial.problem.q.strides.batch = strides[i];
        assert_false(trial_data_create(&data, &trial));
        trial = parse("b5 q3 k5 d4 bias=bqk");
        trial.problem.bias.strides.batch = strides[i];
        assert_false(trial_data_create(&data, &trial));
    }
}

/* A forgotten rescale shows because in most rows the maximum rises with each block. */
static void scores_rise_towards_the_last_block(void **state)
{
    const struct trial trial = parse("hq4 q32 k64 d16");
    struct trial_data data;
    int rising = 0, falling = 0;
    (void)state;
    assert_true(trial_data_create(&data, &trial));
    for (int64_t h = 0; h < 4; h++)
        for (int64_t i = 0; i < 32; i++) {
            double first = -INFINITY, last = -INFINITY;
            for (int64_t j = 0; j < 64; j++) {
                double s = 0.0;
                for (int64_t d = 0; d < 16; d++)
                    s += (double)trial_get(&data.q, 0, h, i, d) * (double)trial_get(&data.k, 0, h, j, d) / 4.0;
                if (j < 16)
                    first = s > first ? s : first;
                if (j >= 48)
                    last = s > last ? s : last;
            }
            rising += last > first + 4.0;
            falling += first > last + 4.0;
        }
    trial_data_destroy(&data);
    assert_true(rising > 64 && falling > 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_right_answer_passes),
        cmocka_unit_test(every_defect_is_noticed),
        cmocka_unit_test(large_scores_allow_no_more_than_others),
        cmocka_unit_test(equal_keys_have_equal_scores_in_any_order),
        cmocka_unit_test(trials_read_back_what_they_print),
        cmocka_unit_test(wrong_words_of_a_trial_are_named),
        cmocka_unit_test(layouts_are_injective),
        cmocka_unit_test(tensors_past_all_memory_are_refused),
        cmocka_unit_test(scores_rise_towards_the_last_block),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
