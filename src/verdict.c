/* SPDX-License-Identifier: Apache-2.0 */
#include "verdict.h"

#include <stdio.h>
#include <stdlib.h>

struct verdict {
    struct verdict *next;
    cl_program program;
    char why[160];
};

bool cla_verdict_find(const struct verdict *list, cl_program program, char *why, size_t why_size)
{
    while (list && list->program != program)
        list = list->next;
    if (list)
        snprintf(why, why_size, "%s", list->why);
    return list != NULL;
}

void cla_verdict_add(struct verdict **list, cl_program program, const char *why)
{
    struct verdict *v = calloc(1, sizeof *v);
    if (!v)
        return;
    v->program = program;
    snprintf(v->why, sizeof v->why, "%s", why);
    v->next = *list;
    *list = v;
}

void cla_verdicts_free(struct verdict *list)
{
    while (list) {
        struct verdict *next = list->next;
        free(list);
        list = next;
    }
}
