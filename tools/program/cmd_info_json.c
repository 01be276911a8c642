/* SPDX-License-Identifier: Apache-2.0
 * `clattn info --json`. */
#define CLATTN_EXPERIMENTAL
#include "survey.h"

#include <cjson/cJSON.h>

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool ends_in(const char *text, size_t length, const char *end)
{
    const size_t size = strlen(end);
    return length >= size && memcmp(text + length - size, end, size) == 0;
}

/* Facts whose value is a number are numbers here (JSON readers keep 53 bits, more than any limit has); names and versions stay
 * text even when they are all digits. */
static bool is_number(const char *name, const char *value)
{
    const size_t length = strcspn(name, "=");
    if (ends_in(name, length, "_name") || ends_in(name, length, "_version") || ends_in(name, length, "_vendor"))
        return false;
    size_t digits = strspn(value, "0123456789");
    if (digits > 0 && strchr("KMG", value[digits]) != NULL && value[digits] != '\0')
        digits++;
    return value[0] != '\0' && value[digits] == '\0';
}

static void add_fact(cJSON *object, const char *line, size_t length)
{
    char *text = malloc(length + 1);
    if (text == NULL)
        return;
    memcpy(text, line, length);
    text[length] = '\0';
    char *equals = strchr(text, '=');
    if (equals != NULL && text[0] != '#') {
        const bool numeric = is_number(text, equals + 1);
        *equals = numeric ? '=' : '\0';
        if (numeric) {
            char name[64];
            snprintf(name, sizeof name, "%.*s", (int)(equals - text), text);
            cJSON_AddNumberToObject(object, name, (double)fact_number(text, name));
        } else {
            cJSON_AddStringToObject(object, text, equals + 1);
        }
    }
    free(text);
}

static cJSON *facts_object(const char *facts)
{
    cJSON *object = cJSON_CreateObject();
    while (facts != NULL && *facts != '\0') {
        const size_t length = strcspn(facts, "\n");
        add_fact(object, facts, length);
        facts += length;
        facts += *facts == '\n';
    }
    return object;
}

static void add_answer(cJSON *object, const struct survey *survey, const struct survey_answer *answer)
{
    cJSON *entry = cJSON_AddObjectToObject(object, "for");
    cJSON_AddStringToObject(entry, "shape", survey->shape);
    cJSON_AddStringToObject(entry, "status", clattn_status_name(answer->status));
    if (answer->status == CLATTN_SUCCESS) {
        cJSON_AddStringToObject(entry, "engine", answer->engine);
        cJSON_AddNumberToObject(entry, "workspace", (double)answer->workspace);
    }
    if (answer->text != NULL)
        cJSON_AddStringToObject(entry, answer->status == CLATTN_SUCCESS ? "plan" : "reason", answer->text);
    if (answer->others != NULL)
        cJSON_AddStringToObject(entry, "choice", answer->others);
}

static void add_device(cJSON *devices, const struct survey *survey, const struct survey_device *device)
{
    cJSON *object = cJSON_CreateObject();
    cJSON_AddItemToArray(devices, object);
    char selector[32];
    snprintf(selector, sizeof selector, "%d:%d", device->platform, device->index);
    cJSON_AddStringToObject(object, "selector", selector);
    cJSON_AddBoolToObject(object, "default", device->is_default);
    if (device->facts == NULL) {
        cJSON_AddNullToObject(object, "facts");
        cJSON_AddStringToObject(object, "error", device->error.message);
    } else {
        cJSON_AddItemToObject(object, "facts", facts_object(device->facts));
        cJSON *list = cJSON_AddArrayToObject(object, "quirks");
        for (size_t i = 0; clattn_device_quirk(device->facts, i) != NULL; i++)
            cJSON_AddItemToArray(list, cJSON_CreateString(clattn_device_quirk(device->facts, i)));
    }
    if (device->answer.asked)
        add_answer(object, survey, &device->answer);
}

static void add_platform(cJSON *platforms, const struct survey *survey, size_t p)
{
    cJSON *object = cJSON_CreateObject();
    cJSON_AddItemToArray(platforms, object);
    cJSON_AddNumberToObject(object, "index", (double)p);
    cJSON_AddStringToObject(object, "name", survey->platforms[p].name);
    cJSON_AddStringToObject(object, "version", survey->platforms[p].version);
    cJSON *devices = cJSON_AddArrayToObject(object, "devices");
    for (size_t d = 0; d < survey->device_count; d++)
        if (survey->devices[d].platform == (int)p)
            add_device(devices, survey, &survey->devices[d]);
}

int survey_print_json(const struct survey *survey)
{
    cJSON *root = cJSON_CreateObject();
    cJSON_AddStringToObject(root, "clattn", clattn_version());
    cJSON_AddStringToObject(root, "system", survey->system);
    cJSON_AddStringToObject(root, "loader", survey->loader);
    cJSON *platforms = cJSON_AddArrayToObject(root, "platforms");
    for (size_t p = 0; p < survey->platform_count; p++)
        add_platform(platforms, survey, p);
    char *text = cJSON_Print(root);
    cJSON_Delete(root);
    if (text == NULL)
        return cli_fail("info", CLI_FAILED, "--json", "out of memory");
    puts(text);
    free(text);
    return CLI_OK;
}
