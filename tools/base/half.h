/* SPDX-License-Identifier: Apache-2.0
 * Storage types on the host: one element of typed memory to float and back. float holds every value of every type exactly. */
#ifndef CLATTN_TOOLS_HALF_H
#define CLATTN_TOOLS_HALF_H

#include "clattn/clattn.h"

float half_to_float(uint16_t bits);
uint16_t half_from_float(float x); /* to nearest even; past 65504 infinity, as the hardware does; a NaN stays a NaN */
float bf16_to_float(uint16_t bits);
uint16_t bf16_from_float(float x);

size_t storage_size(clattn_type type); /* bytes of one element */
const char *storage_name(clattn_type type);
float storage_get(clattn_type type, const void *data, int64_t index);
void storage_set(clattn_type type, void *data, int64_t index, float x);
float storage_round(clattn_type type, float x); /* x rounded to the type */

/* A quiet NaN with a payload that no computation makes: an element that still holds it was not written. */
uint32_t storage_poison(clattn_type type);
void storage_fill_poison(clattn_type type, void *data, int64_t count);
bool storage_is_poison(clattn_type type, const void *data, int64_t index);

#endif
