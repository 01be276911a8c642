/* SPDX-License-Identifier: Apache-2.0 */
#include "survey.h"

#include <stdio.h>
#include <stdlib.h>

/* One device, in the format of tests/devices and of CLATTN_DEVICE_OVERRIDE's names. */
static int print_facts(const struct survey *survey)
{
    for (size_t i = 0; i < survey->device_count; i++) {
        const struct survey_device *device = &survey->devices[i];
        if (!device->is_default && survey->device_count > 1)
            continue;
        if (device->facts == NULL)
            return cli_fail_library("info", &device->error);
        fputs(device->facts, stdout);
        return CLI_OK;
    }
    return cli_fail("info", CLI_NO_DEVICE, "--facts", "there is no device to describe; name one with --device");
}

int cmd_info(int argc, char **argv)
{
    bool json = false, facts = false;
    const char *device = NULL, *shape = NULL;
    int code;
    const struct cli_option options[] = {
        {"--device", "SEL", CLI_TEXT, &device,
         "only this one: an index as listed (0:1), gpu, cpu, or a part of a\nplatform's or device's name"},
        {"--for", "\"SHAPE\"", CLI_TEXT, &shape,
         "also: which engine and tiles serve this shape there, and why the\nothers do not (builds its kernels)"},
        {"--json", NULL, CLI_FLAG, &json, "everything as JSON"},
        {"--facts", NULL, CLI_FLAG, &facts,
         "only the facts of one device, name=value a line, as tests/devices keeps\nthem and CLATTN_DEVICE_OVERRIDE changes "
         "them"},
    };
    const struct cli_command command = {
        .name = "info",
        .synopsis = "[--json | --facts] [--device SEL] [--for \"SHAPE\"]",
        .about = "Lists OpenCL platforms and devices, the limits that clattn chooses by, and known quirks. Paste it into "
                 "reports.\n\n"
                 "A SHAPE is text such as \"b2 hq8 hkv2 q37 k53 d64 dv64 fp16 causal=bottom-right\".\n"
                 "Missing parts: b1, hq1, hkv as hq, k as q, dv as d, fp32.",
        .options = options,
        .option_count = sizeof options / sizeof options[0],
        .examples = "  clattn info\n"
                    "  clattn info --device gpu --for \"b1 hq32 hkv8 q1 k4096 d128 fp16\"\n"
                    "  clattn info --facts > my-device.facts\n",
    };
    if (!cli_parse(&command, argc, argv, &code))
        return code;
    if (json && facts)
        return cli_fail("info", CLI_USAGE, "--facts", "cannot be given together with --json; choose one");
    if (facts && shape != NULL)
        return cli_fail("info", CLI_USAGE, "--for", "cannot be given together with --facts; leave one out");
    clattn_problem problem;
    if (shape != NULL && (code = survey_read_shape(shape, &problem)) != CLI_OK) /* before a device is asked anything */
        return code;
    struct survey *survey = calloc(1, sizeof *survey);
    if (survey == NULL)
        return cli_fail("info", CLI_FAILED, NULL, "out of memory");
    code = survey_take(survey, device);
    if (code == CLI_OK && shape != NULL)
        code = survey_ask(survey, shape);
    if (code == CLI_OK && json)
        code = survey_print_json(survey);
    else if (code == CLI_OK && facts)
        code = print_facts(survey);
    else if (code == CLI_OK)
        survey_print(survey);
    survey_free(survey);
    free(survey);
    return code;
}
