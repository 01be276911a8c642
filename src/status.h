/* SPDX-License-Identifier: Apache-2.0
 * How functions of the library fail: one status, and one function that writes the message. */
#ifndef CLATTN_STATUS_H
#define CLATTN_STATUS_H

#include "clattn/clattn.h"

/* The compiler would remove tests for NaN and infinity; cmake/compile.cmake sets the flags. */
#if defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__)
#error "compile clattn without -ffast-math and -ffinite-math-only (add -fno-fast-math -fno-finite-math-only after them)"
#endif

#if defined(__MINGW32__) && !defined(__clang__)
#define CLA_PRINTF(text, first) __attribute__((format(gnu_printf, text, first)))
#elif defined(__GNUC__)
#define CLA_PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#define CLA_PRINTF(text, first)
#endif

/* Writes status, field and message to *error (which may be NULL) and returns `status`. */
clattn_status cla_fail(clattn_error *error, clattn_status status, const char *field, const char *format, ...) CLA_PRINTF(4, 5);

/* The status for an OpenCL code: OUT_OF_HOST_MEMORY, DEVICE_LOST or OPENCL, with "clCall: CL_NAME (-5)" as the message. */
clattn_status cla_fail_cl(clattn_error *error, int32_t code, const char *call);

/* Clears *error; every public function begins with it. */
void cla_clear(clattn_error *error);

/* Adds the OpenCL code to what cla_fail wrote. */
void cla_set_cl_code(clattn_error *error, int32_t code);

/* Writes the library's own *from into the caller's *to. */
void cla_hand_on(const clattn_error *from, clattn_error *to);

/* Copies a caller's struct over *own, which has the defaults. The caller's may be older and shorter (at least `first` bytes),
 * or newer and longer if the fields unknown to this library are 0. `name` is for messages, such as "problem". Errors:
 * INVALID_ARGUMENT that names `name` or its struct_size. */
clattn_status cla_struct_take(const char *name, const void *given, size_t first, void *own, size_t own_size,
                              clattn_error *error);

/* "CL_OUT_OF_RESOURCES" for -5; "unknown code" for others. */
const char *cla_cl_name(int32_t code);

#define TRY(expression)                                                                                                        \
    do {                                                                                                                       \
        const clattn_status try_status_ = (expression);                                                                        \
        if (try_status_ != CLATTN_SUCCESS)                                                                                     \
            return try_status_;                                                                                                \
    } while (0)

/* The same for functions that must clean up: `status` is a local variable, and the code after the label `done` cleans up. */
#define TRY_GOTO(expression)                                                                                                   \
    do {                                                                                                                       \
        status = (expression);                                                                                                 \
        if (status != CLATTN_SUCCESS)                                                                                          \
            goto done;                                                                                                         \
    } while (0)

#endif
