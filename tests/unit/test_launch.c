/* SPDX-License-Identifier: Apache-2.0
 * src/launch.c: the numbers of a call as the kernels take them. */
#include "support.h"

#include "engine.h"
#include "launch.h"

static clattn_problem problem;
static clattn_call call;
static struct config config;
static struct launch_args args;

static int start(void **state)
{
    (void)state;
    clattn_error error;
    clattn_error_init(&error);
    if (clattn_problem_parse("b4 hq6 hkv3 q40 k70 d8 dv16 q=fp32 k=fp16 v=bf16 o=fp32 lse scores=softmax", &problem, &error) !=
        0) {
        return -1;
    }
    problem.q.strides.row = -8;
    problem.k.strides.head = 0;
    problem.v.strides.row = (int64_t)1 << 33;
    memset(&call, 0, sizeof call);
    call.q_strides = problem.q.strides;
    call.k_strides = problem.k.strides;
    call.v_strides = problem.v.strides;
    call.o_strides = problem.o.strides;
    call.lse_strides = problem.lse.strides;
    call.struct_size = sizeof call;
    call.batch = 3;
    call.seq_q = 33;
    call.seq_kv = 65;
    call.scale = 0.25f;
    memset(&config, 0, sizeof config);
    config.block_m = 16;
    config.block_n = 32;
    config.work_group = config.team = 64;
    return 0;
}

static void sizes_come_from_the_call(void **state)
{
    (void)state;
    cla_launch_args(&problem, &config, &call, &args);
    assert_int_equal(args.batches, 3);
    assert_int_equal(args.seq_q, 33);
    assert_int_equal(args.seq_kv, 65);
    assert_int_equal(args.heads_q, 6);
    assert_int_equal(args.heads_kv, 3);
    assert_int_equal(args.group, 2);
    assert_int_equal(args.pack, 1);
    assert_int_equal(args.q_blocks, 3);
    assert_true(args.scale == 0.25f);
    assert_int_equal(args.lse_floats, 1);
    assert_int_equal(args.scores_kind, CLATTN_SCORES_SOFTMAX);
    problem.lse.present = false;
    problem.scores.kind = CLATTN_SCORES_NONE;
    cla_launch_args(&problem, &config, &call, &args);
    assert_int_equal(args.lse_floats, 0);
    assert_int_equal(args.scores_kind, 0);
}

static void no_query_head_divides_nothing(void **state)
{
    (void)state;
    problem.heads_q = 0;
    problem.causal = true;
    config.spread = 1 << 20;
    cla_launch_args(&problem, &config, &call, &args);
    assert_int_equal(args.group, 1);
    assert_int_equal(args.together, 1);
}

static void strides_pass_unchanged(void **state)
{
    (void)state;
    cla_launch_args(&problem, &config, &call, &args);
    assert_int_equal(args.q.seq, -8);
    assert_int_equal(args.q.batch, problem.q.strides.batch);
    assert_int_equal(args.q.head, problem.q.strides.head);
    assert_int_equal(args.k.head, 0);
    assert_true(args.v.seq == (int64_t)1 << 33);
    assert_int_equal(args.v.dim, 1);
    assert_int_equal(args.o.seq, 16);
    assert_int_equal(args.lse.batch, problem.lse.strides.batch);
    assert_int_equal(args.lse.head, problem.lse.strides.head);
    assert_int_equal(args.lse.seq, problem.lse.strides.row);
    assert_int_equal(args.scores.batch, problem.scores.strides.batch);
    assert_int_equal(args.scores.head, problem.scores.strides.head);
    assert_int_equal(args.scores.seq, problem.scores.strides.row);
    assert_int_equal(args.scores.dim, problem.scores.strides.column);
}

/* Byte offsets become elements of the tensor's own type, past 2^31 too. */
static void byte_offsets_become_elements(void **state)
{
    (void)state;
    call.q.offset = (size_t)4 << 31;
    call.k.offset = ((size_t)2 << 31) + 2;
    call.v.offset = (size_t)2 << 33;
    call.o.offset = 12;
    call.lse.offset = 4;
    call.scores.offset = 8;
    cla_launch_args(&problem, &config, &call, &args);
    assert_true(args.q.base == (int64_t)1 << 31);
    assert_true(args.k.base == ((int64_t)1 << 31) + 1);
    assert_true(args.v.base == (int64_t)1 << 33);
    assert_int_equal(args.o.base, 3);
    assert_int_equal(args.lse.base, 1);
    assert_int_equal(args.scores.base, 2);
}

/* Without a mask both ends are open. A causal problem closes the right end, and any offset stays within the open end. */
static void the_right_end_is_open_unless_causal(void **state)
{
    (void)state;
    call.window_left = call.window_right = -1;
    cla_launch_args(&problem, &config, &call, &args);
    assert_true(args.right >= CLA_OPEN_END && args.left >= CLA_OPEN_END);
    problem.causal = true;
    for (int corner = 0; corner < 3; corner++) {
        problem.corner = (clattn_corner)corner;
        call.offset = -12;
        cla_launch_args(&problem, &config, &call, &args);
        assert_int_equal(args.right, 0);
        assert_true(args.left >= CLA_OPEN_END);
        assert_int_equal(args.corner, corner);
    }
    assert_int_equal(args.offset, -12);
    problem.corner = CLATTN_EXPLICIT;
    call.offset = INT64_MAX;
    cla_launch_args(&problem, &config, &call, &args);
    assert_true(args.offset >= (int64_t)1 << 30 && args.offset <= CLA_OPEN_END);
    call.offset = INT64_MIN;
    cla_launch_args(&problem, &config, &call, &args);
    assert_true(args.offset <= -((int64_t)1 << 30) && args.offset >= -CLA_OPEN_END);
}

/* Long tiles of several heads come first where a diagonal makes them longer, for as many heads as the budget holds. */
static void heads_come_together_below_a_diagonal(void **state)
{
    (void)state;
    const int64_t keys = 65 * (8 * 2 + 16 * 2); /* bytes of K and V of a head; two query heads share them */
    problem.causal = true;
    config.spread = 0;
    cla_launch_args(&problem, &config, &call, &args);
    assert_int_equal(args.together, 1);
    config.spread = keys * 2;
    cla_launch_args(&problem, &config, &call, &args);
    assert_int_equal(args.together, 4);
    config.spread = keys * 100;
    cla_launch_args(&problem, &config, &call, &args);
    assert_int_equal(args.together, 18);
    config.spread = 1;
    cla_launch_args(&problem, &config, &call, &args);
    assert_int_equal(args.together, 1);
    config.spread = keys * 2;
    problem.causal = false;
    call.window_left = call.window_right = -1;
    cla_launch_args(&problem, &config, &call, &args);
    assert_int_equal(args.together, 1);
    config.spread = 0;
}

static void heads_are_packed_where_they_fit(void **state)
{
    (void)state;
    config.packs_heads = true;
    static const struct {
        int64_t heads_q, heads_kv, seq_q;
        int pack, q_blocks;
    } rows[] = {{8, 2, 1, 4, 1}, {8, 2, 4, 4, 1}, {8, 2, 5, 2, 1}, {8, 2, 8, 2, 1}, {8, 2, 9, 1, 1},
                {8, 8, 1, 1, 1}, {6, 2, 5, 3, 1}, {6, 2, 6, 1, 1}, {8, 2, 33, 1, 3}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        problem.heads_q = rows[i].heads_q;
        problem.heads_kv = rows[i].heads_kv;
        call.seq_q = rows[i].seq_q;
        cla_launch_args(&problem, &config, &call, &args);
        assert_int_equal(args.group % args.pack, 0);
        assert_int_equal(args.pack, rows[i].pack);
        assert_int_equal(args.q_blocks, rows[i].q_blocks);
        config.packs_heads = false;
        cla_launch_args(&problem, &config, &call, &args);
        assert_int_equal(args.pack, 1);
        config.packs_heads = true;
    }
}

/* The packing is computed from the tile, not by trying every number up to the group's. */
static void a_huge_group_is_packed_at_once(void **state)
{
    (void)state;
    config.packs_heads = true;
    problem.heads_kv = 1;
    problem.heads_q = 1073741823; /* 3 * 3 * 7 * 11 * 31 * 151 * 331 */
    call.seq_q = 1;
    for (int i = 0; i < 10000; i++) {
        cla_launch_args(&problem, &config, &call, &args);
        assert_int_equal(args.pack, 11);
    }
    call.seq_q = 0;
    problem.heads_q = 4;
    cla_launch_args(&problem, &config, &call, &args);
    assert_int_equal(args.pack, 4);
}

static void each_type_has_its_element_size(void **state)
{
    (void)state;
    assert_int_equal(cla_type_size(CLATTN_FP32), 4);
    assert_int_equal(cla_type_size(CLATTN_FP16), 2);
    assert_int_equal(cla_type_size(CLATTN_BF16), 2);
}

/* 64-bit members come before 32-bit ones and the size is a multiple of 8, so that every compiler lays the struct out alike. */
static void launch_arguments_have_no_padding(void **state)
{
    (void)state;
    assert_int_equal(sizeof args % sizeof(int64_t), 0);
    assert_int_equal(offsetof(struct launch_args, softcap) + sizeof args.softcap, sizeof args);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(sizes_come_from_the_call, start),
        cmocka_unit_test_setup(no_query_head_divides_nothing, start),
        cmocka_unit_test_setup(strides_pass_unchanged, start),
        cmocka_unit_test_setup(byte_offsets_become_elements, start),
        cmocka_unit_test_setup(the_right_end_is_open_unless_causal, start),
        cmocka_unit_test_setup(heads_come_together_below_a_diagonal, start),
        cmocka_unit_test_setup(heads_are_packed_where_they_fit, start),
        cmocka_unit_test_setup(a_huge_group_is_packed_at_once, start),
        cmocka_unit_test_setup(each_type_has_its_element_size, start),
        cmocka_unit_test_setup(launch_arguments_have_no_padding, start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
