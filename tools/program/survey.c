/* SPDX-License-Identifier: Apache-2.0 */
#define CLATTN_EXPERIMENTAL
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS /* clGetExtensionFunctionAddress: the loader's own has no platform */

#include "survey.h"

#include "session.h"
#include "system.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* -------------------------------------------------------------------------------------------------------- text of facts */

char *fact_of(const char *facts, const char *name, char *value, size_t size)
{
    const size_t name_length = strlen(name);
    value[0] = '\0';
    for (const char *line = facts; line != NULL && *line != '\0'; line = strchr(line, '\n'), line += line != NULL) {
        if (strncmp(line, name, name_length) != 0 || line[name_length] != '=')
            continue;
        const char *text = line + name_length + 1;
        const size_t length = strcspn(text, "\n");
        const size_t kept = length < size ? length : size - 1;
        memcpy(value, text, kept);
        value[kept] = '\0';
        break;
    }
    return value;
}

uint64_t fact_number(const char *facts, const char *name)
{
    char value[64];
    char *end;
    const unsigned long long number = strtoull(fact_of(facts, name, value, sizeof value), &end, 0);
    const int shift = *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0;
    return (uint64_t)number << shift;
}

/* ------------------------------------------------------------------------------------------------------------- machine */

/* Both common loaders report their name through this function, which no standard header declares. */
static void describe_loader(struct survey *survey)
{
    enum { LOADER_OPENCL = 1, LOADER_VERSION = 2, LOADER_NAME = 3, LOADER_VENDOR = 4 };
    typedef cl_int(CL_API_CALL * loader_info_fn)(cl_uint, size_t, void *, size_t *);
    union {
        void *object;
        loader_info_fn function;
    } info;
    char version[64] = "", name[64] = "", vendor[64] = "", opencl[64] = "";
    info.object = clGetExtensionFunctionAddress("clGetICDLoaderInfoOCLICD");
    snprintf(survey->loader, sizeof survey->loader, "n/a");
    if (info.object == NULL || info.function(LOADER_NAME, sizeof name, name, NULL) != CL_SUCCESS)
        return;
    (void)info.function(LOADER_VERSION, sizeof version, version, NULL);
    (void)info.function(LOADER_VENDOR, sizeof vendor, vendor, NULL);
    (void)info.function(LOADER_OPENCL, sizeof opencl, opencl, NULL);
    snprintf(survey->loader, sizeof survey->loader, "%s %s (%s), %s", name, version, vendor, opencl);
}

static void list_platforms(struct survey *survey)
{
    cl_uint count = 0;
    if (clGetPlatformIDs(0, NULL, &count) != CL_SUCCESS || count == 0)
        return;
    cl_platform_id *ids = calloc(count, sizeof *ids);
    survey->platforms = calloc(count, sizeof *survey->platforms);
    survey->out_of_memory = !ids || !survey->platforms;
    if (survey->out_of_memory || clGetPlatformIDs(count, ids, NULL) != CL_SUCCESS) {
        free(ids);
        return;
    }
    survey->platform_count = count;
    for (size_t i = 0; i < survey->platform_count; i++) {
        struct survey_platform *platform = &survey->platforms[i];
        platform->id = ids[i];
        if (clGetPlatformInfo(ids[i], CL_PLATFORM_NAME, sizeof platform->name, platform->name, NULL) != CL_SUCCESS)
            snprintf(platform->name, sizeof platform->name, "n/a");
        if (clGetPlatformInfo(ids[i], CL_PLATFORM_VERSION, sizeof platform->version, platform->version, NULL) != CL_SUCCESS)
            snprintf(platform->version, sizeof platform->version, "n/a");
        cli_clean(platform->name);
        cli_clean(platform->version);
    }
    free(ids);
}

static bool add_device(void *user, int platform_index, int device_index, cl_platform_id platform, cl_device_id id)
{
    struct survey *survey = user;
    struct survey_device *devices = realloc(survey->devices, (survey->device_count + 1) * sizeof *devices);
    if (devices == NULL) {
        survey->out_of_memory = true;
        return false;
    }
    survey->devices = devices;
    struct survey_device *device = &devices[survey->device_count++];
    memset(device, 0, sizeof *device);
    device->platform = platform_index;
    device->index = device_index;
    device->id = id;
    for (size_t i = 0; i < survey->platform_count; i++)
        survey->platforms[i].device_count += survey->platforms[i].id == platform;
    return true;
}

static void ask_facts(struct survey_device *device)
{
    clattn_error_init(&device->error);
    CLI_TEXT_OF(device->facts, clattn_device_facts(device->id, NULL, buffer, size, needed, &device->error));
    if (device->facts != NULL)
        cli_clean(device->facts);
}

static void keep_only(struct survey *survey, cl_device_id id)
{
    size_t kept = 0;
    for (size_t i = 0; i < survey->device_count; i++)
        if (survey->devices[i].id == id)
            survey->devices[kept++] = survey->devices[i];
    survey->device_count = kept;
}

int survey_take(struct survey *survey, const char *selector)
{
    clattn_error error;
    cl_device_id chosen;
    memset(survey, 0, sizeof *survey);
    clattn_error_init(&error);
    if (clattn_devices(add_device, survey, &error) != CLATTN_SUCCESS)
        return cli_fail_library("info", &error);
    survey->device_count = 0;
    list_platforms(survey);
    (void)clattn_devices(add_device, survey, NULL);
    if (survey->out_of_memory)
        return cli_fail("info", CLI_FAILED, "", "out of memory");
    if (clattn_device_find(selector, &chosen, &error) != CLATTN_SUCCESS)
        return cli_fail_library("info", &error);
    if (selector != NULL)
        keep_only(survey, chosen);
    for (size_t i = 0; i < survey->device_count; i++) {
        survey->devices[i].is_default = selector == NULL && survey->devices[i].id == chosen;
        ask_facts(&survey->devices[i]);
    }
    system_name(survey->system, sizeof survey->system);
    describe_loader(survey);
    return CLI_OK;
}

/* ------------------------------------------------------------------------------------------------------------ a shape */

static char *copy_text(const char *text)
{
    const size_t size = strlen(text) + 1;
    char *copy = malloc(size);
    return copy ? memcpy(copy, text, size) : NULL;
}

static void ask_plan(struct survey_answer *answer, clattn_context *context, const clattn_problem *problem)
{
    clattn_error error;
    clattn_plan_options options;
    clattn_plan *plan = NULL;
    clattn_error_init(&error);
    clattn_plan_options_init(&options);
    options.at_bounds = true;
    answer->status = clattn_plan_create(context, problem, &options, &plan, &error);
    if (answer->status == CLATTN_SUCCESS) {
        answer->engine = clattn_plan_engine(plan);
        answer->workspace = clattn_workspace_size(plan);
        CLI_TEXT_OF(answer->text, clattn_plan_describe(plan, buffer, size, needed));
    } else {
        answer->text = copy_text(error.message);
    }
    clattn_plan_destroy(plan);
}

static void ask_device(struct survey_device *device, const clattn_problem *problem)
{
    clattn_error error;
    clattn_context *context = NULL;
    struct survey_answer *answer = &device->answer;
    answer->asked = true;
    clattn_error_init(&error);
    answer->status = clattn_context_create(NULL, device->id, NULL, &context, &error);
    if (answer->status == CLATTN_SUCCESS)
        ask_plan(answer, context, problem);
    else
        answer->text = copy_text(error.message);
    clattn_context_destroy(context);
    if (device->facts != NULL)
        CLI_TEXT_OF(answer->others, clattn_explain(device->facts, problem, NULL, buffer, size, needed, &error));
}

int survey_read_shape(const char *shape, clattn_problem *problem)
{
    clattn_error error;
    clattn_error_init(&error);
    if (clattn_problem_parse(shape, problem, &error) == CLATTN_SUCCESS && session_problem_is_valid(problem, &error))
        return CLI_OK;
    return cli_fail("info", CLI_USAGE, "--for", "%s; write it as in \"b2 hq8 hkv2 q37 k53 d64 fp16 causal=bottom-right\"",
                    error.message);
}

int survey_ask(struct survey *survey, const char *shape)
{
    clattn_problem problem;
    const int code = survey_read_shape(shape, &problem);
    if (code != CLI_OK)
        return code;
    survey->shape = shape;
    for (size_t i = 0; i < survey->device_count; i++)
        ask_device(&survey->devices[i], &problem);
    return CLI_OK;
}

void survey_free(struct survey *survey)
{
    for (size_t i = 0; i < survey->device_count; i++) {
        free(survey->devices[i].facts);
        free(survey->devices[i].answer.text);
        free(survey->devices[i].answer.others);
    }
    free(survey->devices);
    free(survey->platforms);
}
