/* SPDX-License-Identifier: Apache-2.0
 * src/device.c: which device a selector names, on lists of devices that need not be there. */
#include "support.h"

#include "device.h"

static const struct device_entry list[] = {
    {0, 0, NULL, NULL, CL_DEVICE_TYPE_CPU, "Portable Computing Language", "pthread-haswell"},
    {1, 0, NULL, NULL, CL_DEVICE_TYPE_GPU, "NVIDIA CUDA", "NVIDIA H200"},
    {1, 1, NULL, NULL, CL_DEVICE_TYPE_GPU, "NVIDIA CUDA", "NVIDIA A100-SXM4-40GB"},
    {2, 0, NULL, NULL, CL_DEVICE_TYPE_GPU | CL_DEVICE_TYPE_CPU | CL_DEVICE_TYPE_ACCELERATOR, "Oclgrind", "Oclgrind Simulator"},
    {3, 0, NULL, NULL, CL_DEVICE_TYPE_ACCELERATOR, "Intel(R) FPGA", "pac_a10"},
    {4, 0, NULL, NULL, CL_DEVICE_TYPE_GPU, "Intel(R) OpenCL Graphics", "Intel(R) Arc(TM) A770 Graphics"},
};

static int match(const char *selector)
{
    const struct device_entry *found = cla_device_match(list, COUNT_OF(list), selector);
    return found != NULL ? (int)(found - list) : -1;
}

static void no_selector_means_the_first_gpu(void **state)
{
    (void)state;
    assert_int_equal(match(NULL), 1);
    assert_int_equal(match(""), 1);
    assert_int_equal(match("default"), 1);
}

static void without_a_gpu_accelerator_then_cpu(void **state)
{
    (void)state;
    const struct device_entry two[] = {list[0], list[4]};
    assert_ptr_equal(cla_device_match(two, 2, NULL), &two[1]);
    assert_ptr_equal(cla_device_match(two, 1, NULL), &two[0]);
    assert_null(cla_device_match(two, 0, NULL));
    /* A device that claims to be everything is the last resort, but a resort. */
    const struct device_entry odd[] = {list[3], list[0]};
    assert_non_null(cla_device_match(odd, 1, NULL));
    assert_ptr_equal(cla_device_match(odd, 1, "gpu"), &odd[0]);
}

static void a_device_is_found_by_type(void **state)
{
    (void)state;
    assert_int_equal(match("gpu"), 1);
    assert_int_equal(match("cpu"), 0);
    const struct device_entry only_gpu[] = {list[1]};
    assert_null(cla_device_match(only_gpu, 1, "cpu"));
    assert_null(cla_device_match(only_gpu, 1, "accelerator"));
}

static void a_device_is_found_by_index(void **state)
{
    (void)state;
    assert_int_equal(match("0:0"), 0);
    assert_int_equal(match("1:0"), 1);
    assert_int_equal(match("1:1"), 2);
    assert_int_equal(match("4:0"), 5);
    assert_int_equal(match("1:2"), -1);
    assert_int_equal(match("5:0"), -1);
    assert_int_equal(match("99999999999999999999:0"), -1);
}

static void a_device_is_found_by_part_of_its_name_in_any_case(void **state)
{
    (void)state;
    assert_int_equal(match("nvidia"), 1);
    assert_int_equal(match("A100"), 2);
    assert_int_equal(match("a100"), 2);
    assert_int_equal(match("HASWELL"), 0);
    assert_int_equal(match("portable computing"), 0);
    assert_int_equal(match("arc"), 5);
    assert_int_equal(match("radeon"), -1);
}

static void a_device_is_found_by_platform_and_device(void **state)
{
    (void)state;
    assert_int_equal(match("nvidia:a100"), 2);
    assert_int_equal(match("nvidia:1"), 2);
    assert_int_equal(match("1:a100"), 2);
    assert_int_equal(match("intel:arc"), 5);
    assert_int_equal(match("nvidia:arc"), -1);
    assert_int_equal(match("amd:h200"), -1);
}

/* As parts of names are. */
static void types_are_known_in_any_case(void **state)
{
    (void)state;
    assert_int_equal(match("GPU"), match("gpu"));
    assert_int_equal(match("Cpu"), match("cpu"));
    assert_int_equal(match("ACCELERATOR"), match("accelerator"));
    assert_int_equal(match("DEFAULT"), match("default"));
}

/* "1" is neither the 1 of pac_a10 nor that of Intel's graphics, nor a platform or device. */
static void a_number_alone_matches_nothing(void **state)
{
    (void)state;
    static const char *const numbers[] = {"0", "1", "770", "100", "007"};
    for (size_t i = 0; i < COUNT_OF(numbers); i++) {
        assert_int_equal(match(numbers[i]), -1);
        assert_true(cla_selector_is_number(numbers[i]));
    }
    assert_false(cla_selector_is_number("A100"));
    assert_false(cla_selector_is_number("0:1"));
    assert_false(cla_selector_is_number(""));
    assert_false(cla_selector_is_number(NULL));
}

static void odd_selectors_match_nothing(void **state)
{
    (void)state;
    static const char *const odd[] = {":", "::", "1:", ":1x", "nvidia:", "-1:0", "1:-1", "nvidia:h200:0"};
    for (size_t i = 0; i < COUNT_OF(odd); i++) {
        if (match(odd[i]) != -1) {
            fail_msg("'%s' matched device %d", odd[i], match(odd[i]));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_selector_means_the_first_gpu),
        cmocka_unit_test(without_a_gpu_accelerator_then_cpu),
        cmocka_unit_test(a_device_is_found_by_type),
        cmocka_unit_test(a_device_is_found_by_index),
        cmocka_unit_test(a_device_is_found_by_part_of_its_name_in_any_case),
        cmocka_unit_test(a_device_is_found_by_platform_and_device),
        cmocka_unit_test(types_are_known_in_any_case),
        cmocka_unit_test(a_number_alone_matches_nothing),
        cmocka_unit_test(odd_selectors_match_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
