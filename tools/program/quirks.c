/* SPDX-License-Identifier: Apache-2.0
 * What is odd about implementations that were met so far: shown beside the facts, since it explains reports. */
#include "survey.h"

#include <ctype.h>
#include <string.h>

/* Holds when each named fact contains its text, in any case. */
struct quirk {
    const char *fact, *part;
    const char *other_fact, *other_part;
    const char *text;
};

static const struct quirk quirks[] = {
    {"platform_version", "PoCL 3.", NULL, NULL, "PoCL 3 refuses a single buffer over 4 GiB, whatever its limit says"},
    {"platform_version", "PoCL", NULL, NULL,
     "PoCL compiles again at a kernel's first launch: the first call of a plan is slow"},
    {"platform_version", "PoCL", NULL, NULL, "PoCL refuses sub-buffers whose origin is not aligned"},
    {"platform_name", "oclgrind", NULL, NULL,
     "oclgrind interprets float4, float8 and float16 text wrongly without -cl-opt-disable"},
    {"platform_name", "oclgrind", NULL, NULL,
     "oclgrind ignores #line: build messages are translated back to their file and line"},
    {"platform_name", "rusticl", NULL, NULL, "rusticl does not link fma(): kernels say mad()"},
    {"device_name", "llvmpipe", NULL, NULL, "llvmpipe runs below 1 GFLOP/s: keep to small shapes"},
    {"platform_name", "NVIDIA", NULL, NULL, "NVIDIA ignores #line: build messages are translated back to their file and line"},
    {"platform_name", "NVIDIA", NULL, NULL,
     "NVIDIA allows local arrays in kernel text past local_mem (see local_mem_static), but no such argument"},
    {"platform_name", "Intel", "device_kind", "cpu", "Intel's CPU runtime compiles slowly, and refuses x86 inline assembly"},
    {"platform_name", "Apple", "device_kind", "cpu", "Apple's CPU device runs kernels with a barrier in work-groups of 1 only"},
};

static bool contains(const char *text, const char *part)
{
    for (; *text != '\0'; text++) {
        size_t i = 0;
        while (part[i] != '\0' && tolower((unsigned char)text[i]) == tolower((unsigned char)part[i]))
            i++;
        if (part[i] == '\0')
            return true;
    }
    return false;
}

static bool holds(const struct quirk *quirk, const char *facts)
{
    char value[512];
    if (!contains(fact_of(facts, quirk->fact, value, sizeof value), quirk->part))
        return false;
    return quirk->other_fact == NULL || contains(fact_of(facts, quirk->other_fact, value, sizeof value), quirk->other_part);
}

const char *quirk_of(const char *facts, size_t n)
{
    for (size_t i = 0; i < sizeof quirks / sizeof quirks[0]; i++)
        if (holds(&quirks[i], facts) && n-- == 0)
            return quirks[i].text;
    char version[256];
    const bool is_rusticl = contains(fact_of(facts, "platform_name", version, sizeof version), "rusticl");
    if (fact_number(facts, "fma") == 0 && !is_rusticl && n-- == 0)
        return "no fused multiply-add is reported: kernels say mad()";
    if (fact_number(facts, "max_work_item_0") < fact_number(facts, "max_work_group") && n-- == 0)
        return "work-groups are limited by their first dimension (max_work_item_0), below max_work_group";
    return NULL;
}
