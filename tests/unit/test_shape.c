/* SPDX-License-Identifier: Apache-2.0
 * src/shape.c: the SHAPE text. */
#include "support.h"

static clattn_error error;
static clattn_problem problem;

static int clear(void **state)
{
    (void)state;
    clattn_error_init(&error);
    clattn_problem_init(&problem);
    return 0;
}

static void check_sizes(const int64_t want[7])
{
    const int64_t have[7] = {problem.batch,  problem.heads_q,     problem.heads_kv,  problem.seq_q,
                             problem.seq_kv, problem.head_dim_qk, problem.head_dim_v};
    for (int i = 0; i < 7; i++) {
        if (have[i] != want[i]) {
            fail_msg("size %d is %lld, wanted %lld", i, (long long)have[i], (long long)want[i]);
        }
    }
}

static void the_example_of_the_header_is_read(void **state)
{
    (void)state;
    assert_ok(clattn_problem_parse("b2 hq8 hkv2 q37 k53 d64 dv80 fp16 causal=bottom-right", &problem, &error), &error);
    check_sizes((const int64_t[]){2, 8, 2, 37, 53, 64, 80});
    assert_int_equal(problem.struct_size, sizeof problem);
    assert_int_equal(problem.q.type, CLATTN_FP16);
    assert_int_equal(problem.k.type, CLATTN_FP16);
    assert_int_equal(problem.v.type, CLATTN_FP16);
    assert_int_equal(problem.o.type, CLATTN_FP16);
    assert_true(problem.causal);
    assert_int_equal(problem.corner, CLATTN_BOTTOM_RIGHT);
    assert_true(isnan(problem.scale));
    assert_int_equal(problem.q.strides.row, 64);
    assert_int_equal(problem.q.strides.batch, 8 * 37 * 64);
    assert_int_equal(problem.v.strides.head, 53 * 80);
    assert_int_equal(problem.o.strides.head, 37 * 80);
}

static void missing_words_have_defaults(void **state)
{
    (void)state;
    assert_ok(clattn_problem_parse("q5 d3", &problem, &error), &error);
    check_sizes((const int64_t[]){1, 1, 1, 5, 5, 3, 3});
    assert_int_equal(problem.q.type, CLATTN_FP32);
    assert_false(problem.causal);
    assert_false(problem.lse.present);
    assert_int_equal(problem.scores.kind, CLATTN_SCORES_NONE);
    assert_ok(clattn_problem_parse("  d3\tq5  hq6 ", &problem, &error), &error);
    check_sizes((const int64_t[]){1, 6, 6, 5, 5, 3, 3});
    assert_ok(clattn_problem_parse("q5 k0 d3 dv1", &problem, &error), &error);
    check_sizes((const int64_t[]){1, 1, 1, 5, 0, 3, 1});
}

static void each_tensor_may_name_its_type(void **state)
{
    (void)state;
    assert_ok(clattn_problem_parse("q1 d1 q=fp32 kv=fp16 o=bf16", &problem, &error), &error);
    assert_int_equal(problem.q.type, CLATTN_FP32);
    assert_int_equal(problem.k.type, CLATTN_FP16);
    assert_int_equal(problem.v.type, CLATTN_FP16);
    assert_int_equal(problem.o.type, CLATTN_BF16);
    assert_ok(clattn_problem_parse("q1 d1 k=bf16 v=fp16", &problem, &error), &error);
    assert_int_equal(problem.q.type, CLATTN_FP32);
    assert_int_equal(problem.k.type, CLATTN_BF16);
    assert_int_equal(problem.v.type, CLATTN_FP16);
}

static void every_option_is_read(void **state)
{
    (void)state;
    assert_ok(clattn_problem_parse("q1 d1 causal lse scores=softmax scale=-0.125", &problem, &error), &error);
    assert_true(problem.causal && problem.corner == CLATTN_TOP_LEFT && problem.lse.present);
    assert_int_equal(problem.scores.kind, CLATTN_SCORES_SOFTMAX);
    assert_true(problem.scale == -0.125f);
    assert_ok(clattn_problem_parse("q1 d1 causal=top-left", &problem, &error), &error);
    assert_int_equal(problem.corner, CLATTN_TOP_LEFT);
    assert_ok(clattn_problem_parse("q1 d1 causal=-17", &problem, &error), &error);
    assert_int_equal(problem.corner, CLATTN_EXPLICIT);
    assert_int_equal(problem.offset, -17);
    assert_ok(clattn_problem_parse("q1 d1 scale=0", &problem, &error), &error);
    assert_true(problem.scale == 0.0f);
}

static void wrong_words_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *text, *word;
    } rows[] = {
        {"q1 d1 fp64", "fp64"},
        {"q1 d1 b", "b"},
        {"q1 dx", "dx"},
        {"q1.5 d1", "q1.5"},
        {"q1 d1 causal=left", "causal=left"},
        {"q1 d1 causal=", "causal="},
        {"q1 d1 scale=", "scale="},
        {"q1 d1 scale=fast", "scale=fast"},
        {"q1 d1 scale=1x", "scale=1x"},
        {"q1 d1 x=fp16", "x=fp16"},
        {"q1 d1 kv=int8", "kv=int8"},
        {"q1 d1 q99999999999999999999", "q99999999999999999999"},
        {"q1,d1", "q1,d1"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        clattn_error_init(&error);
        assert_refused(clattn_problem_parse(rows[i].text, &problem, &error), CLATTN_INVALID_ARGUMENT, &error, rows[i].word);
    }
}

static void missing_sizes_are_named(void **state)
{
    (void)state;
    assert_refused(clattn_problem_parse("d8", &problem, &error), CLATTN_INVALID_ARGUMENT, &error, "q");
    assert_refused(clattn_problem_parse("q8", &problem, &error), CLATTN_INVALID_ARGUMENT, &error, "d");
    assert_refused(clattn_problem_parse("", &problem, &error), CLATTN_INVALID_ARGUMENT, &error, "q");
    assert_refused(clattn_problem_parse(NULL, &problem, &error), CLATTN_INVALID_ARGUMENT, &error, "shape");
    assert_refused(clattn_problem_parse("q1 d1", NULL, &error), CLATTN_INVALID_ARGUMENT, &error, "problem");
}

/* Hostile numbers: the strides of such a problem do not fit, and that must not be undefined behaviour. */
static void huge_numbers_do_no_harm(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "b1000000000 hq1000000000 q1000000000 k1000000000 d1000000000",
        "b922337203685477580 q922337203685477580 d922337203685477580",
        "b-922337203685477580 hq-922337203685477580 q3 d922337203685477580",
        "q1 d1 causal=-922337203685477580 scale=1e99999",
    };
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        clattn_problem_parse(texts[i], &problem, &error);
    }
}

/* 64 heads of 2^58 elements are 2^64, which wraps to 0: a mask that all batch entries share. */
static void strides_too_long_for_a_number_never_become_broadcast(void **state)
{
    (void)state;
    assert_ok(clattn_problem_parse("b2 hq64 q536870912 k536870912 d8 mask=bhqk bias=bhqk", &problem, &error), &error);
    assert_true(problem.mask.strides.batch == (int64_t)1 << 60);
    assert_true(problem.bias.strides.batch == (int64_t)1 << 60);
    assert_true(problem.mask.strides.head == (int64_t)1 << 58);
    assert_ok(clattn_problem_parse("b4611686018427387904 q4 d8 packed", &problem, &error), &error);
    assert_true(problem.packed.total_q == (int64_t)1 << 60);
}

static void print_and_parse_again(const clattn_problem *given)
{
    char text[512], again[512];
    size_t needed;
    clattn_problem back;
    assert_int_equal(clattn_problem_print(given, text, sizeof text, &needed), CLATTN_SUCCESS);
    assert_int_equal(needed, strlen(text) + 1);
    assert_ok(clattn_problem_parse(text, &back, &error), &error);
    clattn_problem_print(&back, again, sizeof again, NULL);
    assert_string_equal(text, again);
    assert_int_equal(back.batch, given->batch);
    assert_int_equal(back.heads_kv, given->heads_kv);
    assert_int_equal(back.seq_kv, given->seq_kv);
    assert_int_equal(back.head_dim_v, given->head_dim_v);
    assert_int_equal(back.v.type, given->v.type);
    assert_int_equal(back.o.type, given->o.type);
    assert_int_equal(back.causal, given->causal);
    if (given->causal) {
        assert_int_equal(back.corner, given->corner);
    }
    if (given->causal && given->corner == CLATTN_EXPLICIT) {
        assert_int_equal(back.offset, given->offset);
    }
    assert_true(isnan(given->scale) ? isnan(back.scale) : back.scale == given->scale);
    assert_int_equal(back.lse.present, given->lse.present);
    assert_int_equal(back.scores.kind, given->scores.kind);
    assert_int_equal(back.scores.first_head, given->scores.first_head);
    assert_int_equal(back.scores.heads, given->scores.heads);
}

static void random_problems_read_back(void **state)
{
    (void)state;
    uint32_t seed = 1;
#define NEXT(n) ((seed = seed * 1664525u + 1013904223u) >> 16) % (n)
    for (int i = 0; i < 500; i++) {
        clattn_problem_init(&problem);
        problem.batch = NEXT(9);
        problem.heads_kv = 1 + NEXT(4);
        problem.heads_q = problem.heads_kv * (1 + NEXT(8));
        problem.seq_q = NEXT(3000);
        problem.seq_kv = NEXT(3000);
        problem.head_dim_qk = 1 + NEXT(600);
        problem.head_dim_v = 1 + NEXT(600);
        problem.q.type = (clattn_type)(1 + NEXT(3));
        problem.k.type = (clattn_type)(1 + NEXT(3));
        problem.v.type = (clattn_type)(1 + NEXT(3));
        problem.o.type = (clattn_type)(1 + NEXT(3));
        problem.causal = NEXT(2);
        problem.corner = (clattn_corner)(NEXT(3));
        problem.offset = (int64_t)(NEXT(2000)) - 1000;
        problem.lse.present = NEXT(2);
        problem.scores.kind = (clattn_scores_kind)NEXT(5);
        problem.scores.first_head = NEXT(3);
        problem.scores.heads = NEXT(3);
        const uint32_t form = NEXT(3), number = NEXT(60000);
        problem.scale = form == 0 ? NAN : form == 1 ? (float)number / 17.0f - 1000.0f : ldexpf((float)number, -60);
        clattn_problem_set_layout(&problem, CLATTN_BHSD);
        print_and_parse_again(&problem);
    }
#undef NEXT
}

static void printing_stays_within_the_given_size(void **state)
{
    (void)state;
    assert_ok(clattn_problem_parse("q5 d3", &problem, &error), &error);
    char text[8];
    size_t needed = 0;
    memset(text, '#', sizeof text);
    assert_int_equal(clattn_problem_print(&problem, text, 4, &needed), CLATTN_SUCCESS);
    assert_int_equal(strlen(text), 3);
    assert_int_equal(text[4], '#');
    assert_true(needed > 4);
    assert_int_equal(clattn_problem_print(NULL, text, sizeof text, &needed), CLATTN_INVALID_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(the_example_of_the_header_is_read, clear),
        cmocka_unit_test_setup(missing_words_have_defaults, clear),
        cmocka_unit_test_setup(each_tensor_may_name_its_type, clear),
        cmocka_unit_test_setup(every_option_is_read, clear),
        cmocka_unit_test_setup(wrong_words_are_named, clear),
        cmocka_unit_test_setup(missing_sizes_are_named, clear),
        cmocka_unit_test_setup(huge_numbers_do_no_harm, clear),
        cmocka_unit_test_setup(random_problems_read_back, clear),
        cmocka_unit_test_setup(strides_too_long_for_a_number_never_become_broadcast, clear),
        cmocka_unit_test_setup(printing_stays_within_the_given_size, clear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
