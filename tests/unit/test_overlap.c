/* SPDX-License-Identifier: Apache-2.0
 * src/overlap.c: which tensors share an element, compared with a search of all elements of both. */
#include "support.h"

#include "overlap.h"
#include "random.h"

enum { BYTES = 4096 };

static struct tensor_check tensor_of(clattn_buffer *buffer, size_t element_size, const int64_t sizes[4],
                                     const int64_t strides[4])
{
    const struct tensor_check t = {.field = "x",
                                   .buffer = buffer,
                                   .element_size = element_size,
                                   .written = true,
                                   .sizes = {sizes[0], sizes[1], sizes[2], sizes[3]},
                                   .strides = {strides[0], strides[1], strides[2], strides[3]}};
    return t;
}

static void mark(const struct tensor_check *t, bool *touched)
{
    for (int64_t b = 0; b < t->sizes[0]; b++)
        for (int64_t h = 0; h < t->sizes[1]; h++)
            for (int64_t s = 0; s < t->sizes[2]; s++)
                for (int64_t d = 0; d < t->sizes[3]; d++)
                    for (size_t byte = 0; byte < t->element_size; byte++) {
                        const int64_t element = b * t->strides[0] + h * t->strides[1] + s * t->strides[2] + d * t->strides[3];
                        touched[(int64_t)(t->buffer->offset + byte) + element * (int64_t)t->element_size] = true;
                    }
}

static bool share(const struct tensor_check *a, const struct tensor_check *b)
{
    static bool by_a[BYTES], by_b[BYTES];
    memset(by_a, 0, sizeof by_a);
    memset(by_b, 0, sizeof by_b);
    mark(a, by_a);
    mark(b, by_b);
    for (int i = 0; i < BYTES; i++)
        if (by_a[i] && by_b[i])
            return true;
    return false;
}

static struct tensor_check random_tensor(clattn_buffer *buffer, uint64_t seed)
{
    int64_t sizes[4], strides[4];
    for (int i = 0; i < 4; i++) {
        sizes[i] = 1 + (int64_t)(random_mix(seed * 16 + (uint64_t)i) % 4);
        strides[i] = (int64_t)(random_mix(seed * 16 + 8 + (uint64_t)i) % 41) - 20;
    }
    const size_t element_size = (size_t)1 << (random_mix(seed) % 3);
    buffer->offset = (1024 + random_mix(seed * 3 + 1) % 1024) / element_size * element_size;
    return tensor_of(buffer, element_size, sizes, strides);
}

static void random_tensors_overlap_where_an_element_is_shared(void **state)
{
    (void)state;
    int overlaps = 0, trials = 20000;
    for (int i = 0; i < trials; i++) {
        clattn_buffer x = {CLATTN_BUFFER_MEM, &x, 0}, y = {CLATTN_BUFFER_MEM, &x, 0};
        const struct tensor_check a = random_tensor(&x, (uint64_t)i * 2 + 1), b = random_tensor(&y, (uint64_t)i * 2 + 2);
        const bool want = share(&a, &b);
        if (cla_tensors_overlap(&a, &b) != want || cla_tensors_overlap(&b, &a) != want)
            fail_msg("trial %d: %s expected", i, want ? "an overlap" : "none");
        overlaps += want;
    }
    assert_true(overlaps > trials / 10 && overlaps < trials * 9 / 10);
}

/* Q, K, V and O of each row lie next to each other in one buffer, with sizes of real models. */
static void interleaved_tensors_do_not_overlap(void **state)
{
    (void)state;
    const int64_t sizes[4] = {64, 32, 100000, 128}, row = 4 * 32 * 128;
    const int64_t strides[4] = {100000 * row, 128, row, 1};
    clattn_buffer q = {CLATTN_BUFFER_MEM, &q, 0}, o = {CLATTN_BUFFER_MEM, &q, 2 * 3 * 32 * 128};
    const struct tensor_check a = tensor_of(&q, 2, sizes, strides), b = tensor_of(&o, 2, sizes, strides);
    assert_false(cla_tensors_overlap(&a, &b));
    o.offset = 2 * 31 * 128;
    assert_true(cla_tensors_overlap(&a, &b));
    assert_true(cla_tensors_overlap(&a, &a));
}

static void another_buffer_or_none_is_no_overlap(void **state)
{
    (void)state;
    const int64_t sizes[4] = {2, 2, 2, 8}, strides[4] = {32, 16, 8, 1}, empty[4] = {2, 0, 2, 8};
    static float memory[128];
    clattn_buffer x = {CLATTN_BUFFER_MEM, &x, 0}, y = {CLATTN_BUFFER_MEM, &y, 0};
    const struct tensor_check a = tensor_of(&x, 4, sizes, strides), b = tensor_of(&y, 4, sizes, strides),
                              c = tensor_of(&x, 4, empty, strides);
    assert_false(cla_tensors_overlap(&a, &b));
    assert_false(cla_tensors_overlap(&a, &c));
    y.kind = CLATTN_BUFFER_NONE;
    assert_false(cla_tensors_overlap(&a, &b));
    /* Pointers of shared virtual memory are compared by address, even across allocations. */
    x.kind = y.kind = CLATTN_BUFFER_SVM;
    x.handle = memory;
    y.handle = memory + 64;
    assert_false(cla_tensors_overlap(&a, &b));
    y.handle = memory + 63;
    assert_true(cla_tensors_overlap(&a, &b));
    y.handle = memory + 64;
    x.offset = 4;
    assert_true(cla_tensors_overlap(&a, &b));
}

/* Numbers at their limits stop instead of wrapping. */
static void extreme_strides_do_no_harm(void **state)
{
    (void)state;
    static const int64_t extremes[] = {INT64_MIN, INT64_MAX, (int64_t)1 << 60, -((int64_t)1 << 61), 1};
    for (size_t i = 0; i < COUNT_OF(extremes); i++)
        for (size_t j = 0; j < COUNT_OF(extremes); j++) {
            const int64_t sizes[4] = {1 << 20, 1 << 20, 1 << 20, 1 << 20};
            const int64_t strides[4] = {extremes[i], extremes[j], extremes[i], extremes[j]};
            clattn_buffer x = {CLATTN_BUFFER_MEM, &x, SIZE_MAX}, y = {CLATTN_BUFFER_MEM, &x, 0};
            const struct tensor_check a = tensor_of(&x, 8, sizes, strides), b = tensor_of(&y, 8, sizes, strides);
            (void)cla_tensors_overlap(&a, &b);
            (void)cla_tensors_overlap(&b, &a);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_tensors_overlap_where_an_element_is_shared),
        cmocka_unit_test(interleaved_tensors_do_not_overlap),
        cmocka_unit_test(another_buffer_or_none_is_no_overlap),
        cmocka_unit_test(extreme_strides_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
