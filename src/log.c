/* SPDX-License-Identifier: Apache-2.0 */
#include "log.h"

void cla_log(const struct logger *logger, clattn_log_level level, const char *text)
{
    if (logger->call)
        logger->call(logger->user, level, text);
}
