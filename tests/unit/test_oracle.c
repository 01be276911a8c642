/* SPDX-License-Identifier: Apache-2.0
 * tools/verify/oracle.c against numbers computed by hand: all other tests rely on it. */
#include "support.h"

#include "../../tools/base/half.c"
#include "../../tools/verify/oracle.c"

/* Contiguous fp32 tensors of the sizes in `shape`, run by the oracle. */
static void run(const char *shape, const float *q, const float *k, const float *v, double *o, double *lse)
{
    clattn_problem p;
    assert_ok(clattn_problem_parse(shape, &p, NULL), NULL);
    struct oracle_call call;
    oracle_call_init(&call, &p);
    call.q = q;
    call.k = k;
    call.v = v;
    assert_true(oracle_attention(&call, o, lse));
}

static void near(double got, double want)
{
    if (!(fabs(got - want) <= 1e-5) && got != want)
        fail_msg("%.9g, expected %.9g", got, want);
}

static const float zeros[64];

static void each_causal_corner_is_right(void **state)
{
    const float v[] = {5, 10};
    double o, lse;
    (void)state;
    run("q1 k2 d1", zeros, zeros, v, &o, &lse);
    near(o, 7.5);
    run("q1 k2 d1 causal=top-left", zeros, zeros, v, &o, &lse);
    near(o, 5);
    near(lse, 0);
    run("q1 k2 d1 causal=bottom-right", zeros, zeros, v, &o, &lse);
    near(o, 7.5);
    run("q1 k2 d1 causal=1", zeros, zeros, v, &o, &lse);
    near(o, 7.5);
}

static void scale_may_be_zero_or_negative(void **state)
{
    const float q[] = {3, 3, 3}, k[] = {7, 8, 9}, v[] = {1, 2, 3}, one[] = {1}, keys[] = {1, 2}, values[] = {0, 1};
    double o[3], lse[3];
    (void)state;
    run("q3 k3 d1 causal scale=0", q, k, v, o, lse);
    near(o[0], 1);
    near(o[1], 1.5);
    near(o[2], 2);
    near(lse[0], 0);
    near(lse[1], log(2.0));
    near(lse[2], log(3.0));
    run("q1 k2 d1 scale=-1", one, keys, values, o, lse);
    near(o[0], 0.2689414);
    near(lse[0], log(exp(-1.0) + exp(-2.0)));
}

static void heads_are_shared_in_runs(void **state)
{
    const float v[] = {1, 2};
    double o[4];
    (void)state;
    run("hq4 hkv2 q1 k1 d1", zeros, zeros, v, o, NULL);
    near(o[0], 1);
    near(o[1], 1);
    near(o[2], 2);
    near(o[3], 2);
}

static void rows_without_keys_give_zeros(void **state)
{
    const float q[] = {NAN, NAN, 1}, k[] = {1}, v[] = {4};
    double o[3], lse[3];
    (void)state;
    run("q3 k1 d1 causal=bottom-right", q, k, v, o, lse);
    near(o[0], 0);
    near(o[1], 0);
    near(o[2], 4);
    near(lse[0], -INFINITY);
    near(lse[1], -INFINITY);
    near(lse[2], 1);
    run("q2 k0 d1", q, k, v, o, lse);
    near(o[0], 0);
    near(lse[1], -INFINITY);
}

static void nan_stays_in_its_row(void **state)
{
    const float q[] = {1, NAN, 1}, k[] = {1, 1}, v[] = {4, 6};
    double o[3], lse[3];
    (void)state;
    run("q3 k2 d1", q, k, v, o, lse);
    near(o[0], 5);
    assert_true(isnan(o[1]) && isnan(lse[1]));
    near(o[2], 5);
}

static void lse_is_natural(void **state)
{
    double o, lse;
    (void)state;
    run("q1 k8 d1", zeros, zeros, zeros, &o, &lse);
    near(lse, 2.0794415);
}

/* The oracle, like the library, does not read masked rows. */
static void masked_values_leave_no_trace(void **state)
{
    const float k[] = {1, NAN}, v[] = {3, INFINITY};
    double o, lse;
    (void)state;
    run("q1 k2 d1 causal", zeros, k, v, &o, &lse);
    near(o, 3);
}

static void any_stride_and_type_is_read(void **state)
{
    clattn_problem p;
    uint16_t k[5] = {0}, v[5];
    double o[2];
    (void)state;
    assert_ok(clattn_problem_parse("q1 k2 d1 dv2 kv=fp16", &p, NULL), NULL);
    for (int i = 0; i < 5; i++)
        v[i] = half_from_float((float)(i + 1));
    p.v.strides.row = -3; /* value rows (4, 3) and (1, ...) with the dimension mirrored */
    p.v.strides.column = -1;
    struct oracle_call call;
    oracle_call_init(&call, &p);
    call.q = zeros;
    call.k = k;
    call.v = v + 4;
    assert_true(oracle_attention(&call, o, NULL));
    near(o[0], (5.0 + 2.0) / 2.0);
    near(o[1], (4.0 + 1.0) / 2.0);
}

/* Both loops see the same keys: on small numbers they agree to fp32's precision. */
static void the_plain_loop_agrees(void **state)
{
    float q[8], k[24], v[24], natural[4], base_two[4], cut[4];
    struct oracle_plain plain = {.o = {natural, base_two, cut}};
    double o[4], lse, weights[6], sum = 0.0;
    clattn_problem p;
    struct oracle oracle;
    (void)state;
    assert_ok(clattn_problem_parse("q2 k6 d4 causal=2", &p, NULL), NULL);
    for (int i = 0; i < 24; i++) {
        q[i % 8] = (float)(i % 5) - 2.0f;
        k[i] = (float)(i * 7 % 11) / 5.0f - 1.0f;
        v[i] = (float)(i * 5 % 13) / 6.0f - 1.0f;
    }
    struct oracle_call call;
    oracle_call_init(&call, &p);
    call.q = q;
    call.k = k;
    call.v = v;
    assert_true(oracle_begin(&oracle, &call));
    for (int64_t i = 0; i < 2; i++) {
        oracle_row(&oracle, 0, 0, i, o, &lse, weights);
        oracle_plain_row(&oracle, 0, 0, i, false, &plain);
        for (int form = 0; form < ORACLE_PLAIN_FORMS; form++) {
            for (int e = 0; e < 4; e++)
                near((double)plain.o[form][e], o[e]);
            near((double)plain.lse[form], lse);
        }
    }
    for (int j = 0; j < 6; j++)
        sum += weights[j];
    near(sum, 1.0);
    near(weights[4], 0.0); /* row 1 sees keys 0 ... 3 */
    oracle_end(&oracle);
}

/* 16 products of 1 and 2^-23 each: rounding to nearest would go up at the half, a matrix unit cuts. */
static void the_third_plain_loop_cuts_sums_of_sixteen(void **state)
{
    float q[32], k[32], v[1] = {1.0f}, natural[1], base_two[1], third[1];
    struct oracle_plain plain = {.o = {natural, base_two, third}};
    clattn_problem p;
    struct oracle oracle;
    struct oracle_call call;
    (void)state;
    assert_ok(clattn_problem_parse("q1 k1 d32 dv1 scale=1", &p, NULL), NULL);
    for (int d = 0; d < 32; d++) {
        q[d] = 1.0f;
        k[d] = d == 0 ? 1.0f : d == 16 ? 0x1.8p-24f : 0.0f; /* 1 + three quarters of a unit in the last place */
    }
    oracle_call_init(&call, &p);
    call.q = q;
    call.k = k;
    call.v = v;
    assert_true(oracle_begin(&oracle, &call));
    oracle_plain_row(&oracle, 0, 0, 0, true, &plain);
    assert_true(plain.lse[ORACLE_PLAIN_NATURAL] == 1.0f + 0x1p-23f);
    assert_true(plain.lse[ORACLE_PLAIN_CUT] == 1.0f);
    oracle_plain_row(&oracle, 0, 0, 0, false, &plain);
    assert_true(plain.lse[ORACLE_PLAIN_CUT] == plain.lse[ORACLE_PLAIN_NATURAL]);
    oracle_end(&oracle);
}

/* One head, Q = K = 0: the worked examples of docs/semantics.md, one an option. */
struct example {
    clattn_problem problem;
    struct oracle_call call;
    double o[64], lse[64];
};

static struct oracle_call *begin(struct example *x, const char *shape, const float *v)
{
    memset(x, 0, sizeof *x);
    assert_ok(clattn_problem_parse(shape, &x->problem, NULL), NULL);
    oracle_call_init(&x->call, &x->problem);
    x->call.q = x->call.k = zeros;
    x->call.v = v;
    return &x->call;
}

static void attend(struct example *x) { assert_true(oracle_attention(&x->call, x->o, x->lse)); }

static void windows_include_both_ends(void **state)
{
    float identity[64] = {0};
    struct example x;
    (void)state;
    for (int i = 0; i < 8; i++)
        identity[i * 9] = 1.0f;
    begin(&x, "q8 k8 d8 causal window=2,-1", identity);
    attend(&x);
    for (int j = 0; j < 8; j++)
        near(x.o[5 * 8 + j], j >= 3 && j <= 5 ? 1.0 / 3.0 : 0.0);
    begin(&x, "q8 k8 d8 window=0,0", identity);
    attend(&x);
    for (int j = 0; j < 64; j++)
        near(x.o[j], (double)identity[j]);
    /* Two queries at the end of eight keys, one key to either side. */
    begin(&x, "q2 k8 d8 window=1,1 corner=bottom-right", identity);
    attend(&x);
    near(x.o[4], 0.0);
    near(x.o[5], 1.0 / 3.0);
    near(x.o[8 + 7], 0.5);
    near(x.lse[1], log(2.0));
}

static void mask_and_bias_are_applied(void **state)
{
    const float v[] = {0, 1}, keys[] = {1, 2}, one[] = {1}, factor[] = {0.5f};
    const uint8_t mask[] = {1, 0}, none[] = {0, 0};
    const float hide[] = {0, -INFINITY}, shift[] = {0, -1}, twice[] = {0, -2}, far[] = {-1e6f, -1e6f};
    struct example x;
    (void)state;
    begin(&x, "q1 k2 d1 mask=k", v)->mask = mask;
    attend(&x);
    near(x.o[0], 0.0);
    near(x.lse[0], 0.0);
    begin(&x, "q1 k2 d1 mask=k", v)->mask = none;
    attend(&x);
    near(x.lse[0], -INFINITY);
    begin(&x, "q1 k2 d1 bias=k", v)->bias = hide;
    attend(&x);
    near(x.o[0], 0.0);
    begin(&x, "q1 k2 d1 bias=k scale=0.1", v)->bias = shift;
    x.call.k = keys;
    attend(&x);
    near(x.o[0], 0.2689414);
    begin(&x, "q1 k2 d1 bias=k bias-factors scale=0.1", v)->bias = twice;
    x.call.bias_factors = factor;
    attend(&x);
    near(x.o[0], 0.2689414);
    begin(&x, "q1 k2 d1 bias=k", v)->bias = far; /* a finite number is a number */
    attend(&x);
    near(x.o[0], 0.5);
    near(x.lse[0], -1e6 + log(2.0));
    begin(&x, "q1 k2 d1 mask=1", v)->mask = mask; /* broadcast along the keys, */
    attend(&x);
    near(x.o[0], 0.5);
    begin(&x, "q1 k2 d1 mask=1", v)->mask = mask; /* or a single column of its own, so that the rest is masked */
    x.call.mask_columns = 1;
    x.call.q = one;
    attend(&x);
    near(x.o[0], 0.0);
}

static void scores_and_sinks_are_right(void **state)
{
    const float v[] = {0, 1}, big[] = {1, 100}, three[] = {3}, one[] = {1}, zero[] = {0}, ten[] = {10, -10}, slope[] = {0.5f};
    const float ramp[] = {0, 1, 2, 3}, none[] = {-INFINITY};
    struct example x;
    (void)state;
    begin(&x, "q2 k2 d1 causal softcap=1", big);
    attend(&x);
    near(x.o[0], 1.0);
    begin(&x, "q1 k2 d1 softcap=2 scale=1", v);
    x.call.q = one;
    x.call.k = ten;
    attend(&x);
    near(x.lse[0], log(exp(2.0 * tanh(5.0)) + exp(-2.0 * tanh(5.0))));
    begin(&x, "q1 k2 d1 alibi", v)->alibi = one;
    attend(&x);
    near(x.o[0], 0.2689414);
    begin(&x, "q1 k4 d1 alibi causal=bottom-right", ramp)->alibi = slope;
    attend(&x);
    near(x.o[0], 2.0845764);
    begin(&x, "q1 k1 d1 sinks", three)->sinks = zero;
    attend(&x);
    near(x.o[0], 1.5);
    near(x.lse[0], log(2.0));
    begin(&x, "q1 k0 d1 sinks", three)->sinks = ten;
    attend(&x);
    near(x.o[0], 0.0);
    near(x.lse[0], 10.0);
    begin(&x, "q1 k1 d1 sinks", three)->sinks = none;
    attend(&x);
    near(x.o[0], 3.0);
    near(x.lse[0], 0.0);
}

static void lengths_and_offsets_of_sequences_are_right(void **state)
{
    const float v[] = {5, 10, NAN, INFINITY};
    const int32_t two[] = {2}, below[] = {-5}, offset[] = {1};
    const int64_t above[] = {INT64_MAX};
    struct example x;
    (void)state;
    begin(&x, "q1 k4 d1 kv-lengths", v)->kv_lengths = two;
    attend(&x);
    near(x.o[0], 7.5);
    begin(&x, "q1 k2 d1 kv-lengths=int64", v)->kv_lengths = above;
    attend(&x);
    near(x.o[0], 7.5);
    begin(&x, "q1 k4 d1 kv-lengths", v)->kv_lengths = below;
    attend(&x);
    near(x.lse[0], -INFINITY);
    /* Corners count from real lengths: the second of two queries is the last, and the third is none. */
    begin(&x, "q3 k4 d1 kv-lengths q-lengths causal=bottom-right", v)->kv_lengths = two;
    x.call.q_lengths = two;
    attend(&x);
    near(x.o[0], 5.0);
    near(x.o[1], 7.5);
    near(x.o[2], 0.0);
    near(x.lse[2], -INFINITY);
    begin(&x, "q1 k4 d1 causal offsets", v)->offsets = offset;
    attend(&x);
    near(x.o[0], 7.5);
}

static void packed_sequences_are_right(void **state)
{
    const float v[] = {1, 2, 3, 4, 5};
    const int32_t q_starts[] = {-3, 2, 2, 9}, kv_starts[] = {0, 2, 4, 5};
    struct example x;
    struct oracle_sequence s;
    (void)state;
    begin(&x, "b3 q2 k2 d1 packed causal=bottom-right", v)->q_starts = q_starts;
    x.problem.packed.total_q = 3;
    x.problem.packed.total_kv = 5;
    x.call.kv_starts = kv_starts;
    attend(&x);
    near(x.o[0], 1.0); /* sequence 0 sees keys 1, 2 */
    near(x.o[1], 1.5);
    near(x.lse[2], -INFINITY); /* sequence 1 has no query */
    near(x.o[4], 5.0);         /* sequence 2 has one of each, past the end or not */
    oracle_sequence_find(&x.call, 1, &s);
    assert_int_equal(s.q_rows, 0);
    assert_int_equal(s.kv_length, 2);
    oracle_sequence_find(&x.call, 2, &s);
    assert_int_equal(s.q_rows, 1);
    assert_int_equal(s.q_start, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_third_plain_loop_cuts_sums_of_sixteen),
        cmocka_unit_test(each_causal_corner_is_right),
        cmocka_unit_test(scale_may_be_zero_or_negative),
        cmocka_unit_test(heads_are_shared_in_runs),
        cmocka_unit_test(rows_without_keys_give_zeros),
        cmocka_unit_test(nan_stays_in_its_row),
        cmocka_unit_test(lse_is_natural),
        cmocka_unit_test(masked_values_leave_no_trace),
        cmocka_unit_test(any_stride_and_type_is_read),
        cmocka_unit_test(the_plain_loop_agrees),
        cmocka_unit_test(windows_include_both_ends),
        cmocka_unit_test(mask_and_bias_are_applied),
        cmocka_unit_test(scores_and_sinks_are_right),
        cmocka_unit_test(lengths_and_offsets_of_sequences_are_right),
        cmocka_unit_test(packed_sequences_are_right),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
