/* SPDX-License-Identifier: Apache-2.0
 * clattn source: the kernel source that the library composes for a shape. */
#define CLATTN_EXPERIMENTAL
#include "session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Lines of `text` as one comment, which the text itself cannot end. */
static void print_comment(const char *text)
{
    while (*text != '\0') {
        const int length = (int)strcspn(text, "\n");
        printf("// %.*s\n", length, text);
        text += length;
        text += *text == '\n';
    }
}

static int print_plan(const clattn_plan *plan)
{
    char *description, *source;
    CLI_TEXT_OF(description, clattn_plan_describe(plan, buffer, size, needed));
    CLI_TEXT_OF(source, clattn_plan_source(plan, buffer, size, needed));
    const bool had_memory = description != NULL && source != NULL;
    if (had_memory) {
        print_comment(description);
        fputs(source, stdout);
    }
    free(description);
    free(source);
    return had_memory ? CLI_OK : cli_fail("source", CLI_FAILED, NULL, "out of memory");
}

static int print_source(const clattn_problem *problem, const char *device, const char *engine)
{
    struct session session;
    clattn_plan_options options;
    clattn_error error;
    clattn_plan *plan = NULL;
    int code = session_open(&session, "source", device);
    if (code != CLI_OK)
        return code;
    clattn_error_init(&error);
    clattn_plan_options_init(&options);
    options.at_bounds = true;
    options.engine = engine;
    if (clattn_plan_create(session.context, problem, &options, &plan, &error) == CLATTN_SUCCESS)
        code = print_plan(plan);
    else
        code = cli_fail_library("source", &error);
    clattn_plan_destroy(plan);
    session_close(&session);
    return code;
}

int cmd_source(int argc, char **argv)
{
    const char *shape = NULL, *device = NULL, *engine = NULL;
    clattn_problem problem;
    clattn_error error;
    int code;
    const struct cli_option options[] = {
        {"--shape", "\"SHAPE\"", CLI_TEXT, &shape, "what the kernels are for; types, head sizes and options decide"},
        {"--device", "SEL", CLI_TEXT, &device, "an index as `clattn info` lists it (0:1), gpu, cpu, or a part of a name"},
        {"--engine", "NAME", CLI_TEXT, &engine, "this one instead of the library's choice"},
    };
    const struct cli_command command = {
        .name = "source",
        .synopsis = "--shape \"SHAPE\" [--device SEL] [--engine NAME]",
        .about = "Prints the kernel source and build options with which a shape is computed on a device, with the choice as a\n"
                 "comment before it. The source is complete: an OpenCL compiler takes it as it is.",
        .options = options,
        .option_count = sizeof options / sizeof options[0],
        .examples = "  clattn source --shape \"h8 q1024 d64\" > attention.cl\n"
                    "  clattn source --shape \"h8 q1 k4096 d128 fp16\" --device gpu --engine simt\n",
    };
    if (!cli_parse(&command, argc, argv, &code))
        return code;
    if (shape == NULL)
        return cli_fail("source", CLI_USAGE, "--shape", "is missing; for example --shape \"h8 q1024 d64\"");
    clattn_error_init(&error);
    if (clattn_problem_parse(shape, &problem, &error) != CLATTN_SUCCESS)
        return cli_fail("source", CLI_USAGE, "--shape", "%s", error.message);
    return print_source(&problem, device, engine);
}
