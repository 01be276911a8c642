/* SPDX-License-Identifier: Apache-2.0
 * tools/program/arrays.c: type words, axes, and numbers between files and storage types. */
#include "support.h"

#include "arrays.h"
#include "half.h"

static void type_words_are_read(void **state)
{
    static const char *const wrong[] = {"",       "fp64",          "FP16",         "q=",    "q=fp16,", ",q=fp16",
                                        "x=fp16", "q=fp16 o=fp16", "kv=fp16,fp32", "=fp16", "qk=fp16", "q=fp16,,o=fp32"};
    struct storage_types t = {0, 0, 0, 0};
    (void)state;
    assert_true(storage_types_parse("bf16", &t));
    assert_true(t.q == CLATTN_BF16 && t.k == CLATTN_BF16 && t.v == CLATTN_BF16 && t.o == CLATTN_BF16);
    t = (struct storage_types){0, 0, 0, 0};
    assert_true(storage_types_parse("q=fp32,kv=fp16", &t));
    assert_true(t.q == CLATTN_FP32 && t.k == CLATTN_FP16 && t.v == CLATTN_FP16 && t.o == 0);
    assert_true(storage_types_parse("k=bf16,o=fp16", &t));
    assert_true(t.q == CLATTN_FP32 && t.k == CLATTN_BF16 && t.v == CLATTN_FP16 && t.o == CLATTN_FP16);
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        if (storage_types_parse(wrong[i], &t))
            fail_msg("'%s' was taken for types", wrong[i]);
    }
}

static void axes_are_found(void **state)
{
    const struct {
        int rank;
        int64_t shape[4];
        clattn_layout layout;
        int64_t sizes[4];
    } cases[] = {
        {4, {2, 3, 4, 5}, CLATTN_BHSD, {2, 3, 4, 5}}, {4, {2, 3, 4, 5}, CLATTN_BSHD, {2, 4, 3, 5}},
        {3, {3, 4, 5}, CLATTN_BHSD, {1, 3, 4, 5}},    {3, {3, 4, 5}, CLATTN_BSHD, {1, 4, 3, 5}},
        {2, {4, 5}, CLATTN_BHSD, {1, 1, 4, 5}},       {2, {4, 5}, CLATTN_BSHD, {1, 1, 4, 5}},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct npy array = {.rank = cases[i].rank};
        int64_t sizes[4];
        memcpy(array.shape, cases[i].shape, sizeof cases[i].shape);
        assert_true(array_sizes(&array, cases[i].layout, sizes));
        assert_memory_equal(sizes, cases[i].sizes, sizeof sizes);
    }
    for (int rank = 0; rank <= 5; rank++) {
        const struct npy array = {.rank = rank};
        int64_t sizes[4];
        assert_int_equal(array_sizes(&array, CLATTN_BHSD, sizes), rank >= 2 && rank <= 4);
    }
}

static void numbers_are_kept(void **state)
{
    double in[3] = {1.5, -0.25, 3.0}; /* exact in every type */
    const enum npy_type types[] = {NPY_F4, NPY_F2, NPY_U2, NPY_V2};
    const clattn_type storage[] = {CLATTN_FP32, CLATTN_FP16, CLATTN_BF16};
    const struct npy source = {.type = NPY_F8, .rank = 1, .shape = {3}, .count = 3, .data = in};
    (void)state;
    for (size_t s = 0; s < COUNT_OF(storage); s++) {
        void *stored = array_to_storage(&source, storage[s]);
        assert_non_null(stored);
        for (size_t t = 0; t < COUNT_OF(types); t++) {
            struct npy out;
            const int64_t shape[2] = {1, 3};
            assert_true(array_from_storage(&out, types[t], storage[s], stored, 2, shape));
            assert_int_equal(out.count, 3);
            assert_int_equal(out.type, types[t]);
            for (size_t i = 0; i < 3; i++)
                assert_true(array_get(&out, i) == in[i]);
            npy_free(&out);
        }
        free(stored);
    }
}

static void whole_numbers_are_read(void **state)
{
    int64_t i8[2] = {-3, 58};
    int32_t i4[2] = {-3, 58};
    uint8_t u1[2] = {0, 255};
    (void)state;
    assert_true(array_get(&(struct npy){.type = NPY_I8, .count = 2, .data = i8}, 1) == 58);
    assert_true(array_get(&(struct npy){.type = NPY_I4, .count = 2, .data = i4}, 0) == -3);
    assert_true(array_get(&(struct npy){.type = NPY_U1, .count = 2, .data = u1}, 1) == 255);
    assert_true(array_get(&(struct npy){.type = NPY_B1, .count = 2, .data = u1}, 0) == 0);
}

static void the_storage_type_of_a_file_is_chosen(void **state)
{
    (void)state;
    assert_int_equal(storage_type_of(&(struct npy){.type = NPY_F2}), CLATTN_FP16);
    assert_int_equal(storage_type_of(&(struct npy){.type = NPY_U2}), CLATTN_BF16);
    assert_int_equal(storage_type_of(&(struct npy){.type = NPY_V2}), CLATTN_BF16);
    assert_int_equal(storage_type_of(&(struct npy){.type = NPY_F8}), CLATTN_FP32);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(type_words_are_read),
        cmocka_unit_test(axes_are_found),
        cmocka_unit_test(numbers_are_kept),
        cmocka_unit_test(whole_numbers_are_read),
        cmocka_unit_test(the_storage_type_of_a_file_is_chosen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
