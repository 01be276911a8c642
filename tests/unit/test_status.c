/* SPDX-License-Identifier: Apache-2.0
 * src/status.c: names and texts of statuses, and the one place that writes errors. */
#include "support.h"

#include "status.h"

static void status_numbers_are_fixed(void **state)
{
    (void)state;
    static const struct {
        clattn_status status;
        int number;
        const char *name;
    } fixed[] = {
        {CLATTN_SUCCESS, 0, "SUCCESS"},           {CLATTN_INVALID_ARGUMENT, 1, "INVALID_ARGUMENT"},
        {CLATTN_UNSUPPORTED, 2, "UNSUPPORTED"},   {CLATTN_OUT_OF_HOST_MEMORY, 3, "OUT_OF_HOST_MEMORY"},
        {CLATTN_NO_PLATFORM, 4, "NO_PLATFORM"},   {CLATTN_NO_DEVICE, 5, "NO_DEVICE"},
        {CLATTN_BUILD_FAILED, 6, "BUILD_FAILED"}, {CLATTN_OPENCL, 7, "OPENCL"},
        {CLATTN_DEVICE_LOST, 8, "DEVICE_LOST"},   {CLATTN_INTERNAL, 9, "INTERNAL"},
    };
    for (size_t i = 0; i < COUNT_OF(fixed); i++) {
        assert_int_equal(fixed[i].status, fixed[i].number);
        assert_string_equal(clattn_status_name(fixed[i].status), fixed[i].name);
        assert_true(strlen(clattn_status_text(fixed[i].status)) > 0);
        for (size_t j = 0; j < i; j++) {
            assert_string_not_equal(clattn_status_text(fixed[i].status), clattn_status_text(fixed[j].status));
        }
    }
}

static void unknown_numbers_have_a_name(void **state)
{
    (void)state;
    static const int unknown[] = {-1, 10, 1000000, -2147483647};
    for (size_t i = 0; i < COUNT_OF(unknown); i++) {
        assert_string_equal(clattn_status_name((clattn_status)unknown[i]), "UNKNOWN");
        assert_non_null(clattn_status_text((clattn_status)unknown[i]));
    }
}

static void init_clears_the_error(void **state)
{
    (void)state;
    clattn_error error;
    memset(&error, 0xff, sizeof error);
    clattn_error_init(&error);
    assert_int_equal(error.struct_size, sizeof error);
    assert_int_equal(error.status, CLATTN_SUCCESS);
    assert_int_equal(error.cl_code, 0);
    assert_string_equal(error.field, "");
    assert_string_equal(error.message, "");
}

static void a_failure_fills_every_part_of_the_error(void **state)
{
    (void)state;
    clattn_error error;
    clattn_error_init(&error);
    assert_int_equal(cla_fail(&error, CLATTN_UNSUPPORTED, "problem.q.type", "type %d of %s", 7, "q"), CLATTN_UNSUPPORTED);
    assert_int_equal(error.status, CLATTN_UNSUPPORTED);
    assert_string_equal(error.field, "problem.q.type");
    assert_string_equal(error.message, "type 7 of q");
    cla_clear(&error);
    assert_int_equal(error.status, CLATTN_SUCCESS);
    assert_string_equal(error.field, "");
    assert_string_equal(error.message, "");
    assert_int_equal(error.struct_size, sizeof error);
}

static void no_error_struct_is_accepted(void **state)
{
    (void)state;
    assert_int_equal(cla_fail(NULL, CLATTN_INTERNAL, "x", "%s", "y"), CLATTN_INTERNAL);
    assert_int_equal(cla_fail_cl(NULL, -5, "clEnqueueNDRangeKernel"), CLATTN_OPENCL);
    cla_clear(NULL);
}

/* Texts that are too long are cut within their array and zero-terminated. */
static void long_texts_are_cut(void **state)
{
    (void)state;
    char long_text[4000];
    memset(long_text, 'x', sizeof long_text - 1);
    long_text[sizeof long_text - 1] = '\0';
    struct {
        clattn_error error;
        char guard[64];
    } guarded;
    memset(&guarded, 0x5a, sizeof guarded);
    clattn_error_init(&guarded.error);
    cla_fail(&guarded.error, CLATTN_BUILD_FAILED, long_text, "%s", long_text);
    assert_true(strlen(guarded.error.field) < sizeof guarded.error.field);
    assert_true(strlen(guarded.error.field) >= sizeof guarded.error.field - 4);
    assert_true(strlen(guarded.error.message) < sizeof guarded.error.message);
    assert_true(strlen(guarded.error.message) >= sizeof guarded.error.message - 8);
    for (size_t i = 0; i < sizeof guarded.guard; i++) {
        assert_int_equal(guarded.guard[i], 0x5a);
    }
}

/* An error struct filled with zeros instead of clattn_error_init gets its message like any other. */
static void an_error_of_zeros_gets_a_text(void **state)
{
    (void)state;
    clattn_error error = {0};
    cla_fail(&error, CLATTN_UNSUPPORTED, "problem.q", "seven");
    assert_int_equal(error.status, CLATTN_UNSUPPORTED);
    assert_string_equal(error.field, "problem.q");
    assert_string_equal(error.message, "seven");
    cla_clear(&error);
    assert_string_equal(error.message, "");
    assert_int_equal(error.struct_size, 0);
}

/* An older header's error struct may be shorter: the fields it has are filled, and nothing after it is written. */
static void a_shorter_error_is_filled_as_far_as_it_reaches(void **state)
{
    (void)state;
    for (size_t size = sizeof(size_t); size <= sizeof(clattn_error); size++) {
        clattn_error error;
        memset(&error, 0x5a, sizeof error);
        error.struct_size = size;
        cla_fail_cl(&error, CL_OUT_OF_RESOURCES, "clSomeCall");
        if (size >= offsetof(clattn_error, cl_code)) {
            assert_int_equal(error.status, CLATTN_OPENCL);
        }
        if (size >= offsetof(clattn_error, field)) {
            assert_int_equal(error.cl_code, CL_OUT_OF_RESOURCES);
        }
        if (size >= offsetof(clattn_error, message)) {
            assert_string_equal(error.field, "");
        }
        if (size > offsetof(clattn_error, message)) {
            const size_t room = size - offsetof(clattn_error, message);
            assert_true(strlen(error.message) < room);
            assert_true(strncmp(error.message, "clSomeCall: CL_OUT_OF_RESOURCES", room - 1) == 0 || room > 31);
        }
        for (size_t i = size; i < sizeof error; i++) {
            assert_int_equal(((const unsigned char *)&error)[i], 0x5a);
        }
    }
}

/* A newer struct is accepted while its unknown fields are 0, as _init leaves them, and refused by name otherwise. */
static void what_a_newer_struct_sets_is_not_ignored(void **state)
{
    (void)state;
    struct newer {
        size_t struct_size;
        int known, added[3];
    } given = {sizeof given, 7, {0, 0, 0}};
    struct {
        size_t struct_size;
        int known;
    } own = {sizeof own, 1};
    const size_t known = offsetof(struct newer, added);
    clattn_error error;
    clattn_error_init(&error);
    assert_ok(cla_struct_take("thing", &given, sizeof(size_t), &own, known, &error), &error);
    assert_int_equal(own.known, 7);
    assert_int_equal(own.struct_size, known);
    given.added[2] = 1 << 24;
    given.known = 8;
    assert_refused(cla_struct_take("thing", &given, sizeof(size_t), &own, known, &error), CLATTN_INVALID_ARGUMENT, &error,
                   "thing.struct_size");
    assert_int_equal(own.known, 7);
    given.struct_size = sizeof(size_t);
    assert_ok(cla_struct_take("thing", &given, sizeof(size_t), &own, known, &error), &error);
    assert_int_equal(own.known, 7);
    static const size_t wild[] = {0, 1, SIZE_MAX, 1000000};
    for (size_t i = 0; i < COUNT_OF(wild); i++) {
        given.struct_size = wild[i];
        assert_refused(cla_struct_take("thing", &given, sizeof(size_t), &own, known, &error), CLATTN_INVALID_ARGUMENT, &error,
                       "thing.struct_size");
    }
    assert_refused(cla_struct_take("thing", NULL, 8, &own, known, &error), CLATTN_INVALID_ARGUMENT, &error, "thing");
}

static void opencl_codes_become_statuses(void **state)
{
    (void)state;
    static const struct {
        int32_t code;
        clattn_status status;
        const char *name;
    } rows[] = {
        {CL_OUT_OF_HOST_MEMORY, CLATTN_OUT_OF_HOST_MEMORY, "CL_OUT_OF_HOST_MEMORY"},
        {CL_OUT_OF_RESOURCES, CLATTN_OPENCL, "CL_OUT_OF_RESOURCES"},
        {CL_INVALID_KERNEL_ARGS, CLATTN_OPENCL, "CL_INVALID_KERNEL_ARGS"},
        {CL_MEM_OBJECT_ALLOCATION_FAILURE, CLATTN_OPENCL, "CL_MEM_OBJECT_ALLOCATION_FAILURE"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        clattn_error error;
        clattn_error_init(&error);
        assert_int_equal(cla_fail_cl(&error, rows[i].code, "clSomeCall"), rows[i].status);
        assert_int_equal(error.status, rows[i].status);
        assert_int_equal(error.cl_code, rows[i].code);
        char number[32];
        snprintf(number, sizeof number, "(%d)", (int)rows[i].code);
        assert_contains(error.message, "clSomeCall");
        assert_contains(error.message, rows[i].name);
        assert_contains(error.message, number);
    }
}

static void opencl_codes_have_names(void **state)
{
    (void)state;
    assert_string_equal(cla_cl_name(0), "CL_SUCCESS");
    assert_string_equal(cla_cl_name(-5), "CL_OUT_OF_RESOURCES");
    assert_string_equal(cla_cl_name(-11), "CL_BUILD_PROGRAM_FAILURE");
    assert_string_equal(cla_cl_name(-43), "CL_INVALID_BUILD_OPTIONS");
    assert_string_equal(cla_cl_name(-54), "CL_INVALID_WORK_GROUP_SIZE");
    assert_string_equal(cla_cl_name(-61), "CL_INVALID_BUFFER_SIZE");
    assert_string_equal(cla_cl_name(-1001), "CL_PLATFORM_NOT_FOUND_KHR");
    assert_string_equal(cla_cl_name(-77777), "unknown code");
}

static void version_text_matches_numbers(void **state)
{
    (void)state;
    char text[64];
    snprintf(text, sizeof text, "%d.%d.%d", CLATTN_VERSION_MAJOR, CLATTN_VERSION_MINOR, CLATTN_VERSION_PATCH);
    assert_string_equal(clattn_version(), text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(status_numbers_are_fixed),
        cmocka_unit_test(unknown_numbers_have_a_name),
        cmocka_unit_test(init_clears_the_error),
        cmocka_unit_test(a_failure_fills_every_part_of_the_error),
        cmocka_unit_test(no_error_struct_is_accepted),
        cmocka_unit_test(long_texts_are_cut),
        cmocka_unit_test(an_error_of_zeros_gets_a_text),
        cmocka_unit_test(a_shorter_error_is_filled_as_far_as_it_reaches),
        cmocka_unit_test(what_a_newer_struct_sets_is_not_ignored),
        cmocka_unit_test(opencl_codes_become_statuses),
        cmocka_unit_test(opencl_codes_have_names),
        cmocka_unit_test(version_text_matches_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
