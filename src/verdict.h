/* SPDX-License-Identifier: Apache-2.0
 * What the self-check found of each program: a list that a context keeps. */
#ifndef CLATTN_VERDICT_H
#define CLATTN_VERDICT_H

#include "status.h"

struct verdict;

/* `why` is "" when the program was right. False: nothing is known of it. */
bool cla_verdict_find(const struct verdict *list, cl_program program, char *why, size_t why_size);

/* Without memory it is forgotten, and the check runs again. */
void cla_verdict_add(struct verdict **list, cl_program program, const char *why);

void cla_verdicts_free(struct verdict *list);

#endif
