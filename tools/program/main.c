/* SPDX-License-Identifier: Apache-2.0
 * The tools binary: one subcommand a file, one row a subcommand. */
#include "cli.h"
#include "system.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *about;
} commands[] = {
    {"info", cmd_info, "platforms, devices, limits, and what would serve a shape"},
    {"run", cmd_run, "attention on .npy files, or the demo"},
    {"check", cmd_check, "the test matrix on your own device"},
    {"bench", cmd_bench, "engine speed, compared with the unfused baseline and the device's peak"},
    {"source", cmd_source, "the kernel source and build options for a shape"},
};

enum { COMMAND_COUNT = sizeof commands / sizeof commands[0] };

static void print_usage(FILE *out)
{
    fprintf(out, "clattn %s: exact attention for any OpenCL device\n\nUsage: clattn COMMAND [OPTION]...\n\nCommands:\n",
            clattn_version());
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        fprintf(out, "  %-10s%s\n", commands[i].name, commands[i].about);
    fputs("\n`clattn COMMAND --help` shows the options, examples and exit codes of each; `clattn --version` the version.\n"
          "Start with `clattn info`, or `clattn run --demo`.\n",
          out);
}

static int unknown_command(const char *word)
{
    const char *names[COMMAND_COUNT];
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        names[i] = commands[i].name;
    const char *near = cli_nearest(word, names, COMMAND_COUNT);
    if (near != NULL)
        return cli_fail(NULL, CLI_USAGE, word, "no such command; did you mean `clattn %s`?", near);
    return cli_fail(NULL, CLI_USAGE, word, "no such command; `clattn help` lists them");
}

static int dispatch(int argc, char **argv)
{
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        if (strcmp(argv[0], commands[i].name) == 0)
            return commands[i].run(argc, argv);
    return unknown_command(argv[0]);
}

/* `clattn help run` is `clattn run --help`. */
static int help(int argc, char **argv)
{
    char flag[] = "--help";
    char *words[] = {argc > 1 ? argv[1] : NULL, flag, NULL};
    if (argc > 1)
        return dispatch(2, words);
    print_usage(stdout);
    return CLI_OK;
}

int main(int argc, char **argv)
{
    system_guard_streams();
    if (argc < 2) {
        print_usage(stderr);
        return CLI_USAGE;
    }
    int code;
    if (strcmp(argv[1], "--version") == 0) {
        printf("clattn %s\n", clattn_version());
        code = CLI_OK;
    } else if (strcmp(argv[1], "help") == 0 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        code = help(argc - 1, argv + 1);
    } else {
        code = dispatch(argc - 1, argv + 1);
    }
    if (fflush(stdout) != 0 || ferror(stdout))
        return cli_fail(NULL, CLI_FAILED, "standard output", "could not be written; is the disk full?");
    return code;
}
