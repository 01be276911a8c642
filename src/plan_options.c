/* SPDX-License-Identifier: Apache-2.0 */
#include "plan_options.h"

#include "os/os.h"

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
    if (given)
        TRY(cla_struct_take("options", given, offsetof(clattn_plan_options, avoid), options, sizeof *options, error));
    if (cla_environment("CLATTN_ENGINE"))
        options->engine = cla_environment("CLATTN_ENGINE");
    if (cla_environment("CLATTN_AVOID"))
        options->avoid = cla_environment("CLATTN_AVOID");
    return CLATTN_SUCCESS;
}
