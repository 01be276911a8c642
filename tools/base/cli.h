/* SPDX-License-Identifier: Apache-2.0
 * How every subcommand reads its options, prints its help and ends: one table of options a command. */
#ifndef CLATTN_TOOLS_CLI_H
#define CLATTN_TOOLS_CLI_H

#include "clattn/clattn.h"
#include "output.h"

#if defined(__MINGW32__)
#define CLI_PRINTF(text, first) __attribute__((format(gnu_printf, text, first)))
#elif defined(__GNUC__)
#define CLI_PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#define CLI_PRINTF(format, first)
#endif

/* Exit codes; every --help prints them. */
enum cli_exit {
    CLI_OK = 0,
    CLI_CHECK_FAILED = 1,
    CLI_USAGE = 2,
    CLI_NO_DEVICE = 3,
    CLI_FAILED = 4,        /* OpenCL or I/O */
    CLI_INTERRUPTED = 130, /* the shell's code for Ctrl-C */
};

enum cli_kind {
    CLI_FLAG,    /* bool */
    CLI_TEXT,    /* const char * */
    CLI_PAIR,    /* const char *[2]: two values */
    CLI_INTEGER, /* int64_t */
    CLI_REAL,    /* double */
    CLI_LIST,    /* struct cli_list: the option may be given more than once */
};

enum { CLI_LIST_MAX = 32 };

struct cli_list {
    const char *items[CLI_LIST_MAX];
    size_t count;
};

struct cli_option {
    const char *name;  /* with its dashes: "--device" */
    const char *value; /* the value's name in the help, such as "SEL"; NULL for a flag */
    enum cli_kind kind;
    void *target; /* unchanged when the option is not given */
    const char *help;
};

struct cli_command {
    const char *name;     /* "run"; prefixed "clattn " in messages */
    const char *synopsis; /* what follows the name in the usage line, such as "--q Q.npy ..."; '\n' continues it */
    const char *about;    /* one paragraph or more */
    const struct cli_option *options;
    size_t option_count;
    const char *examples; /* whole lines */
};

/* Reads argv[1..]; both "--name value" and "--name=value" are understood. There are no positional arguments.
 * True: go on. False: the command is over (help or an error was printed) and *code is its exit code. */
bool cli_parse(const struct cli_command *command, int argc, char **argv, int *code);

/* Makes text from a file, a driver or a command line safe for a terminal, in place: control characters, which could move the
 * cursor or change earlier output, become '?'. Line breaks stay. Returns `text`. */
char *cli_clean(char *text);

/* "clattn run: --q: text" on stderr; returns `code`. `argument` may be NULL. The text says how to correct the error. */
int cli_fail(const char *command, int code, const char *argument, const char *format, ...) CLI_PRINTF(4, 5);

/* The same for an error of the library, with the exit code that belongs to its status. */
int cli_fail_library(const char *command, const clattn_error *error);

/* The same for a failed OpenCL call. */
int cli_fail_cl(const char *command, const char *call, cl_int code);

/* output_open and output_commit; a failure's message names the option and the file. */
int cli_open_output(struct output *output, const char *command, const char *option, const char *path);
int cli_commit_output(struct output *output, const char *command, const char *option, const char *path);

/* Refuses two outputs of a command that are the same file, where both names are given. */
int cli_refuse_same(const char *command, const char *option, const char *path, const char *other_option,
                    const char *other_path);

/* The known name most similar to `word`, or NULL when none is similar: for "did you mean". */
const char *cli_nearest(const char *word, const char *const *names, size_t count);

/* A whole text to a number, with '.' in every locale. False: it is no number, or something follows it. */
bool cli_read_integer(const char *text, int64_t *value);
bool cli_read_real(const char *text, double *value);

/* Whether this is a terminal, and whether it may have colour: not with NO_COLOR in the environment, nor in a pipe. */
bool cli_is_terminal(int file_descriptor);
bool cli_wants_colour(int file_descriptor);

/* Shows one line of progress on standard error, cut to the terminal's width, instead of the previous one; clears it. */
void cli_progress(const char *format, ...) CLI_PRINTF(1, 2);
void cli_clear_progress(void);

/* The text that a function of the library's "size and needed" convention gives, from malloc; NULL when memory is out.
 *     text = CLI_TEXT_OF(clattn_plan_describe(plan, buffer, size, needed)); */
#define CLI_TEXT_OF(target, call)                                                                                              \
    do {                                                                                                                       \
        char *buffer = NULL;                                                                                                   \
        size_t size = 0, wanted = 0, *needed = &wanted;                                                                        \
        (target) = NULL;                                                                                                       \
        if ((call) != CLATTN_SUCCESS && wanted == 0)                                                                           \
            break;                                                                                                             \
        buffer = malloc(wanted + 1);                                                                                           \
        size = wanted + 1;                                                                                                     \
        if (buffer != NULL && (call) != CLATTN_SUCCESS) {                                                                      \
            free(buffer);                                                                                                      \
            buffer = NULL;                                                                                                     \
        }                                                                                                                      \
        (target) = buffer;                                                                                                     \
    } while (0)

int cmd_info(int argc, char **argv);
int cmd_run(int argc, char **argv);
int cmd_check(int argc, char **argv);
int cmd_bench(int argc, char **argv);
int cmd_source(int argc, char **argv);

#endif
