/* SPDX-License-Identifier: Apache-2.0
 * The demo's table: a few shapes, fused against unfused. */
#ifndef CLATTN_TOOLS_DEMO_TABLE_H
#define CLATTN_TOOLS_DEMO_TABLE_H

#include "session.h"

/* engine NULL: the library's choice. Returns an exit code. */
int demo_table(struct session *session, const char *engine);

#endif
