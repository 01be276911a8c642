/* SPDX-License-Identifier: Apache-2.0
 * tools/oracle.c against numbers worked out by hand: the judge of all other tests must be right itself. */
#include "support.h"

#include "../../tools/half.c"
#include "../../tools/oracle.c"

/* Contiguous fp32 tensors of the sizes in `shape`, run by the oracle. */
static void run(const char *shape, const float *q, const float *k, const float *v, double *o, double *lse)
{
    clattn_problem p;
    assert_ok(clattn_problem_parse(shape, &p, NULL), NULL);
    const struct oracle_call call = {&p, p.batch, p.seq_q, p.seq_kv, p.offset, p.scale, q, k, v};
    assert_true(oracle_attention(&call, o, lse));
}

static void near(double got, double want)
{
    if (!(fabs(got - want) <= 1e-5) && got != want)
        fail_msg("%.9g, expected %.9g", got, want);
}

static const float zeros[64];

static void test_corners(void **state)
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

static void test_scale_zero_and_negative(void **state)
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

static void test_heads_are_shared_in_runs(void **state)
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

static void test_rows_that_see_nothing(void **state)
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

static void test_nan_stays_in_its_row(void **state)
{
    const float q[] = {1, NAN, 1}, k[] = {1, 1}, v[] = {4, 6};
    double o[3], lse[3];
    (void)state;
    run("q3 k2 d1", q, k, v, o, lse);
    near(o[0], 5);
    assert_true(isnan(o[1]) && isnan(lse[1]));
    near(o[2], 5);
}

static void test_lse_is_natural(void **state)
{
    double o, lse;
    (void)state;
    run("q1 k8 d1", zeros, zeros, zeros, &o, &lse);
    near(lse, 2.0794415);
}

/* The rows that the library will not read are not read here either. */
static void test_hidden_values_leave_no_trace(void **state)
{
    const float k[] = {1, NAN}, v[] = {3, INFINITY};
    double o, lse;
    (void)state;
    run("q1 k2 d1 causal", zeros, k, v, &o, &lse);
    near(o, 3);
}

static void test_strides_and_types(void **state)
{
    clattn_problem p;
    uint16_t k[5] = {0}, v[5];
    double o[2];
    (void)state;
    assert_ok(clattn_problem_parse("q1 k2 d1 dv2 kv=fp16", &p, NULL), NULL);
    for (int i = 0; i < 5; i++)
        v[i] = half_from_float((float)(i + 1));
    p.v.stride_seq = -3; /* value rows (4, 3) and (1, ...) with the dimension mirrored */
    p.v.stride_dim = -1;
    const struct oracle_call call = {&p, 1, 1, 2, 0, NAN, zeros, k, v + 4};
    assert_true(oracle_attention(&call, o, NULL));
    near(o[0], (5.0 + 2.0) / 2.0);
    near(o[1], (4.0 + 1.0) / 2.0);
}

/* Both loops see the same keys: on small numbers they agree to fp32's precision. */
static void test_plain_loop_agrees(void **state)
{
    float q[8], k[24], v[24], plain[4], plain_lse;
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
    const struct oracle_call call = {&p, 1, 2, 6, p.offset, p.scale, q, k, v};
    assert_true(oracle_begin(&oracle, &call));
    for (int64_t i = 0; i < 2; i++) {
        oracle_row(&oracle, 0, 0, i, o, &lse, weights);
        oracle_plain_row(&oracle, 0, 0, i, false, plain, &plain_lse);
        for (int e = 0; e < 4; e++)
            near((double)plain[e], o[e]);
        near((double)plain_lse, lse);
    }
    for (int j = 0; j < 6; j++)
        sum += weights[j];
    near(sum, 1.0);
    near(weights[4], 0.0); /* row 1 sees keys 0 ... 3 */
    oracle_end(&oracle);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_corners),
        cmocka_unit_test(test_scale_zero_and_negative),
        cmocka_unit_test(test_heads_are_shared_in_runs),
        cmocka_unit_test(test_rows_that_see_nothing),
        cmocka_unit_test(test_nan_stays_in_its_row),
        cmocka_unit_test(test_lse_is_natural),
        cmocka_unit_test(test_hidden_values_leave_no_trace),
        cmocka_unit_test(test_strides_and_types),
        cmocka_unit_test(test_plain_loop_agrees),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
