/* SPDX-License-Identifier: Apache-2.0
 * Passes the library's messages to the caller's function, if there is one. */
#ifndef CLATTN_LOG_H
#define CLATTN_LOG_H

#include "clattn/clattn.h"

struct logger {
    clattn_log_fn call;
    void *user;
};

/* Never called with a lock held: the caller's function may call the library again. */
void cla_log(const struct logger *logger, clattn_log_level level, const char *text);

#endif
