/* SPDX-License-Identifier: Apache-2.0
 * src/text.c: growing text, numbers that do not depend on the locale, and the size convention of public functions. */
#include "support.h"

#include "text.h"

#include <float.h>
#include <inttypes.h>
#include <locale.h>

static void a_text_starts_empty_and_grows(void **state)
{
    (void)state;
    struct text text = {0};
    cla_text_add(&text, "%s=%d\n", "a", 1);
    assert_string_equal(text.data, "a=1\n");
    assert_int_equal(text.length, 4);
    for (int i = 0; i < 20000; i++) {
        cla_text_add(&text, "%d,", i % 10);
    }
    assert_false(text.failed);
    assert_int_equal(text.length, 4 + 2 * 20000);
    assert_int_equal(strlen(text.data), text.length);
    assert_memory_equal(text.data + text.length - 4, "8,9,", 4);
    cla_text_free(&text);
    assert_null(text.data);
    assert_int_equal(text.length, 0);
}

static void one_long_line_fits(void **state)
{
    (void)state;
    char *line = malloc(100001);
    assert_non_null(line);
    memset(line, 'y', 100000);
    line[100000] = '\0';
    struct text text = {0};
    cla_text_add(&text, "<%s>", line);
    assert_int_equal(text.length, 100002);
    assert_int_equal(text.data[100001], '>');
    cla_text_free(&text);
    free(line);
}

static void append_takes_any_bytes(void **state)
{
    (void)state;
    struct text text = {0};
    cla_text_append(&text, "100%s%n", 7);
    cla_text_append(&text, "", 0);
    cla_text_append(&text, "abcdef", 3);
    assert_string_equal(text.data, "100%s%nabc");
    cla_text_free(&text);
}

static void check_float(float value, const char *wanted)
{
    struct text text = {0};
    cla_text_add_float(&text, value);
    if (wanted != NULL) {
        assert_string_equal(text.data, wanted);
    }
    const char *end;
    const float back = (float)cla_parse_double(text.data, &end);
    assert_int_equal(*end, '\0');
    if (isnan(value)) {
        assert_true(isnan(back));
    } else {
        assert_memory_equal(&back, &value, sizeof value);
    }
    cla_text_free(&text);
}

static void floats_are_printed_in_few_digits(void **state)
{
    (void)state;
    check_float(0.0f, "0");
    check_float(1.0f, "1");
    check_float(-2.5f, "-2.5");
    check_float(0.1f, "0.1");
    check_float(0.125f, "0.125");
    check_float(16777216.0f, NULL);
    check_float(FLT_MAX, NULL);
    check_float(-FLT_MIN, NULL);
    check_float(1.0f / 3.0f, NULL);
}

static void floats_read_back(void **state)
{
    (void)state;
    uint32_t bits = 12345;
    for (int i = 0; i < 3000; i++) {
        bits = bits * 1664525u + 1013904223u;
        float value;
        memcpy(&value, &bits, sizeof value);
        if (!isnan(value)) {
            check_float(value, NULL);
        }
    }
}

static void no_shorter_form_reads_back(void **state)
{
    (void)state;
    uint32_t bits = 777;
    for (int i = 0; i < 300; i++) {
        bits = bits * 1664525u + 1013904223u;
        const float value = (float)(bits >> 8) / 65536.0f;
        struct text text = {0};
        cla_text_add_float(&text, value);
        int digits = 0;
        for (const char *p = text.data; *p != '\0' && *p != 'e'; p++) {
            digits += *p >= '0' && *p <= '9';
        }
        int shortest = 1;
        for (char form[64]; shortest < 9; shortest++) {
            snprintf(form, sizeof form, "%.*g", shortest, (double)value);
            if (strtof(form, NULL) == value) {
                break;
            }
        }
        /* A leading "0." and trailing zeros before the point do not count as digits of the value. */
        assert_true(digits <= shortest + 5);
        cla_text_free(&text);
    }
}

static void doubles_are_parsed(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double value;
        size_t used;
    } rows[] = {
        {"0.5", 0.5, 3},   {"-1.25e2 x", -125.0, 7}, {"3", 3.0, 1},  {"1,5", 1.0, 1},
        {"1e-3", 1e-3, 4}, {"7fp", 7.0, 1},          {".5", 0.5, 2},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const char *end;
        const double value = cla_parse_double(rows[i].text, &end);
        assert_true(fabs(value - rows[i].value) <= 1e-15 * fabs(rows[i].value));
        assert_int_equal(end - rows[i].text, rows[i].used);
    }
    static const char *const no_number[] = {"", "x", "-", "."};
    for (size_t i = 0; i < COUNT_OF(no_number); i++) {
        const char *end;
        cla_parse_double(no_number[i], &end);
        assert_ptr_equal(end, no_number[i]);
    }
}

/* Programs set the locale; a decimal comma must not reach kernel source or facts. Without such a locale the C one is used. */
static void the_decimal_point_is_the_same_in_every_locale(void **state)
{
    (void)state;
    static const char *const commas[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "fr_FR.utf8", "de_DE", "ru_RU.UTF-8"};
    bool found = false;
    for (size_t i = 0; i < COUNT_OF(commas) && !found; i++) {
        found = setlocale(LC_NUMERIC, commas[i]) != NULL && strcmp(localeconv()->decimal_point, ",") == 0;
    }
    check_float(0.5f, "0.5");
    check_float(-1234.75f, "-1234.75");
    setlocale(LC_NUMERIC, "C");
    if (!found) {
        print_message("no locale with a decimal comma is installed\n");
    }
}

static void copying_out_follows_the_size_convention(void **state)
{
    (void)state;
    struct text text = {0};
    cla_text_add(&text, "%s", "hello");
    char out[16];
    size_t needed = 0;
    assert_int_equal(cla_text_out(&text, NULL, 0, &needed), CLATTN_SUCCESS);
    assert_int_equal(needed, 6);
    memset(out, '#', sizeof out);
    assert_int_equal(cla_text_out(&text, out, sizeof out, NULL), CLATTN_SUCCESS);
    assert_string_equal(out, "hello");
    memset(out, '#', sizeof out);
    needed = 0;
    cla_text_out(&text, out, 3, &needed);
    assert_int_equal(needed, 6);
    assert_string_equal(out, "he");
    assert_int_equal(out[3], '#');
    cla_text_free(&text);
    struct text empty = {0};
    assert_int_equal(cla_text_out(&empty, out, sizeof out, &needed), CLATTN_SUCCESS);
    assert_string_equal(out, "");
    assert_int_equal(needed, 1);
}

/* After memory ran out the text stays failed, and public functions report it. */
static void a_failed_text_stays_failed(void **state)
{
    (void)state;
    struct text text = {0};
    text.failed = true;
    cla_text_add(&text, "%s", "more");
    cla_text_append(&text, "more", 4);
    char out[8];
    assert_int_equal(cla_text_out(&text, out, sizeof out, NULL), CLATTN_OUT_OF_HOST_MEMORY);
    cla_text_free(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_text_starts_empty_and_grows),
        cmocka_unit_test(one_long_line_fits),
        cmocka_unit_test(append_takes_any_bytes),
        cmocka_unit_test(floats_are_printed_in_few_digits),
        cmocka_unit_test(floats_read_back),
        cmocka_unit_test(no_shorter_form_reads_back),
        cmocka_unit_test(doubles_are_parsed),
        cmocka_unit_test(the_decimal_point_is_the_same_in_every_locale),
        cmocka_unit_test(copying_out_follows_the_size_convention),
        cmocka_unit_test(a_failed_text_stays_failed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
