/* SPDX-License-Identifier: Apache-2.0
 * The table of engines, and functions that their host halves share. */
#define CLATTN_EXPERIMENTAL
#include "engine.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const struct engine *const cla_engines[] = {
#define ENGINE(name) &cla_engine_##name,
#include "engine_list.h"
#undef ENGINE
};
_Static_assert(sizeof cla_engines / sizeof *cla_engines <= CLA_MAX_ENGINES, "each engine has a rate of its own");
const size_t cla_engine_count = sizeof cla_engines / sizeof *cla_engines;

const struct engine *cla_engine_find(const char *name)
{
    for (size_t i = 0; i < cla_engine_count; i++)
        if (strcmp(cla_engines[i]->name, name) == 0)
            return cla_engines[i];
    return NULL;
}

const char *clattn_engine_name(size_t index) { return index < cla_engine_count ? cla_engines[index]->name : NULL; }

int clattn_engine_rounds_weights(const char *name)
{
    const struct engine *const engine = name ? cla_engine_find(name) : NULL;
    return engine && engine->rounds_weights;
}

void cla_config_keep(struct config *config, const void *numbers, size_t size) { memcpy(config->own, numbers, size); }

void cla_config_recall(const struct config *config, void *numbers, size_t size) { memcpy(numbers, config->own, size); }

bool cla_decline(char *why, size_t size, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(why, size, format, list);
    va_end(list);
    return false;
}
