/* SPDX-License-Identifier: Apache-2.0
 * Where the library's messages go: a function of the caller's, or nowhere. */
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
