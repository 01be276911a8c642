/* SPDX-License-Identifier: Apache-2.0 */
#define CLATTN_EXPERIMENTAL
#include "quirks.h"

#include <ctype.h>

bool cla_has_part(const char *text, const char *part)
{
    for (; *text; text++) {
        size_t i = 0;
        while (part[i] && tolower((unsigned char)text[i]) == tolower((unsigned char)part[i]))
            i++;
        if (!part[i])
            return true;
    }
    return false;
}

bool cla_has_quirk(const struct facts *f, enum cla_quirk quirk)
{
    switch (quirk) {
#define CLA_QUIRK_CASE(name, condition, text)                                                                                  \
    case QUIRK_##name:                                                                                                         \
        return (condition);
        CLA_QUIRKS(CLA_QUIRK_CASE)
#undef CLA_QUIRK_CASE
    case CLA_QUIRK_COUNT:
        break;
    }
    return false;
}

const char *cla_quirk_text(enum cla_quirk quirk)
{
    static const char *const texts[CLA_QUIRK_COUNT] = {
#define CLA_QUIRK_TEXT(name, condition, text) text,
        CLA_QUIRKS(CLA_QUIRK_TEXT)
#undef CLA_QUIRK_TEXT
    };
    return texts[quirk];
}

const char *clattn_device_quirk(const char *text, size_t index)
{
    struct facts facts = {0};
    if (!text || cla_facts_parse(text, &facts, NULL) != CLATTN_SUCCESS)
        return NULL;
    for (int quirk = 0; quirk < CLA_QUIRK_COUNT; quirk++)
        if (cla_has_quirk(&facts, (enum cla_quirk)quirk) && index-- == 0)
            return cla_quirk_text((enum cla_quirk)quirk);
    return NULL;
}
