/* SPDX-License-Identifier: Apache-2.0
 * Built programs as bytes. */
#ifndef CLATTN_BINARY_H
#define CLATTN_BINARY_H

#include "text.h"

/* Appends the binary that a built program holds for this device; false if the driver gives none. Some drivers compile when a
 * kernel is created, so that an earlier binary would be of no use. */
bool cla_binary_get(cl_program program, cl_device_id device, struct text *binary);

/* A program whose kernels can be created, from such bytes; NULL if the driver does not take them. */
cl_program cla_binary_load(cl_context cl, cl_device_id device, const char *options, const struct text *binary);

#endif
