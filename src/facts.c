/* SPDX-License-Identifier: Apache-2.0 */
#include "facts.h"

#include <ctype.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum fact_form { FACT_STRING, FACT_NUMBER, FACT_BYTES };

static const struct fact {
    const char *name;
    enum fact_form form;
    size_t at, size;
} table[] = {
#define STRING_ROW(name) {#name, FACT_STRING, offsetof(struct facts, name), sizeof(((struct facts *)0)->name)},
#define NUMBER_ROW(name) {#name, FACT_NUMBER, offsetof(struct facts, name), sizeof(uint64_t)},
#define BYTES_ROW(name) {#name, FACT_BYTES, offsetof(struct facts, name), sizeof(uint64_t)},
    CLA_FACTS(STRING_ROW, NUMBER_ROW, BYTES_ROW)
#undef STRING_ROW
#undef NUMBER_ROW
#undef BYTES_ROW
};

static const char *const kinds[] = {"", "cpu", "gpu", "accelerator", "other"};

static const struct fact *find(const char *name, size_t length)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (strlen(table[i].name) == length && memcmp(table[i].name, name, length) == 0)
            return &table[i];
    return NULL;
}

static char *string_of(struct facts *facts, const struct fact *fact) { return (char *)facts + fact->at; }
static uint64_t *number_of(struct facts *facts, const struct fact *fact)
{
    return (uint64_t *)(void *)((char *)facts + fact->at);
}

/* Written as 16K, 1M or 2G if it is read back as the same number. */
static void print_bytes(struct text *out, uint64_t bytes)
{
    const char *const suffix[] = {"", "K", "M", "G"};
    int power = 0;
    while (power < 3 && bytes && bytes % 1024 == 0) {
        bytes /= 1024;
        power++;
    }
    cla_text_add(out, "%" PRIu64 "%s", bytes, suffix[power]);
}

void cla_facts_print(const struct facts *facts, struct text *out)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const char *at = (const char *)facts + table[i].at;
        cla_text_add(out, "%s=", table[i].name);
        if (table[i].form == FACT_STRING) {
            cla_text_add(out, "%s", at);
        } else {
            uint64_t value;
            memcpy(&value, at, sizeof value);
            if (strcmp(table[i].name, "device_kind") == 0 && value < sizeof kinds / sizeof *kinds)
                cla_text_add(out, "%s", kinds[value]);
            else if (table[i].form == FACT_BYTES)
                print_bytes(out, value);
            else
                cla_text_add(out, "%" PRIu64, value);
        }
        cla_text_add(out, "\n");
    }
}

/* A whole number, followed by K, M or G for bytes, or the name of a device kind. */
static bool parse_number(const struct fact *fact, const char *text, size_t length, uint64_t *value)
{
    if (strcmp(fact->name, "device_kind") == 0)
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
            if (strlen(kinds[i]) == length && memcmp(kinds[i], text, length) == 0) {
                *value = i;
                return true;
            }
    uint64_t number = 0;
    size_t i = 0;
    for (; i < length && isdigit((unsigned char)text[i]); i++) {
        if (number > (UINT64_MAX - 9) / 10)
            return false;
        number = number * 10 + (uint64_t)(text[i] - '0');
    }
    if (i == 0)
        return false;
    if (i < length && fact->form == FACT_BYTES) {
        const char *unit = strchr("KMG", toupper((unsigned char)text[i]));
        const int shift = unit && *unit ? 10 * (int)(unit - "KMG" + 1) : 0;
        (void)unit;
        if (shift == 0 || number > (UINT64_MAX >> shift))
            return false;
        number <<= shift;
        i++;
    }
    *value = number;
    return i == length;
}

static clattn_status assign(struct facts *facts, const struct fact *fact, const char *value, size_t length, clattn_error *error)
{
    if (fact->form == FACT_STRING) {
        if (length >= fact->size)
            return cla_fail(error, CLATTN_INVALID_ARGUMENT, fact->name, "%s: longer than %zu bytes", fact->name,
                            fact->size - 1);
        memcpy(string_of(facts, fact), value, length);
        string_of(facts, fact)[length] = '\0';
    } else if (!parse_number(fact, value, length, number_of(facts, fact))) {
        return cla_fail(error, CLATTN_INVALID_ARGUMENT, fact->name, "%s=%.*s: expected %s", fact->name, (int)length, value,
                        fact->form == FACT_BYTES                 ? "a number of bytes, such as 16384 or 16K"
                        : strcmp(fact->name, "device_kind") == 0 ? "cpu, gpu, accelerator or other"
                                                                 : "a whole number");
    }
    return CLATTN_SUCCESS;
}

static size_t trimmed_length(const char *text, size_t length)
{
    while (length && isspace((unsigned char)text[length - 1]))
        length--;
    return length;
}

clattn_status cla_facts_parse(const char *text, struct facts *facts, clattn_error *error)
{
    memset(facts, 0, sizeof *facts);
    for (int line = 1; *text; line++) {
        const size_t whole = strcspn(text, "\n");
        size_t length = trimmed_length(text, whole);
        if (length && text[0] != '#') {
            const char *equals = memchr(text, '=', length);
            const struct fact *fact = equals ? find(text, (size_t)(equals - text)) : NULL;
            if (!fact)
                return cla_fail(error, CLATTN_INVALID_ARGUMENT, "facts",
                                "line %d: expected NAME=VALUE with a known name, found: %.*s", line,
                                (int)(length < 80 ? length : 80), text);
            length -= (size_t)(equals + 1 - text);
            TRY(assign(facts, fact, equals + 1, length, error));
        }
        text += whole + (text[whole] == '\n');
    }
    return CLATTN_SUCCESS;
}

/* The position of a whole word in a list separated by blanks, or NULL. */
static char *find_word(char *list, const char *word, size_t length)
{
    for (char *at = list; *at; at += strcspn(at, " ")) {
        at += strspn(at, " ");
        if (strcspn(at, " ") == length && length && memcmp(at, word, length) == 0)
            return at;
    }
    return NULL;
}

bool cla_facts_has_extension(const struct facts *facts, const char *name)
{
    return find_word((char *)facts->extensions, name, strlen(name)) != NULL;
}

bool cla_facts_is_intel_gpu(const struct facts *facts)
{
    return facts->device_kind == DEVICE_GPU && facts->vendor_id == 0x8086;
}

bool cla_facts_has_large_registers(const struct facts *facts)
{
    return cla_facts_is_intel_gpu(facts) && cla_facts_is_intel_runtime(facts) &&
           cla_facts_has_extension(facts, "cl_intel_subgroup_matrix_multiply_accumulate");
}

bool cla_facts_is_pocl(const struct facts *facts)
{
    return strstr(facts->platform_name, "Portable Computing Language") != NULL;
}

bool cla_facts_is_intel_runtime(const struct facts *facts) { return strstr(facts->platform_name, "Intel(R) OpenCL") != NULL; }

bool cla_facts_has_inter_group_visibility(const struct facts *facts) { return facts->nv_compute >= 70; }

static clattn_status change_word(struct facts *facts, const struct fact *fact, bool add, const char *word, size_t length,
                                 clattn_error *error)
{
    char *list = string_of(facts, fact), *at = find_word(list, word, length);
    if (add && !at) {
        const size_t used = strlen(list);
        if (used + length + 2 > fact->size)
            return cla_fail(error, CLATTN_INVALID_ARGUMENT, fact->name, "%s: no room for another word", fact->name);
        if (used)
            list[used] = ' ';
        memcpy(list + used + (used > 0), word, length);
        list[used + (used > 0) + length] = '\0';
    } else if (!add && at) {
        memmove(at, at + length + (at[length] == ' '), strlen(at + length + (at[length] == ' ')) + 1);
    }
    return CLATTN_SUCCESS;
}

static clattn_status override_one(struct facts *facts, const char *item, size_t length, clattn_error *error)
{
    const char *equals = memchr(item, '=', length);
    if (!equals)
        return cla_fail(error, CLATTN_INVALID_ARGUMENT, "overrides", "\"%.*s\": expected NAME=VALUE, NAME+=WORD or NAME-=WORD",
                        (int)length, item);
    const char sign = equals > item ? equals[-1] : ' ';
    const bool is_word = sign == '+' || sign == '-';
    const struct fact *fact = find(item, (size_t)(equals - item) - is_word);
    if (!fact || (is_word && fact->form != FACT_STRING))
        return cla_fail(error, CLATTN_INVALID_ARGUMENT, "overrides", "\"%.*s\": %s; clattn info --facts lists the names",
                        (int)length, item, fact ? "+= and -= are for lists of words" : "no such device fact");
    const char *value = equals + 1;
    const size_t value_length = length - (size_t)(value - item);
    if (is_word)
        return change_word(facts, fact, sign == '+', value, value_length, error);
    TRY(assign(facts, fact, value, value_length, error));
    if (strcmp(fact->name, "local_mem") == 0 && facts->local_mem_static > facts->local_mem)
        facts->local_mem_static = facts->local_mem;
    return CLATTN_SUCCESS;
}

clattn_status cla_facts_override(struct facts *facts, const char *overrides, clattn_error *error)
{
    while (overrides && *overrides) {
        overrides += strspn(overrides, ", ");
        const size_t whole = strcspn(overrides, ","), length = trimmed_length(overrides, whole);
        if (length)
            TRY(override_one(facts, overrides, length, error));
        overrides += whole;
    }
    return CLATTN_SUCCESS;
}
