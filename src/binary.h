/* SPDX-License-Identifier: Apache-2.0
 * Built programs as binaries. */
#ifndef CLATTN_BINARY_H
#define CLATTN_BINARY_H

#include "text.h"

/* Appends the binary that a built program holds for this device; false if the driver gives none. Some drivers compile only
 * when a kernel is created: a binary from before that would be useless. */
bool cla_binary_get(cl_program program, cl_device_id device, struct text *binary);

/* A program from such a binary, ready to create its kernels; NULL if the driver does not accept it. */
cl_program cla_binary_load(cl_context cl, cl_device_id device, const char *options, const struct text *binary);

#endif
