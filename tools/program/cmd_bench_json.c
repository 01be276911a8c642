/* SPDX-License-Identifier: Apache-2.0
 * `clattn bench --json`. */
#include "bench_report.h"

#include <cjson/cJSON.h>

#include <stdio.h>
#include <stdlib.h>

static void add_text(cJSON *object, const char *name, cl_device_id device, cl_device_info what)
{
    char text[512] = "";
    if (clGetDeviceInfo(device, what, sizeof text, text, NULL) == CL_SUCCESS)
        cJSON_AddStringToObject(object, name, text);
}

/* null where there is no such number. */
static void add_positive(cJSON *object, const char *name, double value)
{
    if (value > 0)
        cJSON_AddNumberToObject(object, name, value);
    else
        cJSON_AddNullToObject(object, name);
}

static void add_device(cJSON *root, const struct bench_report *report)
{
    cJSON *object = cJSON_AddObjectToObject(root, "device");
    cl_uint units = 0;
    add_text(object, "name", report->device_id, CL_DEVICE_NAME);
    add_text(object, "vendor", report->device_id, CL_DEVICE_VENDOR);
    add_text(object, "version", report->device_id, CL_DEVICE_VERSION);
    add_text(object, "driver", report->device_id, CL_DRIVER_VERSION);
    if (clGetDeviceInfo(report->device_id, CL_DEVICE_MAX_COMPUTE_UNITS, sizeof units, &units, NULL) == CL_SUCCESS)
        cJSON_AddNumberToObject(object, "compute_units", units);
    add_positive(object, "fma_tflops", 1e-12 * report->peak.fma);
    add_positive(object, "read_gbytes_per_s", 1e-9 * report->peak.read);
    add_positive(object, "copy_gbytes_per_s", 1e-9 * report->peak.copy);
}

static void add_times(cJSON *object, const struct bench_result *r)
{
    cJSON_AddNumberToObject(object, "median_ms", 1e3 * r->median);
    cJSON_AddNumberToObject(object, "min_ms", 1e3 * r->least);
    cJSON_AddNumberToObject(object, "host_ms", 1e3 * r->host);
    cJSON_AddStringToObject(object, "clock", r->host_clock ? "host" : "device");
    cJSON_AddNumberToObject(object, "samples", (double)r->samples);
    cJSON_AddNumberToObject(object, "launches_per_sample", (double)r->launches);
}

static void add_rates(cJSON *object, const struct bench_report *report, const struct bench_entry *entry,
                      const struct bench_result *r)
{
    const double rate = bench_rate(entry, r), bandwidth = bench_bandwidth(entry, r);
    cJSON_AddNumberToObject(object, "tflops", 1e-12 * rate);
    cJSON_AddNumberToObject(object, "gbytes_per_s", 1e-9 * bandwidth);
    add_positive(object, "ratio_to_unfused", bench_ratio(entry, r));
    add_positive(object, "fma_tflops_between", 1e-12 * entry->measured.fma);
    add_positive(object, "share_of_fma_peak", bench_fma_share(entry, r));
    add_positive(object, "share_of_read_rate", report->peak.read > 0 ? bandwidth / report->peak.read : 0);
    add_positive(object, "share_of_copy_rate", report->peak.copy > 0 ? bandwidth / report->peak.copy : 0);
}

static void add_result(cJSON *results, const struct bench_report *report, const struct bench_entry *entry,
                       const struct bench_result *r)
{
    cJSON *object = cJSON_CreateObject();
    cJSON_AddItemToArray(results, object);
    if (entry->name != NULL)
        cJSON_AddStringToObject(object, "name", entry->name);
    cJSON_AddStringToObject(object, "shape", entry->shape);
    cJSON_AddStringToObject(object, "engine", r->engine);
    cJSON_AddBoolToObject(object, "measured", r->measured);
    if (r->why[0] != '\0')
        cJSON_AddStringToObject(object, "why", r->why);
    if (!r->measured)
        return;
    add_times(object, r);
    add_rates(object, report, entry, r);
    cJSON_AddNumberToObject(object, "max_error", r->max_error);
    cJSON_AddNumberToObject(object, "allowed_error", r->bound);
    cJSON_AddBoolToObject(object, "right", r->right);
    cJSON_AddNumberToObject(object, "build_ms", 1e3 * r->build);
    cJSON_AddNumberToObject(object, "builds", (double)r->builds);
    cJSON_AddNumberToObject(object, "workspace_bytes", (double)r->workspace_bytes);
    cJSON_AddNumberToObject(object, "memory_bytes", (double)r->workspace_bytes + entry->bytes);
}

int bench_write_json(FILE *out, const struct bench_report *report)
{
    cJSON *root = cJSON_CreateObject();
    cJSON_AddStringToObject(root, "clattn", clattn_version());
    add_device(root, report);
    cJSON *method = cJSON_AddObjectToObject(root, "method");
    cJSON_AddNumberToObject(method, "warmup_ms", 1e3 * report->settings.warmup);
    cJSON_AddNumberToObject(method, "sample_ms", 1e3 * report->settings.minimum);
    cJSON_AddNumberToObject(method, "flush_bytes", (double)report->settings.flush);
    cJSON_AddBoolToObject(root, "interrupted", report->interrupted);
    cJSON *results = cJSON_AddArrayToObject(root, "results");
    for (size_t i = 0; i < report->count; i++)
        for (size_t j = 0; j < report->entries[i].measured.count; j++)
            add_result(results, report, &report->entries[i], &report->entries[i].measured.results[j]);
    char *text = cJSON_Print(root);
    cJSON_Delete(root);
    if (text == NULL)
        return cli_fail("bench", CLI_FAILED, "--json", "out of memory");
    fprintf(out, "%s\n", text); /* a failure is remembered by the file and reported at its commit */
    free(text);
    return CLI_OK;
}
