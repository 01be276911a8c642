/* SPDX-License-Identifier: Apache-2.0
 * src/problem.c: validation of problems, layouts, and the extents of tensors. */
#include "support.h"

#include "problem.h"

static clattn_error error;

static clattn_problem good(void)
{
    clattn_problem p;
    clattn_error_init(&error);
    assert_ok(clattn_problem_parse("b2 hq6 hkv3 q5 k7 d8 dv4 lse scores=softmax", &p, &error), &error);
    return p;
}

static void a_valid_problem_is_taken_whole(void **state)
{
    (void)state;
    clattn_problem given = good(), taken;
    assert_ok(cla_problem_take(&given, &taken, &error), &error);
    assert_int_equal(taken.heads_kv, 3);
    assert_true(taken.scale == (float)(1.0 / sqrt(8.0)));
    given.scale = -2.0f;
    assert_ok(cla_problem_take(&given, &taken, &error), &error);
    assert_true(taken.scale == -2.0f);
    given.scale = 0.0f;
    assert_ok(cla_problem_take(&given, &taken, &error), &error);
    assert_true(taken.scale == 0.0f);
}

#define REFUSED(name, change)                                                                                                  \
    do {                                                                                                                       \
        clattn_problem p = good(), taken;                                                                                      \
        change;                                                                                                                \
        assert_refused(cla_problem_take(&p, &taken, &error), CLATTN_INVALID_ARGUMENT, &error, name);                           \
    } while (0)

static void wrong_sizes_are_named(void **state)
{
    (void)state;
    REFUSED("problem.batch", p.batch = -1);
    REFUSED("problem.heads_q", p.heads_q = -1);
    REFUSED("problem.heads_kv", p.heads_kv = -3);
    REFUSED("problem.seq_q", p.seq_q = -1);
    REFUSED("problem.seq_kv", p.seq_kv = -1);
    REFUSED("problem.seq_q", p.seq_q = ((int64_t)1 << 29) + 1);
    REFUSED("problem.seq_kv", p.seq_kv = ((int64_t)1 << 29) + 1);
    REFUSED("problem.batch", p.batch = INT64_MAX);
    REFUSED("problem.head_dim_qk", p.head_dim_qk = 0);
    REFUSED("problem.head_dim_v", p.head_dim_v = 0);
    REFUSED("problem.head_dim_qk", p.head_dim_qk = -1);
    REFUSED("problem.head_dim_v", p.head_dim_v = INT64_MIN);
}

/* heads_q must be a multiple of heads_kv. */
static void heads_must_divide(void **state)
{
    (void)state;
    REFUSED("problem.heads_q", (p.heads_q = 3, p.heads_kv = 2));
    REFUSED("problem.heads_q", (p.heads_q = 33, p.heads_kv = 2));
    REFUSED("problem.heads_q", (p.heads_q = 2, p.heads_kv = 4));
}

static void zero_key_heads_are_refused(void **state)
{
    (void)state;
    REFUSED("problem.heads_kv", p.heads_kv = 0);
}

static void wrong_options_are_named(void **state)
{
    (void)state;
    REFUSED("problem.q.type", p.q.type = (clattn_type)0);
    REFUSED("problem.k.type", p.k.type = (clattn_type)4);
    REFUSED("problem.v.type", p.v.type = (clattn_type)-1);
    REFUSED("problem.o.type", p.o.type = (clattn_type)99);
    REFUSED("problem.scale", p.scale = INFINITY);
    REFUSED("problem.scale", p.scale = -INFINITY);
    REFUSED("problem.corner", p.corner = (clattn_corner)3);
    REFUSED("problem.scores.kind", p.scores.kind = (clattn_scores_kind)5);
    REFUSED("problem.scores.kind", p.scores.kind = (clattn_scores_kind)-1);
    REFUSED("problem.scores.first_head", p.scores.first_head = -1);
    REFUSED("problem.scores.first_head", p.scores.first_head = 6);
    REFUSED("problem.scores.heads", p.scores.heads = -1);
    REFUSED("problem.scores.heads", p.scores.heads = 7);
    REFUSED("problem.scores.heads", (p.scores.first_head = 5, p.scores.heads = 2));
}

static void outputs_must_not_overlap_themselves(void **state)
{
    (void)state;
    REFUSED("problem.o.strides.batch", p.o.strides.batch = 0);
    REFUSED("problem.o.strides.head", p.o.strides.head = 0);
    REFUSED("problem.o.strides.row", p.o.strides.row = 0);
    REFUSED("problem.o.strides.column", p.o.strides.column = 0);
    REFUSED("problem.lse.strides.batch", p.lse.strides.batch = 0);
    REFUSED("problem.lse.strides.head", p.lse.strides.head = 0);
    REFUSED("problem.lse.strides.row", p.lse.strides.row = 0);
    REFUSED("problem.scores.strides.batch", p.scores.strides.batch = 0);
    REFUSED("problem.scores.strides.head", p.scores.strides.head = 0);
    REFUSED("problem.scores.strides.row", p.scores.strides.row = 0);
    REFUSED("problem.scores.strides.column", p.scores.strides.column = 0);
    clattn_problem p = good(), taken;
    p.lse.present = false;
    p.lse.strides.row = 0;
    p.scores.kind = CLATTN_SCORES_NONE;
    p.scores.strides.head = 0;
    p.batch = 1;
    p.o.strides.batch = 0;
    assert_ok(cla_problem_take(&p, &taken, &error), &error);
}

/* Packed rows follow one another, also where each sequence has a single row. */
static void packed_rows_must_not_overlap_each_other(void **state)
{
    (void)state;
    clattn_problem p = good(), taken;
    p.packed.starts = CLATTN_INT32;
    p.packed.total_q = p.packed.total_kv = 4;
    p.seq_q = 1;
    clattn_problem_set_layout(&p, CLATTN_BHSD);
    const clattn_problem packed = p;
    assert_ok(cla_problem_take(&p, &taken, &error), &error);
    p.o.strides.row = 0;
    assert_refused(cla_problem_take(&p, &taken, &error), CLATTN_INVALID_ARGUMENT, &error, "problem.o.strides.row");
    p = packed;
    p.lse.present = true;
    p.lse.strides.row = 0;
    assert_refused(cla_problem_take(&p, &taken, &error), CLATTN_INVALID_ARGUMENT, &error, "problem.lse.strides.row");
    /* Without rows nothing is written: contiguous strides are 0 then. */
    p.packed.total_q = 0;
    clattn_problem_set_layout(&p, CLATTN_BHSD);
    assert_int_equal(p.lse.strides.head, 0);
    assert_ok(cla_problem_take(&p, &taken, &error), &error);
}

static void inputs_may_have_any_stride(void **state)
{
    (void)state;
    clattn_problem p = good(), taken;
    p.k.strides.head = p.v.strides.head = 0;
    p.q.strides.row = -8;
    p.v.strides.column = 2;
    p.k.strides.row = (int64_t)1 << 40;
    assert_ok(cla_problem_take(&p, &taken, &error), &error);
    assert_true(taken.k.strides.row == (int64_t)1 << 40);
    assert_true(taken.q.strides.row == -8);
}

static void empty_dimensions_are_no_error(void **state)
{
    (void)state;
    clattn_problem p = good(), taken;
    p.batch = 0;
    assert_ok(cla_problem_take(&p, &taken, &error), &error);
    p = good();
    p.seq_q = 0;
    assert_ok(cla_problem_take(&p, &taken, &error), &error);
    p = good();
    p.seq_kv = 0;
    assert_ok(cla_problem_take(&p, &taken, &error), &error);
    p = good();
    p.heads_q = p.heads_kv = 0;
    assert_ok(cla_problem_take(&p, &taken, &error), &error);
    assert_true(cla_problem_is_empty(0, 1, 1) && cla_problem_is_empty(1, 0, 1) && cla_problem_is_empty(1, 1, 0));
    assert_false(cla_problem_is_empty(1, 1, 1));
}

static void a_null_or_uninitialised_problem_is_refused(void **state)
{
    (void)state;
    clattn_problem taken, raw;
    clattn_error_init(&error);
    assert_refused(cla_problem_take(NULL, &taken, &error), CLATTN_INVALID_ARGUMENT, &error, "problem");
    memset(&raw, 0, sizeof raw);
    assert_refused(cla_problem_take(&raw, &taken, &error), CLATTN_INVALID_ARGUMENT, &error, "problem.struct_size");
}

/* A program built against an older header passes a shorter struct: nothing past its end is read, and the other fields keep
 * their defaults. */
static void a_shorter_struct_is_filled_up(void **state)
{
    (void)state;
    clattn_problem given = good(), taken;
    given.struct_size = offsetof(clattn_problem, scores);
    assert_ok(cla_problem_take(&given, &taken, &error), &error);
    assert_int_equal(taken.struct_size, sizeof taken);
    assert_true(taken.lse.present);
    assert_int_equal(taken.scores.kind, CLATTN_SCORES_NONE);
}

/* A field of a newer header is refused rather than ignored. */
static void a_newer_struct_with_an_unknown_option_is_refused(void **state)
{
    (void)state;
    struct {
        clattn_problem problem;
        int64_t added;
    } newer;
    clattn_problem taken;
    memset(&newer, 0, sizeof newer);
    clattn_problem_init_sized(&newer.problem, sizeof newer);
    newer.problem.batch = newer.problem.heads_q = newer.problem.heads_kv = 1;
    newer.problem.seq_q = newer.problem.seq_kv = newer.problem.head_dim_qk = newer.problem.head_dim_v = 8;
    clattn_problem_set_layout(&newer.problem, CLATTN_BHSD);
    assert_ok(cla_problem_take(&newer.problem, &taken, &error), &error);
    newer.added = 1;
    assert_refused(cla_problem_take(&newer.problem, &taken, &error), CLATTN_INVALID_ARGUMENT, &error, "problem.struct_size");
}

static void init_writes_no_more_than_the_caller_has(void **state)
{
    (void)state;
    clattn_problem p;
    memset(&p, 0x5a, sizeof p);
    clattn_problem_init_sized(&p, offsetof(clattn_problem, lse));
    assert_int_equal(p.struct_size, offsetof(clattn_problem, lse));
    assert_true(isnan(p.scale));
    const unsigned char *bytes = (const unsigned char *)&p;
    for (size_t i = offsetof(clattn_problem, lse); i < sizeof p; i++) {
        assert_int_equal(bytes[i], 0x5a);
    }
}

static void layouts_have_their_strides(void **state)
{
    (void)state;
    clattn_problem p = good(); /* b2 hq6 hkv3 q5 k7 d8 dv4 */
    clattn_problem_set_layout(&p, CLATTN_BSHD);
    assert_int_equal(p.q.strides.batch, 5 * 6 * 8);
    assert_int_equal(p.q.strides.row, 6 * 8);
    assert_int_equal(p.q.strides.head, 8);
    assert_int_equal(p.k.strides.row, 3 * 8);
    assert_int_equal(p.k.strides.batch, 7 * 3 * 8);
    assert_int_equal(p.v.strides.row, 3 * 4);
    assert_int_equal(p.o.strides.row, 6 * 4);
    clattn_problem_set_layout(&p, CLATTN_SBHD);
    assert_int_equal(p.q.strides.row, 2 * 6 * 8);
    assert_int_equal(p.q.strides.batch, 6 * 8);
    assert_int_equal(p.q.strides.head, 8);
    assert_int_equal(p.v.strides.row, 2 * 3 * 4);
    assert_int_equal(p.v.strides.batch, 3 * 4);
    clattn_problem_set_layout(&p, CLATTN_BHSD);
    assert_int_equal(p.lse.strides.batch, 6 * 5);
    assert_int_equal(p.lse.strides.head, 5);
    assert_int_equal(p.lse.strides.row, 1);
    assert_int_equal(p.scores.strides.batch, 6 * 5 * 7);
    assert_int_equal(p.scores.strides.head, 5 * 7);
    assert_int_equal(p.scores.strides.row, 7);
    assert_int_equal(p.scores.strides.column, 1);
}

/* Offsets at and past 2^31 and 2^32 elements do not wrap, nor does the largest extent. */
static void extents_past_two_to_the_32_do_not_wrap(void **state)
{
    (void)state;
    static const struct {
        int64_t sizes[4], strides[4], lowest, highest;
    } rows[] = {
        {{2, 3, 4, 5}, {60, 20, 5, 1}, 0, 119},
        {{1, 1, 1, 1}, {9, 9, 9, 9}, 0, 0},
        {{2, 3, 4, 5}, {0, 0, 5, 1}, 0, 19},
        {{2, 3, 4, 5}, {60, 20, -5, 1}, -15, 104},
        {{1, 1, 2, 1}, {0, 0, ((int64_t)1 << 31) - 1, 1}, 0, ((int64_t)1 << 31) - 1},
        {{1, 1, 2, 1}, {0, 0, (int64_t)1 << 31, 1}, 0, (int64_t)1 << 31},
        {{1, 1, 2, 2}, {0, 0, (int64_t)1 << 32, 1}, 0, ((int64_t)1 << 32) + 1},
        {{1, 1, 3, 2}, {0, 0, -((int64_t)1 << 32), 1}, -((int64_t)1 << 33), 1},
        {{131073, 16, 8, 128}, {16 * 8 * 128, 8 * 128, 128, 1}, 0, 2147500032LL - 1},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        int64_t lowest, highest;
        assert_true(cla_tensor_extent(rows[i].sizes, rows[i].strides, &lowest, &highest));
        assert_true(lowest == rows[i].lowest);
        assert_true(highest == rows[i].highest);
    }
    int64_t lowest, highest;
    const int64_t empty[4] = {2, 0, 4, 5}, strides[4] = {1, 1, 1, 1};
    assert_false(cla_tensor_extent(empty, strides, &lowest, &highest));
    const int64_t large[4] = {1 << 29, 1 << 29, 1 << 29, 1 << 29}, far[4] = {INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX},
                  back[4] = {INT64_MIN, INT64_MIN, INT64_MIN, INT64_MIN};
    assert_true(cla_tensor_extent(large, far, &lowest, &highest));
    assert_true(lowest == 0 && highest >= (int64_t)1 << 60);
    assert_true(cla_tensor_extent(large, back, &lowest, &highest));
    assert_true(highest == 0 && lowest <= -((int64_t)1 << 60));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_valid_problem_is_taken_whole),
        cmocka_unit_test(wrong_sizes_are_named),
        cmocka_unit_test(heads_must_divide),
        cmocka_unit_test(zero_key_heads_are_refused),
        cmocka_unit_test(wrong_options_are_named),
        cmocka_unit_test(outputs_must_not_overlap_themselves),
        cmocka_unit_test(packed_rows_must_not_overlap_each_other),
        cmocka_unit_test(inputs_may_have_any_stride),
        cmocka_unit_test(empty_dimensions_are_no_error),
        cmocka_unit_test(a_null_or_uninitialised_problem_is_refused),
        cmocka_unit_test(a_shorter_struct_is_filled_up),
        cmocka_unit_test(a_newer_struct_with_an_unknown_option_is_refused),
        cmocka_unit_test(init_writes_no_more_than_the_caller_has),
        cmocka_unit_test(layouts_have_their_strides),
        cmocka_unit_test(extents_past_two_to_the_32_do_not_wrap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
