/* SPDX-License-Identifier: Apache-2.0
 * tools/base/cli.c: how options are read. Output is tested with the program itself, in tests/tools. */
#include "support.h"

#include "cli.h"

struct values {
    bool flag;
    const char *text;
    int64_t integer;
    double real;
    struct cli_list list;
};

static bool parse(struct values *values, int *code, int argc, char **argv)
{
    const struct cli_option options[] = {
        {"--flag", NULL, CLI_FLAG, &values->flag, "a flag"},     {"--text", "T", CLI_TEXT, &values->text, "a text"},
        {"--int", "N", CLI_INTEGER, &values->integer, "number"}, {"--real", "X", CLI_REAL, &values->real, "number"},
        {"--item", "I", CLI_LIST, &values->list, "many"},
    };
    const struct cli_command command = {"test", "[OPTION]...", "Nothing.", options, COUNT_OF(options), ""};
    memset(values, 0, sizeof *values);
    return cli_parse(&command, argc, argv, code);
}

#define PARSE(...) parse(&values, &code, (int)COUNT_OF(((char *[]){"test", __VA_ARGS__})), (char *[]){"test", __VA_ARGS__})

static void options_are_read_in_both_forms(void **state)
{
    struct values values;
    int code;
    (void)state;
    assert_true(PARSE("--flag", "--text", "a", "--int=-7", "--real", "1e-3", "--item", "x", "--item=y=z"));
    assert_true(values.flag);
    assert_string_equal(values.text, "a");
    assert_int_equal(values.integer, -7);
    assert_true(values.real == 1e-3);
    assert_int_equal(values.list.count, 2);
    assert_string_equal(values.list.items[1], "y=z");
    assert_true(PARSE("--text="));
    assert_string_equal(values.text, "");
    assert_true(PARSE("--int", "-7")); /* a value may begin with a dash */
    assert_int_equal(values.integer, -7);
}

static void malformed_options_are_refused(void **state)
{
    struct values values;
    int code;
    (void)state;
    assert_false(PARSE("--tex", "a"));
    assert_int_equal(code, CLI_USAGE);
    assert_false(PARSE("--text"));
    assert_int_equal(code, CLI_USAGE);
    assert_false(PARSE("--int", "7x"));
    assert_int_equal(code, CLI_USAGE);
    assert_false(PARSE("--int", "99999999999999999999"));
    assert_int_equal(code, CLI_USAGE);
    assert_false(PARSE("--real", ""));
    assert_int_equal(code, CLI_USAGE);
    assert_false(PARSE("--flag=1"));
    assert_int_equal(code, CLI_USAGE);
    assert_false(PARSE("word"));
    assert_int_equal(code, CLI_USAGE);
}

static void lists_are_bounded(void **state)
{
    struct values values;
    int code;
    char word[] = "--item=x", name[] = "test";
    char *argv[CLI_LIST_MAX + 2] = {name};
    (void)state;
    for (int i = 1; i < CLI_LIST_MAX + 2; i++)
        argv[i] = word;
    assert_true(parse(&values, &code, CLI_LIST_MAX + 1, argv));
    assert_int_equal(values.list.count, CLI_LIST_MAX);
    assert_false(parse(&values, &code, CLI_LIST_MAX + 2, argv));
    assert_int_equal(code, CLI_USAGE);
}

static void only_similar_words_are_suggested(void **state)
{
    static const char *const names[] = {"info", "run", "check"};
    (void)state;
    assert_string_equal(cli_nearest("inof", names, 3), "info");
    assert_string_equal(cli_nearest("chekc", names, 3), "check");
    assert_string_equal(cli_nearest("ru", names, 3), "run");
    assert_null(cli_nearest("benchmark", names, 3));
    assert_null(cli_nearest("", names, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_are_read_in_both_forms),
        cmocka_unit_test(malformed_options_are_refused),
        cmocka_unit_test(lists_are_bounded),
        cmocka_unit_test(only_similar_words_are_suggested),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
