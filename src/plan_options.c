/* SPDX-License-Identifier: Apache-2.0 */
#include "plan_options.h"

#include "platform.h"

#include <string.h>

void clattn_plan_options_init_sized(clattn_plan_options *options, size_t size)
{
    if (options) {
        memset(options, 0, size);
        options->struct_size = size;
    }
}

clattn_status cla_plan_options_take(const clattn_plan_options *given, clattn_plan_options *options, clattn_error *error)
{
    clattn_plan_options_init(options);
    if (given) {
        if (given->struct_size < sizeof(size_t) + sizeof(char *))
            return cla_fail(error, CLATTN_INVALID_ARGUMENT, "options.struct_size",
                            "options.struct_size is %zu: call clattn_plan_options_init before setting fields",
                            given->struct_size);
        memcpy(options, given, given->struct_size < sizeof *options ? given->struct_size : sizeof *options);
        options->struct_size = sizeof *options;
    }
    if (cla_environment("CLATTN_ENGINE"))
        options->engine = cla_environment("CLATTN_ENGINE");
    if (cla_environment("CLATTN_AVOID"))
        options->avoid = cla_environment("CLATTN_AVOID");
    return CLATTN_SUCCESS;
}
