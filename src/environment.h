/* SPDX-License-Identifier: Apache-2.0
 * The environment variables of the library: all of them, and the one way to their values. docs/packaging.md and docs/clattn.1
 * describe the same ones (unit/environment compares). */
#ifndef CLATTN_ENVIRONMENT_H
#define CLATTN_ENVIRONMENT_H

#include "os/os.h"
#include "status.h"

/* X(part of the name after "CLATTN_"). */
#define CLA_VARIABLES(X)                                                                                                       \
    X(AVOID)                                                                                                                   \
    X(BUILD_OPTIONS)                                                                                                           \
    X(CACHE)                                                                                                                   \
    X(CACHE_DIR)                                                                                                               \
    X(DEVICE)                                                                                                                  \
    X(DEVICE_OVERRIDE)                                                                                                         \
    X(ENGINE)                                                                                                                  \
    X(OPENCL_LIBRARY)                                                                                                          \
    X(PROCESS_CHANGES)                                                                                                         \
    X(SELFCHECK)                                                                                                               \
    X(SOURCE_DIR)

enum cla_variable {
#define CLA_VARIABLE_ENUM(name) VARIABLE_##name,
    CLA_VARIABLES(CLA_VARIABLE_ENUM)
#undef CLA_VARIABLE_ENUM
        VARIABLE_COUNT
};

/* "CLATTN_ENGINE" and the like. */
const char *cla_variable_name(enum cla_variable variable);

/* The value; NULL when it is unset or empty, or when the application has the environment ignored. */
const char *cla_variable(bool ignored, enum cla_variable variable);

/* Appends the value of one that holds a path; false as above. */
bool cla_variable_path(bool ignored, enum cla_variable variable, struct text *out);

/* Whether it is set to this word. */
bool cla_variable_is(bool ignored, enum cla_variable variable, const char *word);

/* Fails as `cause` did, which came of the variable's value: the variable is the field, and the text says so. */
clattn_status cla_fail_variable(clattn_error *error, enum cla_variable variable, const clattn_error *cause);

#endif
