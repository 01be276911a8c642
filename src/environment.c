/* SPDX-License-Identifier: Apache-2.0 */
#define CLATTN_EXPERIMENTAL
#include "environment.h"

#include <string.h>

const char *cla_variable_name(enum cla_variable variable)
{
    static const char *const names[] = {
#define NAME(name) "CLATTN_" #name,
        CLA_VARIABLES(NAME)
#undef NAME
    };
    return names[variable];
}

const char *cla_variable(bool ignored, enum cla_variable variable)
{
    return ignored ? NULL : cla_environment(cla_variable_name(variable));
}

bool cla_variable_path(bool ignored, enum cla_variable variable, struct text *out)
{
    return !ignored && cla_environment_path(cla_variable_name(variable), out);
}

bool cla_variable_is(bool ignored, enum cla_variable variable, const char *word)
{
    const char *value = cla_variable(ignored, variable);
    return value && strcmp(value, word) == 0;
}

clattn_status cla_fail_variable(clattn_error *error, enum cla_variable variable, const clattn_error *cause)
{
    const char *name = cla_variable_name(variable), *value = cla_variable(false, variable);
    return cla_fail(error, cause->status, name, "%s in the environment is \"%s\": %s", name, value ? value : "",
                    cause->message);
}

const char *clattn_environment_variable(size_t index, const char **value)
{
    if (index >= VARIABLE_COUNT)
        return NULL;
    if (value)
        *value = cla_variable(false, (enum cla_variable)index);
    return cla_variable_name((enum cla_variable)index);
}
