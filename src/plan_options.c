/* SPDX-License-Identifier: Apache-2.0 */
#include "plan_options.h"

#include "engine.h"
#include "environment.h"

#include <string.h>

void clattn_plan_options_init_sized(clattn_plan_options *options, size_t size)
{
    if (options) {
        memset(options, 0, size);
        options->struct_size = size;
    }
}

static clattn_status take_environment(bool ignored, clattn_plan_options *options, clattn_error *error)
{
    const char *engine = cla_variable(ignored, VARIABLE_ENGINE), *avoid = cla_variable(ignored, VARIABLE_AVOID);
    if (engine && !cla_engine_find(engine))
        return cla_fail(error, CLATTN_INVALID_ARGUMENT, cla_variable_name(VARIABLE_ENGINE),
                        "%s in the environment: there is no engine \"%s\"; clattn info lists them",
                        cla_variable_name(VARIABLE_ENGINE), engine);
    options->engine = engine ? engine : options->engine;
    options->avoid = avoid ? avoid : options->avoid;
    return CLATTN_SUCCESS;
}

clattn_status cla_plan_options_take(const clattn_plan_options *given, bool ignore_environment, clattn_plan_options *options,
                                    clattn_error *error)
{
    clattn_plan_options_init(options);
    if (given)
        TRY(cla_struct_take("options", given, offsetof(clattn_plan_options, avoid), options, sizeof *options, error));
    return take_environment(ignore_environment, options, error);
}

clattn_status cla_plan_options_blame(clattn_status status, bool ignore_environment, clattn_error *error)
{
    static const enum cla_variable variables[] = {VARIABLE_ENGINE, VARIABLE_AVOID};
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        const char *value = cla_variable(ignore_environment, variables[i]);
        clattn_error cause;
        if (status != CLATTN_UNSUPPORTED || !value || !error || error->struct_size < sizeof cause)
            continue;
        memcpy(&cause, error, sizeof cause);
        cla_fail_variable(error, variables[i], &cause);
    }
    return status;
}
