/* SPDX-License-Identifier: Apache-2.0
 * tools/base/half.c: every 16-bit value goes to float and back; rounding is to nearest even. */
#include "support.h"

#include "../../tools/base/half.c"

static void every_half_survives(void **state)
{
    (void)state;
    for (uint32_t bits = 0; bits < 65536; bits++) {
        const float x = half_to_float((uint16_t)bits);
        if (isnan(x))
            assert_true(isnan(half_to_float(half_from_float(x))));
        else
            assert_int_equal(half_from_float(x), bits);
    }
}

static void every_bf16_survives(void **state)
{
    (void)state;
    for (uint32_t bits = 0; bits < 65536; bits++) {
        const float x = bf16_to_float((uint16_t)bits);
        if (isnan(x))
            assert_true(isnan(bf16_to_float(bf16_from_float(x))));
        else
            assert_int_equal(bf16_from_float(x), bits);
    }
}

/* Between two neighbours: nearer one; halfway: the even one. */
static void half_rounds_to_nearest_even(void **state)
{
    (void)state;
    for (uint32_t bits = 0; bits < 0x7bff; bits++) {
        const float low = half_to_float((uint16_t)bits), high = half_to_float((uint16_t)(bits + 1));
        const float middle = low + (high - low) / 2.0f;
        assert_int_equal(half_from_float(middle), bits % 2 ? bits + 1 : bits);
        assert_int_equal(half_from_float(nextafterf(middle, 0.0f)), bits);
        assert_int_equal(half_from_float(nextafterf(middle, INFINITY)), bits + 1);
        assert_int_equal(half_from_float(-middle), 0x8000u | (bits % 2 ? bits + 1 : bits));
    }
}

static void values_past_the_largest_half_are_infinite(void **state)
{
    (void)state;
    assert_int_equal(half_from_float(65504.0f), 0x7bff);
    assert_int_equal(half_from_float(65519.996f), 0x7bff);
    assert_int_equal(half_from_float(65520.0f), 0x7c00);
    assert_int_equal(half_from_float(-INFINITY), 0xfc00);
    assert_int_equal(half_from_float(0x1p-24f), 1);
    assert_int_equal(half_from_float(0x1p-25f), 0);
    assert_int_equal(half_from_float(-0.0f), 0x8000);
}

static void bf16_rounds_to_nearest_even(void **state)
{
    (void)state;
    assert_int_equal(bf16_from_float(1.0f + 0x1p-8f), 0x3f80);           /* halfway, even below */
    assert_int_equal(bf16_from_float(1.0f + 0x1p-7f + 0x1p-8f), 0x3f82); /* halfway, even above */
    assert_int_equal(bf16_from_float(1.0f + 0x1.002p-8f), 0x3f81);
    assert_int_equal(bf16_from_float(3.4028235e38f), 0x7f80);
}

/* The poison is a NaN that no rounding of a NaN gives. */
static void poison_is_a_nan_of_its_own(void **state)
{
    const clattn_type types[] = {CLATTN_FP32, CLATTN_FP16, CLATTN_BF16};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(types); i++) {
        uint32_t element = 0;
        storage_fill_poison(types[i], &element, 1);
        assert_true(storage_is_poison(types[i], &element, 0));
        assert_true(isnan(storage_get(types[i], &element, 0)));
        storage_set(types[i], &element, 0, NAN);
        assert_false(storage_is_poison(types[i], &element, 0));
        storage_set(types[i], &element, 0, -NAN);
        assert_false(storage_is_poison(types[i], &element, 0));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_half_survives),         cmocka_unit_test(every_bf16_survives),
        cmocka_unit_test(half_rounds_to_nearest_even), cmocka_unit_test(values_past_the_largest_half_are_infinite),
        cmocka_unit_test(bf16_rounds_to_nearest_even), cmocka_unit_test(poison_is_a_nan_of_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
