/* SPDX-License-Identifier: Apache-2.0
 * `clattn check --json`. */
#include "check_report.h"

#include "clattn/clattn.h"

#include <cjson/cJSON.h>

#include <stdlib.h>

struct check_report {
    cJSON *root, *engines;
    cJSON *engine, *groups, *failures; /* the current ones */
};

struct check_report *check_report_create(const char *device, const char *trials, uint64_t seed)
{
    struct check_report *report = calloc(1, sizeof *report);
    if (report == NULL)
        return NULL;
    report->root = cJSON_CreateObject();
    cJSON_AddStringToObject(report->root, "clattn", clattn_version());
    cJSON_AddStringToObject(report->root, "device", device);
    cJSON_AddStringToObject(report->root, "trials", trials);
    cJSON_AddNumberToObject(report->root, "seed", (double)seed);
    report->engines = cJSON_AddArrayToObject(report->root, "engines");
    return report;
}

void check_report_destroy(struct check_report *report)
{
    if (report != NULL)
        cJSON_Delete(report->root);
    free(report);
}

static void add_tally(cJSON *object, const struct tally *tally)
{
    cJSON_AddNumberToObject(object, "passed", (double)tally->passed);
    cJSON_AddNumberToObject(object, "failed", (double)tally->failed);
    cJSON_AddNumberToObject(object, "not_served", (double)tally->declined);
    if (tally->worst.share > 0.0) {
        cJSON *worst = cJSON_AddObjectToObject(object, "worst");
        cJSON_AddStringToObject(worst, "of", tally->worst.what);
        cJSON_AddNumberToObject(worst, "error", tally->worst.error);
        cJSON_AddNumberToObject(worst, "share_of_allowed", tally->worst.share);
    }
}

void check_report_engine(struct check_report *report, const char *engine)
{
    if (report == NULL)
        return;
    report->engine = cJSON_CreateObject();
    cJSON_AddItemToArray(report->engines, report->engine);
    cJSON_AddStringToObject(report->engine, "engine", engine);
    report->groups = cJSON_AddArrayToObject(report->engine, "groups");
    report->failures = cJSON_AddArrayToObject(report->engine, "failures");
}

void check_report_group(struct check_report *report, const char *group, const struct tally *tally, double seconds)
{
    if (report == NULL)
        return;
    cJSON *object = cJSON_CreateObject();
    cJSON_AddItemToArray(report->groups, object);
    cJSON_AddStringToObject(object, "group", group);
    add_tally(object, tally);
    cJSON_AddNumberToObject(object, "seconds", seconds);
}

void check_report_failure(struct check_report *report, const char *shape, const char *message)
{
    if (report == NULL)
        return;
    cJSON *object = cJSON_CreateObject();
    cJSON_AddItemToArray(report->failures, object);
    cJSON_AddStringToObject(object, "shape", shape);
    cJSON_AddStringToObject(object, "message", message);
}

void check_report_declined(struct check_report *report, size_t count, const char *why)
{
    if (report == NULL)
        return;
    cJSON_AddNumberToObject(report->engine, "not_served", (double)count);
    cJSON_AddStringToObject(report->engine, "why", why);
}

bool check_report_write(struct check_report *report, const struct tally *total, size_t builds, double seconds, bool interrupted,
                        FILE *out)
{
    if (report == NULL)
        return true;
    add_tally(report->root, total);
    cJSON_AddNumberToObject(report->root, "programs_built", (double)builds);
    cJSON_AddNumberToObject(report->root, "seconds", seconds);
    cJSON_AddBoolToObject(report->root, "interrupted", interrupted);
    char *text = cJSON_Print(report->root);
    if (text != NULL)
        fprintf(out, "%s\n", text); /* a failure is remembered by the file and reported at its commit */
    const bool right = text != NULL;
    free(text);
    return right;
}
