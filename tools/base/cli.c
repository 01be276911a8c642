/* SPDX-License-Identifier: Apache-2.0 */
#include "cli.h"

#include "system.h"

#include <errno.h>
#include <stdarg.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char exit_codes[] = "Exit codes:\n"
                                 "  0  right\n"
                                 "  1  a check failed\n"
                                 "  2  bad usage: an argument or a shape is not valid\n"
                                 "  3  no OpenCL platform or device\n"
                                 "  4  an OpenCL call failed, or a file could not be read or written\n"
                                 "  130  ended by Ctrl-C\n";

/* Bytes of the UTF-8 character at `text` if a terminal may show it; 0: a control character, or no character. After the byte C2,
 * 80 to 9F are control characters too, and terminals without UTF-8 treat these bytes alone as such. */
static size_t printable(const unsigned char *text)
{
    const unsigned char lead = text[0];
    if (lead < 0x80)
        return (lead >= 0x20 && lead != 0x7f) || lead == '\n' || lead == '\t';
    const size_t length = lead >= 0xf0 && lead < 0xf5 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc2 ? 2 : 0;
    if (lead >= 0xf5 || length == 0 || (lead == 0xc2 && text[1] < 0xa0))
        return 0;
    for (size_t i = 1; i < length; i++)
        if ((text[i] & 0xc0) != 0x80)
            return 0;
    return length;
}

char *cli_clean(char *text)
{
    for (char *at = text; *at != '\0';) {
        const size_t length = printable((const unsigned char *)at);
        if (length == 0)
            *at = '?';
        at += length > 0 ? length : 1;
    }
    return text;
}

int cli_fail(const char *command, int code, const char *argument, const char *format, ...)
{
    char text[8192]; /* room for a compiler's log */
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    fflush(stdout);
    fprintf(stderr, "clattn%s%s: ", command ? " " : "", command ? command : "");
    if (argument != NULL) {
        char name[256];
        snprintf(name, sizeof name, "%s", argument);
        fprintf(stderr, "%s: ", cli_clean(name));
    }
    fprintf(stderr, "%s\n", cli_clean(text));
    return code;
}

static int exit_of_status(clattn_status status)
{
    switch (status) {
    case CLATTN_SUCCESS:
        return CLI_OK;
    case CLATTN_INVALID_ARGUMENT:
    case CLATTN_UNSUPPORTED:
        return CLI_USAGE;
    case CLATTN_NO_PLATFORM:
    case CLATTN_NO_DEVICE:
        return CLI_NO_DEVICE;
    default:
        return CLI_FAILED;
    }
}

int cli_fail_library(const char *command, const clattn_error *error)
{
    const char *text = error->message[0] ? error->message : clattn_status_text(error->status);
    return cli_fail(command, exit_of_status(error->status), error->field[0] ? error->field : NULL, "%s", text);
}

int cli_fail_cl(const char *command, const char *call, cl_int code)
{
    return cli_fail(command, CLI_FAILED, call, "failed with OpenCL code %d; `clattn info` shows the devices and their limits",
                    (int)code);
}

/* ------------------------------------------------------------------------------------------------------------- outputs */

int cli_open_output(struct output *output, const char *command, const char *option, const char *path)
{
    char why[OUTPUT_WHY_SIZE];
    return output_open(output, path, why) ? CLI_OK : cli_fail(command, CLI_FAILED, option, "%s: %s", path, why);
}

int cli_commit_output(struct output *output, const char *command, const char *option, const char *path)
{
    char why[OUTPUT_WHY_SIZE];
    return output_commit(output, why) ? CLI_OK : cli_fail(command, CLI_FAILED, option, "%s: %s", path, why);
}

int cli_refuse_same(const char *command, const char *option, const char *path, const char *other_option, const char *other_path)
{
    if (path == NULL || other_path == NULL || !output_is_same(path, other_path))
        return CLI_OK;
    return cli_fail(command, CLI_USAGE, option, "%s is the file of %s too; name another", path, other_option);
}

/* ------------------------------------------------------------------------------------------------------------- numbers */

bool cli_read_integer(const char *text, int64_t *value)
{
    char *end;
    errno = 0;
    const long long number = strtoll(text, &end, 10);
    if (end == text || *end != '\0' || errno != 0)
        return false;
    *value = number;
    return true;
}

/* The tools never call setlocale, so strtod reads '.' here. */
bool cli_read_real(const char *text, double *value)
{
    char *end;
    const double number = strtod(text, &end);
    if (end == text || *end != '\0' || isnan(number))
        return false;
    *value = number;
    return true;
}

/* ----------------------------------------------------------------------------------------------------------- did you mean */

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

/* Edit distance, words over 63 letters cut. */
static size_t distance(const char *a, const char *b)
{
    const size_t na = least(strlen(a), 63), nb = least(strlen(b), 63);
    size_t row[64];
    for (size_t j = 0; j <= nb; j++)
        row[j] = j;
    for (size_t i = 1; i <= na; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= nb; j++) {
            const size_t above = row[j];
            row[j] = least(least(above, row[j - 1]) + 1, diagonal + (a[i - 1] != b[j - 1]));
            diagonal = above;
        }
    }
    return row[nb];
}

const char *cli_nearest(const char *word, const char *const *names, size_t count)
{
    const char *best = NULL;
    size_t best_distance = strlen(word) / 3 + 2;
    for (size_t i = 0; i < count; i++) {
        const size_t d = distance(word, names[i]);
        if (d < best_distance) {
            best = names[i];
            best_distance = d;
        }
    }
    return best;
}

/* -------------------------------------------------------------------------------------------------------------- parsing */

static void print_option(const char *name, const char *value, const char *help)
{
    char left[64];
    snprintf(left, sizeof left, "%s%s%s", name, value ? " " : "", value ? value : "");
    const char *line = help;
    printf("  %-22s", left);
    if (strlen(left) > 22)
        printf("\n  %-22s", "");
    for (;;) {
        const char *end = strchr(line, '\n');
        const size_t length = end ? (size_t)(end - line) : strlen(line);
        printf("  %.*s\n", (int)length, line);
        if (end == NULL)
            break;
        line = end + 1;
        printf("  %-22s", "");
    }
}

static void print_help(const struct cli_command *command)
{
    const int indent = (int)strlen("Usage: clattn ") + (int)strlen(command->name) + 1;
    printf("Usage: clattn %s ", command->name);
    for (const char *c = command->synopsis; *c != '\0'; c++) {
        putchar(*c);
        if (*c == '\n')
            printf("%*s", indent, "");
    }
    printf("\n\n%s\n\nOptions:\n", command->about);
    for (size_t i = 0; i < command->option_count; i++) {
        const struct cli_option *o = &command->options[i];
        print_option(o->name, o->value, o->help);
    }
    print_option("--help", NULL, "this text");
    printf("\nExamples:\n%s\n%s", command->examples, exit_codes);
}

static const struct cli_option *find_option(const struct cli_command *command, const char *name, size_t length)
{
    for (size_t i = 0; i < command->option_count; i++) {
        const char *known = command->options[i].name;
        if (strlen(known) == length && memcmp(known, name, length) == 0)
            return &command->options[i];
    }
    return NULL;
}

static int unknown_option(const struct cli_command *command, const char *word)
{
    const char *names[64];
    size_t count = 0;
    for (; count < command->option_count && count < 63; count++)
        names[count] = command->options[count].name;
    names[count++] = "--help";
    const char *near = word[0] == '-' ? cli_nearest(word, names, count) : NULL;
    const char *what = word[0] == '-' ? "unknown option" : "unexpected argument";
    if (near != NULL)
        return cli_fail(command->name, CLI_USAGE, word, "%s; did you mean %s?", what, near);
    return cli_fail(command->name, CLI_USAGE, word, "%s; `clattn %s --help` lists the options", what, command->name);
}

static int store(const struct cli_command *command, const struct cli_option *option, const char *value)
{
    struct cli_list *list = option->target;
    switch (option->kind) {
    case CLI_FLAG:
        *(bool *)option->target = true;
        return CLI_OK;
    case CLI_TEXT:
    case CLI_PAIR:
        *(const char **)option->target = value;
        return CLI_OK;
    case CLI_INTEGER:
        if (cli_read_integer(value, option->target))
            return CLI_OK;
        return cli_fail(command->name, CLI_USAGE, option->name, "'%s' is not a whole number", value);
    case CLI_REAL:
        if (cli_read_real(value, option->target))
            return CLI_OK;
        return cli_fail(command->name, CLI_USAGE, option->name, "'%s' is not a number; write it as in 0.125 or 1e-3", value);
    case CLI_LIST:
        if (list->count == CLI_LIST_MAX)
            return cli_fail(command->name, CLI_USAGE, option->name, "given more than %d times", CLI_LIST_MAX);
        list->items[list->count++] = value;
        return CLI_OK;
    }
    return CLI_OK;
}

static int needs_value(const struct cli_command *command, const struct cli_option *option)
{
    return cli_fail(command->name, CLI_USAGE, option->name, "needs %s: %s %s",
                    option->kind == CLI_PAIR ? "two values" : "a value", option->name, option->value);
}

/* Reads one option and its value, which may be the next word; *i is moved past them. */
static int parse_one(const struct cli_command *command, int argc, char **argv, int *i)
{
    const char *word = argv[*i];
    const char *equals = strchr(word, '=');
    const size_t length = equals ? (size_t)(equals - word) : strlen(word);
    const struct cli_option *option = find_option(command, word, length);
    if (option == NULL)
        return unknown_option(command, word);
    if (option->kind == CLI_FLAG && equals != NULL)
        return cli_fail(command->name, CLI_USAGE, option->name, "takes no value; leave out '%s'", equals);
    if (option->kind == CLI_FLAG)
        return store(command, option, NULL);
    if (equals == NULL && *i + 1 >= argc)
        return needs_value(command, option);
    const int code = store(command, option, equals ? equals + 1 : argv[++*i]);
    if (code != CLI_OK || option->kind != CLI_PAIR)
        return code;
    if (*i + 1 >= argc)
        return needs_value(command, option);
    ((const char **)option->target)[1] = argv[++*i];
    return CLI_OK;
}

bool cli_parse(const struct cli_command *command, int argc, char **argv, int *code)
{
    *code = CLI_OK;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            print_help(command);
            return false;
        }
    }
    for (int i = 1; i < argc; i++) {
        *code = parse_one(command, argc, argv, &i);
        if (*code != CLI_OK)
            return false;
    }
    return true;
}

/* ------------------------------------------------------------------------------------------------------------- terminal */

bool cli_is_terminal(int file_descriptor)
{
    const char *term = getenv("TERM");
    return system_is_terminal(file_descriptor) && !(term != NULL && strcmp(term, "dumb") == 0);
}

bool cli_wants_colour(int file_descriptor)
{
    const char *no = getenv("NO_COLOR");
    return cli_is_terminal(file_descriptor) && (no == NULL || no[0] == '\0');
}

void cli_progress(const char *format, ...)
{
    char line[256];
    va_list list;
    const int columns = system_columns(2), width = columns < (int)sizeof line ? columns - 1 : (int)sizeof line - 1;
    va_start(list, format);
    vsnprintf(line, sizeof line, format, list);
    va_end(list);
    fprintf(stderr, "\r%-*.*s", width, width, cli_clean(line));
}

void cli_clear_progress(void)
{
    cli_progress("%s", "");
    fputc('\r', stderr);
}
