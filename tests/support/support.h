/* SPDX-License-Identifier: Apache-2.0
 * What every test includes: CMocka with the headers that it wants first, and the checks that all tests share. */
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

/* A status that must be SUCCESS; the library's own text is shown when it is not. */
#define assert_ok(status, error)                                                                                               \
    do {                                                                                                                       \
        const clattn_status assert_status_ = (status);                                                                         \
        if (assert_status_ != CLATTN_SUCCESS) {                                                                                \
            fail_msg("%s: field '%s': %s", clattn_status_name(assert_status_), (error)->field, (error)->message);              \
        }                                                                                                                      \
    } while (0)

/* A call that must fail, naming the field and leaving a text. */
#define assert_refused(status, wanted, error, wanted_field)                                                                    \
    do {                                                                                                                       \
        const clattn_status refused_status_ = (status);                                                                        \
        if (refused_status_ != (wanted) || strcmp((error)->field, (wanted_field)) != 0) {                                      \
            fail_msg("%s, field '%s' (%s); wanted %s, field '%s'", clattn_status_name(refused_status_), (error)->field,        \
                     (error)->message, clattn_status_name(wanted), (wanted_field));                                            \
        }                                                                                                                      \
        assert_int_equal((error)->status, (wanted));                                                                           \
        assert_true((error)->message[0] != '\0');                                                                              \
    } while (0)

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
