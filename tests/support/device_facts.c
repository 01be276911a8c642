/* SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include "device_facts.h"
#include "files.h"
#include "kernel_text.h"

void device_facts_read(const char *name, struct facts *facts)
{
    clattn_error error;
    char *path = path_join(DEVICE_FACTS, name);
    char *text = file_read(path);
    clattn_error_init(&error);
    assert_non_null(text);
    if (cla_facts_parse(text, facts, &error) != CLATTN_SUCCESS) {
        fail_msg("%s: %s", name, error.message);
    }
    free(text);
    free(path);
}

clattn_problem shape_of(const char *text)
{
    clattn_error error;
    clattn_problem problem;
    clattn_error_init(&error);
    assert_ok(clattn_problem_parse(text, &problem, &error), &error);
    if (isnan(problem.scale)) {
        problem.scale = 1.0f;
    }
    return problem;
}

int define_of(const struct facts *facts, const clattn_problem *problem, const struct config *config, const char *name)
{
    struct text defines = {0};
    char line[80];
    cla_kernel_defines(facts, problem, config, &defines);
    snprintf(line, sizeof line, "#define %s ", name);
    const char *at = defines.data != NULL ? strstr(defines.data, line) : NULL;
    if (at == NULL) {
        fail_msg("the kernel source defines no %s", name);
    }
    const int number = atoi(at + strlen(line));
    cla_text_free(&defines);
    return number;
}
