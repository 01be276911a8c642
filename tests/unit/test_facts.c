/* SPDX-License-Identifier: Apache-2.0
 * src/facts.c: facts as text, overrides, extensions. */
#include "support.h"

#include "facts.h"

static clattn_error error;

static int clear_error(void **state)
{
    (void)state;
    clattn_error_init(&error);
    return 0;
}

/* A value in every fact, each different. */
static void fill(struct facts *facts)
{
    memset(facts, 0, sizeof *facts);
    uint64_t number = 3;
#define FILL_STRING(name) snprintf(facts->name, sizeof facts->name, "text of %s, = and #", #name);
#define FILL_NUMBER(name) facts->name = number++;
#define FILL_BYTES(name) facts->name = 1024 * number + (number & 1), number++;
    CLA_FACTS(FILL_STRING, FILL_NUMBER, FILL_BYTES)
#undef FILL_STRING
#undef FILL_NUMBER
#undef FILL_BYTES
    facts->device_kind = DEVICE_GPU;
}

static void printed_facts_read_back(void **state)
{
    (void)state;
    struct facts facts, back;
    fill(&facts);
    struct text text = {0};
    cla_facts_print(&facts, &text);
#define NAME_IS_PRINTED(name) assert_contains(text.data, #name "=");
    CLA_FACTS(NAME_IS_PRINTED, NAME_IS_PRINTED, NAME_IS_PRINTED)
#undef NAME_IS_PRINTED
    assert_contains(text.data, "device_kind=gpu\n");
    assert_ok(cla_facts_parse(text.data, &back, &error), &error);
    assert_memory_equal(&facts, &back, sizeof facts);
    cla_text_free(&text);
}

static void zeros_are_printed_too(void **state)
{
    (void)state;
    struct facts facts, back;
    memset(&facts, 0, sizeof facts);
    struct text text = {0};
    cla_facts_print(&facts, &text);
    assert_contains(text.data, "local_mem=0\n");
    assert_contains(text.data, "extensions=\n");
    memset(&back, 0xff, sizeof back);
    assert_ok(cla_facts_parse(text.data, &back, &error), &error);
    assert_memory_equal(&facts, &back, sizeof facts);
    cla_text_free(&text);
}

static void comments_blanks_and_units_are_read(void **state)
{
    (void)state;
    struct facts facts;
    assert_ok(cla_facts_parse("# a device\n"
                              "\n"
                              "device_kind=accelerator\r\n"
                              "local_mem=48K\n"
                              "max_alloc=2G\n"
                              "global_mem=8589934592\n"
                              "cache=3M  \n"
                              "max_work_group=256",
                              &facts, &error),
              &error);
    assert_int_equal(facts.device_kind, DEVICE_ACCELERATOR);
    assert_int_equal(facts.local_mem, 48 * 1024);
    assert_true(facts.max_alloc == (uint64_t)2 << 30);
    assert_true(facts.global_mem == (uint64_t)8 << 30);
    assert_int_equal(facts.cache, 3 * 1024 * 1024);
    assert_int_equal(facts.max_work_group, 256);
    assert_int_equal(facts.max_work_item_0, 0);
}

static void every_kind_has_a_word(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int kind;
    } rows[] = {
        {"device_kind=cpu", DEVICE_CPU},
        {"device_kind=gpu", DEVICE_GPU},
        {"device_kind=accelerator", DEVICE_ACCELERATOR},
        {"device_kind=other", DEVICE_OTHER},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct facts facts;
        assert_ok(cla_facts_parse(rows[i].text, &facts, &error), &error);
        assert_int_equal(facts.device_kind, rows[i].kind);
    }
}

static void wrong_lines_are_named(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "no_such_fact=1",         "local_memory=16K",    "local_mem",           "local_mem=",
        "local_mem=16Q",          "local_mem=16KB",      "local_mem=-1",        "local_mem=1.5K",
        "max_work_group=K",       "max_work_group=16K",  "max_work_group=0x10", "max_work_group=99999999999999999999",
        "max_alloc=99999999999G", "device_kind=toaster", "max_work_group= 7 7",
    };
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        struct facts facts;
        clattn_error_init(&error);
        if (cla_facts_parse(lines[i], &facts, &error) != CLATTN_INVALID_ARGUMENT) {
            fail_msg("accepted: %s", lines[i]);
        }
        assert_true(error.message[0] != '\0');
        assert_true(error.field[0] != '\0');
    }
}

static void the_line_of_an_unknown_name_is_told(void **state)
{
    (void)state;
    struct facts facts;
    assert_int_equal(cla_facts_parse("fma=1\n# note\nflux_capacitor=1\n", &facts, &error), CLATTN_INVALID_ARGUMENT);
    assert_contains(error.message, "3");
    assert_contains(error.message, "flux_capacitor");
}

static void a_string_that_is_too_long_is_refused(void **state)
{
    (void)state;
    char line[CLA_FACT_STRING_SIZE + 64];
    memset(line, 'x', sizeof line);
    memcpy(line, "device_name=", 12);
    line[12 + CLA_FACT_STRING_SIZE - 1] = '\0';
    struct facts facts;
    assert_ok(cla_facts_parse(line, &facts, &error), &error);
    assert_int_equal(strlen(facts.device_name), CLA_FACT_STRING_SIZE - 1);
    line[12 + CLA_FACT_STRING_SIZE - 1] = 'x';
    line[12 + CLA_FACT_STRING_SIZE] = '\0';
    assert_int_equal(cla_facts_parse(line, &facts, &error), CLATTN_INVALID_ARGUMENT);
}

static void overrides_change_what_they_name(void **state)
{
    (void)state;
    struct facts facts, before;
    fill(&facts);
    facts.local_mem = facts.local_mem_static = 65536;
    strcpy(facts.extensions, "cl_khr_fp64 cl_khr_fp16 cl_khr_subgroups");
    before = facts;
    assert_ok(cla_facts_override(&facts, NULL, &error), &error);
    assert_ok(cla_facts_override(&facts, "", &error), &error);
    assert_memory_equal(&facts, &before, sizeof facts);

    assert_ok(cla_facts_override(
                  &facts, "local_mem=16K,max_work_group=64, device_kind=cpu,extensions-=cl_khr_fp16,device_name=x y", &error),
              &error);
    before.local_mem = before.local_mem_static = 16384;
    before.max_work_group = 64;
    before.device_kind = DEVICE_CPU;
    strcpy(before.device_name, "x y");
    assert_string_equal(facts.device_name, "x y");
    assert_false(cla_facts_has_extension(&facts, "cl_khr_fp16"));
    assert_true(cla_facts_has_extension(&facts, "cl_khr_fp64"));
    assert_true(cla_facts_has_extension(&facts, "cl_khr_subgroups"));
    assert_int_equal(facts.local_mem, before.local_mem);
    assert_int_equal(facts.local_mem_static, before.local_mem_static);
    assert_int_equal(facts.max_work_group, before.max_work_group);
    assert_int_equal(facts.device_kind, before.device_kind);
    assert_int_equal(facts.compute_units, before.compute_units);
}

static void later_overrides_win(void **state)
{
    (void)state;
    struct facts facts;
    memset(&facts, 0, sizeof facts);
    assert_ok(cla_facts_override(&facts, "local_mem=16K,local_mem=32K", &error), &error);
    assert_int_equal(facts.local_mem, 32768);
}

/* On NVIDIA a kernel may declare up to 226 KiB while the device reports 48: only a lower limit reduces the other. */
static void static_local_memory_only_shrinks_with_local_memory(void **state)
{
    (void)state;
    struct facts facts;
    memset(&facts, 0, sizeof facts);
    facts.local_mem = 48 * 1024;
    facts.local_mem_static = 226 * 1024;
    assert_ok(cla_facts_override(&facts, "local_mem=32K", &error), &error);
    assert_int_equal(facts.local_mem_static, 32 * 1024);
    assert_ok(cla_facts_override(&facts, "local_mem=64K", &error), &error);
    assert_int_equal(facts.local_mem_static, 32 * 1024);
    assert_ok(cla_facts_override(&facts, "local_mem_static=96K", &error), &error);
    assert_int_equal(facts.local_mem, 64 * 1024);
    assert_int_equal(facts.local_mem_static, 96 * 1024);
}

static void extensions_come_and_go(void **state)
{
    (void)state;
    struct facts facts;
    memset(&facts, 0, sizeof facts);
    assert_ok(cla_facts_override(&facts, "extensions+=cl_a,extensions+=cl_b,extensions+=cl_a,extensions-=cl_none", &error),
              &error);
    assert_string_equal(facts.extensions, "cl_a cl_b");
    assert_ok(cla_facts_override(&facts, "extensions-=cl_a", &error), &error);
    assert_true(cla_facts_has_extension(&facts, "cl_b"));
    assert_false(cla_facts_has_extension(&facts, "cl_a"));
    assert_ok(cla_facts_override(&facts, "extensions=", &error), &error);
    assert_string_equal(facts.extensions, "");
}

static void wrong_overrides_name_the_item(void **state)
{
    (void)state;
    static const struct {
        const char *text, *item;
    } rows[] = {
        {"max_work_group=64,local_mm=16K", "local_mm=16K"},
        {"local_mem", "local_mem"},
        {"local_mem=lots", "local_mem=lots"},
        {"local_mem+=16K", "local_mem+=16K"},
        {"=3", "=3"},
        {"max_work_group=1e3", "max_work_group=1e3"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct facts facts;
        memset(&facts, 0, sizeof facts);
        clattn_error_init(&error);
        if (cla_facts_override(&facts, rows[i].text, &error) != CLATTN_INVALID_ARGUMENT) {
            fail_msg("accepted: %s", rows[i].text);
        }
        assert_contains(error.message, rows[i].item);
    }
}

static void extensions_are_whole_words(void **state)
{
    (void)state;
    struct facts facts;
    memset(&facts, 0, sizeof facts);
    strcpy(facts.extensions, "cl_khr_fp16_x  my_cl_khr_fp16 cl_khr_fp64");
    assert_false(cla_facts_has_extension(&facts, "cl_khr_fp16"));
    assert_false(cla_facts_has_extension(&facts, "cl_khr"));
    assert_false(cla_facts_has_extension(&facts, ""));
    assert_true(cla_facts_has_extension(&facts, "cl_khr_fp64"));
    assert_true(cla_facts_has_extension(&facts, "cl_khr_fp16_x"));
    assert_true(cla_facts_has_extension(&facts, "my_cl_khr_fp16"));
    facts.extensions[0] = '\0';
    assert_false(cla_facts_has_extension(&facts, "cl_khr_fp64"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(printed_facts_read_back, clear_error),
        cmocka_unit_test_setup(zeros_are_printed_too, clear_error),
        cmocka_unit_test_setup(comments_blanks_and_units_are_read, clear_error),
        cmocka_unit_test_setup(every_kind_has_a_word, clear_error),
        cmocka_unit_test_setup(wrong_lines_are_named, clear_error),
        cmocka_unit_test_setup(the_line_of_an_unknown_name_is_told, clear_error),
        cmocka_unit_test_setup(a_string_that_is_too_long_is_refused, clear_error),
        cmocka_unit_test_setup(overrides_change_what_they_name, clear_error),
        cmocka_unit_test_setup(later_overrides_win, clear_error),
        cmocka_unit_test_setup(static_local_memory_only_shrinks_with_local_memory, clear_error),
        cmocka_unit_test_setup(extensions_come_and_go, clear_error),
        cmocka_unit_test_setup(wrong_overrides_name_the_item, clear_error),
        cmocka_unit_test_setup(extensions_are_whole_words, clear_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
