/* SPDX-License-Identifier: Apache-2.0
 * The results of the self-check for each program, a list in the context. */
#ifndef CLATTN_VERDICT_H
#define CLATTN_VERDICT_H

#include "status.h"

struct verdict;

/* `why` is "" if the program was correct. False: it has not been checked. */
bool cla_verdict_find(const struct verdict *list, cl_program program, char *why, size_t why_size);

/* If memory runs out, the result is not stored, and the check runs again. */
void cla_verdict_add(struct verdict **list, cl_program program, const char *why);

void cla_verdicts_free(struct verdict *list);

#endif
