/* SPDX-License-Identifier: Apache-2.0
 * Whole numbers in text. */
#ifndef CLATTN_TOOLS_NUMBER_H
#define CLATTN_TOOLS_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

/* Reads the decimal number at *text and moves *text past it. False: there is none, or it does not fit. */
bool number_read(const char **text, int64_t *value);

#endif
