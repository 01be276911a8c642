/* SPDX-License-Identifier: Apache-2.0
 * All environment variables of the library, and the only functions that read them. docs/packaging.md and docs/clattn.1
 * describe the same variables (the test unit/environment compares them). */
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

/* The full name, such as "CLATTN_ENGINE". */
const char *cla_variable_name(enum cla_variable variable);

/* The value; NULL if it is unset or empty, or if the application ignores the environment. */
const char *cla_variable(bool ignored, enum cla_variable variable);

/* Appends the value of a variable that holds a path; false if it has none, as above. */
bool cla_variable_path(bool ignored, enum cla_variable variable, struct text *out);

/* Whether its value is this word. */
bool cla_variable_is(bool ignored, enum cla_variable variable, const char *word);

/* Fails as `cause` did because of the variable's value: the field is the variable's name, and the message says so. */
clattn_status cla_fail_variable(clattn_error *error, enum cla_variable variable, const clattn_error *cause);

#endif
