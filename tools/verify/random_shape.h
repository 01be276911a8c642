/* SPDX-License-Identifier: Apache-2.0
 * Random trials: options in any combination. */
#ifndef CLATTN_TOOLS_RANDOM_SHAPE_H
#define CLATTN_TOOLS_RANDOM_SHAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The next trial of the sequence given by *state, as text for trial_parse. Few types and head sizes, since each pair is
 * a program more an engine; `many`: more of them. */
void random_shape(uint64_t *state, bool many, char *text, size_t size);

#endif
