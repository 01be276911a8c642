/* SPDX-License-Identifier: Apache-2.0
 * `clattn info` for people: short enough to paste into a report, and complete. */
#define CLATTN_EXPERIMENTAL
#include "survey.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LABEL_WIDTH = 14, TEXT_WIDTH = 92 };

/* Bytes of `text` that go on one line, broken at a blank where it is too long. */
static size_t line_length(const char *text)
{
    size_t length = strcspn(text, "\n");
    if (length <= TEXT_WIDTH)
        return length;
    length = TEXT_WIDTH;
    while (length > 0 && text[length] != ' ')
        length--;
    return length > 0 ? length : strcspn(text, " \n");
}

/* "    label          text", wrapped; the label is on the first line only. */
static void print_row(const char *label, const char *text)
{
    text += strspn(text, " \n");
    while (*text != '\0') {
        const size_t length = line_length(text);
        size_t shown = length;
        while (shown > 0 && text[shown - 1] == ' ')
            shown--;
        printf("    %-*s%.*s\n", LABEL_WIDTH, label, (int)shown, text);
        text += length;
        text += strspn(text, " \n");
        label = "";
    }
}

static const char *or_absent(const char *text) { return text[0] != '\0' ? text : "n/a"; }

/* "16 KiB"; a number that no unit divides is printed with one digit after the point. */
static char *bytes_text(uint64_t bytes, char *text, size_t size)
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
    int unit = 0;
    uint64_t tenths = bytes * 10;
    if (bytes == 0) {
        snprintf(text, size, "n/a");
        return text;
    }
    for (; tenths >= 10240 && unit < 4; unit++)
        tenths = (tenths + 512) / 1024;
    snprintf(text, size, "%" PRIu64 "%s%.0" PRIu64 " %s", tenths / 10, tenths % 10 ? "." : "", tenths % 10, units[unit]);
    return text;
}

static char *number_text(const char *facts, const char *name, char *text, size_t size)
{
    const uint64_t number = fact_number(facts, name);
    if (number == 0)
        snprintf(text, size, "n/a");
    else
        snprintf(text, size, "%" PRIu64, number);
    return text;
}

/* Short-lived texts of one device's report. */
struct scratch {
    char a[512], b[512], c[512], row[2048];
};

static void print_names(const char *facts, struct scratch *s)
{
    snprintf(s->row, sizeof s->row, "%s, %s (vendor id 0x%04" PRIx64 "), %s-bit addresses",
             or_absent(fact_of(facts, "device_kind", s->a, sizeof s->a)),
             or_absent(fact_of(facts, "device_vendor", s->b, sizeof s->b)), fact_number(facts, "vendor_id"),
             number_text(facts, "address_bits", s->c, sizeof s->c));
    print_row("kind", s->row);
    snprintf(s->row, sizeof s->row, "%s; %s; %s", or_absent(fact_of(facts, "driver_version", s->a, sizeof s->a)),
             or_absent(fact_of(facts, "device_version", s->b, sizeof s->b)),
             or_absent(fact_of(facts, "c_version", s->c, sizeof s->c)));
    print_row("driver", s->row);
}

static void print_units(const char *facts, struct scratch *s)
{
    char preferred[32], compute[32] = "";
    if (fact_number(facts, "nv_compute") != 0)
        snprintf(compute, sizeof compute, ", sm_%" PRIu64, fact_number(facts, "nv_compute"));
    snprintf(s->row, sizeof s->row, "%s units at %s MHz, fma %s, native vectors of %s floats, preferred multiple %s%s",
             number_text(facts, "compute_units", s->a, sizeof s->a), number_text(facts, "clock_mhz", s->b, sizeof s->b),
             fact_number(facts, "fma") ? "yes" : "no", number_text(facts, "vector_width", s->c, sizeof s->c),
             number_text(facts, "preferred_multiple", preferred, sizeof preferred), compute);
    print_row("compute", s->row);
    snprintf(s->row, sizeof s->row, "%s work-items, %s along the first dimension",
             number_text(facts, "max_work_group", s->a, sizeof s->a), number_text(facts, "max_work_item_0", s->b, sizeof s->b));
    print_row("work-group", s->row);
}

static void print_memory(const char *facts, struct scratch *s)
{
    snprintf(s->row, sizeof s->row, "%s, %s in kernel source; %s",
             bytes_text(fact_number(facts, "local_mem"), s->a, sizeof s->a),
             bytes_text(fact_number(facts, "local_mem_static"), s->b, sizeof s->b),
             fact_number(facts, "local_mem_is_global") ? "cached plain memory" : "its own memory");
    print_row("local memory", s->row);
    snprintf(s->row, sizeof s->row, "%s, one buffer up to %s, cache %s",
             bytes_text(fact_number(facts, "global_mem"), s->a, sizeof s->a),
             bytes_text(fact_number(facts, "max_alloc"), s->b, sizeof s->b),
             bytes_text(fact_number(facts, "cache"), s->c, sizeof s->c));
    print_row("global memory", s->row);
    snprintf(s->row, sizeof s->row, "%s of parameters, buffers aligned to %s bits",
             bytes_text(fact_number(facts, "max_parameters"), s->a, sizeof s->a),
             number_text(facts, "base_align_bits", s->b, sizeof s->b));
    print_row("arguments", s->row);
}

/* Lines of the plan's description, without those that repeat the lines above them. */
static void print_plan(const char *text)
{
    const char *label = "  served by";
    while (*text != '\0') {
        const size_t length = strcspn(text, "\n");
        char line[1024];
        if (strncmp(text, "problem:", 8) != 0 && strncmp(text, "device:", 7) != 0) {
            snprintf(line, sizeof line, "%.*s", (int)length, text);
            print_row(label, line);
            label = "";
        }
        text += length + (text[length] == '\n');
    }
}

/* "candidate 1: simt, block_m 128, ..." lines, many an engine, as "simt (15 tiles), then reference (1 tile)". */
static void print_order(const char *text)
{
    char row[512] = "", engine[64] = "", next[64];
    size_t at = 0;
    int tiles = 0;
    for (; text != NULL; text = strchr(text, '\n'), text += text != NULL) {
        const bool is_candidate = sscanf(text, "candidate %*d: %63[^,]", next) == 1;
        if (tiles > 0 && (!is_candidate || strcmp(next, engine) != 0) && at < sizeof row) {
            at += (size_t)snprintf(row + at, sizeof row - at, "%s%s (%d tile%s)", at ? ", then " : "", engine, tiles,
                                   tiles == 1 ? "" : "s");
            tiles = 0;
        }
        if (!is_candidate)
            continue;
        snprintf(engine, sizeof engine, "%s", next);
        tiles++;
    }
    if (at > 0 && at < sizeof row)
        snprintf(row + at, sizeof row - at, "; unfused only when it is named");
    print_row("  order tried", row);
}

static void print_answer(const struct survey *survey, const struct survey_answer *answer)
{
    print_row("shape", survey->shape);
    if (answer->status == CLATTN_SUCCESS)
        print_plan(answer->text ? answer->text : answer->engine);
    else
        print_row("  not served", answer->text ? answer->text : clattn_status_text(answer->status));
    if (answer->others != NULL)
        print_order(answer->others);
}

static void print_device(const struct survey *survey, const struct survey_device *device)
{
    struct scratch s;
    char extensions[8192];
    const char *facts = device->facts;
    printf("\n  Device %d:%d  %s%s\n", device->platform, device->index,
           facts ? or_absent(fact_of(facts, "device_name", s.a, sizeof s.a)) : "n/a", device->is_default ? "  (default)" : "");
    if (facts == NULL) {
        print_row("facts", "n/a");
        print_row("error", device->error.message[0] ? device->error.message : clattn_status_text(device->error.status));
    } else {
        print_names(facts, &s);
        print_units(facts, &s);
        print_memory(facts, &s);
        print_row("extensions", or_absent(fact_of(facts, "extensions", extensions, sizeof extensions)));
        for (size_t i = 0; clattn_device_quirk(facts, i) != NULL; i++)
            print_row(i == 0 ? "known quirks" : "", clattn_device_quirk(facts, i));
    }
    if (device->answer.asked)
        print_answer(survey, &device->answer);
}

/* A report shows the environment variables that influence choices. */
static void print_environment(void)
{
    const char *value = NULL, *name;
    for (size_t i = 0; (name = clattn_environment_variable(i, &value)) != NULL; i++)
        if (value != NULL)
            printf("environment    %s=%s\n", name, value);
}

void survey_print(const struct survey *survey)
{
    printf("clattn         %s on %s\n", clattn_version(), survey->system);
    printf("loader         %s\n", survey->loader);
    print_environment();
    for (size_t p = 0; p < survey->platform_count; p++) {
        bool any = survey->platforms[p].device_count == 0;
        for (size_t d = 0; d < survey->device_count; d++)
            any = any || survey->devices[d].platform == (int)p;
        if (!any)
            continue;
        printf("\nPlatform %zu  %s, %s\n", p, survey->platforms[p].name, survey->platforms[p].version);
        if (survey->platforms[p].device_count == 0)
            printf("\n  no usable device\n");
        for (size_t d = 0; d < survey->device_count; d++)
            if (survey->devices[d].platform == (int)p)
                print_device(survey, &survey->devices[d]);
    }
}
