/* SPDX-License-Identifier: Apache-2.0
 * What every test includes: CMocka with the headers that it needs first, and the checks that all tests share. */
#ifndef CLATTN_TESTS_SUPPORT_H
#define CLATTN_TESTS_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef CLATTN_EXPERIMENTAL
#define CLATTN_EXPERIMENTAL
#endif
#include "clattn/clattn.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* A call that must succeed; the library's own text is shown when it does not. */
#define assert_ok(call, error_) check_ok((call), (error_), __FILE__, __LINE__)

/* A call that must fail with this status, naming this field and leaving a text. */
#define assert_refused(call, wanted, error_, wanted_field)                                                                     \
    check_refused((call), (wanted), (error_), (wanted_field), __FILE__, __LINE__)

static inline void check_ok(clattn_status status, const clattn_error *error, const char *file, int line)
{
    if (status != CLATTN_SUCCESS) {
        fail_msg("%s:%d: %s: field '%s': %s", file, line, clattn_status_name(status), error->field, error->message);
    }
}

static inline void check_refused(clattn_status status, clattn_status wanted, const clattn_error *error, const char *field,
                                 const char *file, int line)
{
    if (status != wanted || error->status != wanted || strcmp(error->field, field) != 0 || error->message[0] == '\0') {
        fail_msg("%s:%d: %s, field '%s' (%s); wanted %s, field '%s'", file, line, clattn_status_name(status), error->field,
                 error->message, clattn_status_name(wanted), field);
    }
}

#define assert_contains(text, part)                                                                                            \
    do {                                                                                                                       \
        if (strstr((text), (part)) == NULL) {                                                                                  \
            fail_msg("'%s' is not in: %s", (part), (text));                                                                    \
        }                                                                                                                      \
    } while (0)

#define assert_lacks(text, part)                                                                                               \
    do {                                                                                                                       \
        if (strstr((text), (part)) != NULL) {                                                                                  \
            fail_msg("'%s' is in: %s", (part), (text));                                                                        \
        }                                                                                                                      \
    } while (0)

#endif
