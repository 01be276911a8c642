/* SPDX-License-Identifier: Apache-2.0
 * Asks an OpenCL device for its facts. If a query fails, its fact is 0 or "", so that a device with faulty queries is still
 * listed. */
#ifndef CLATTN_PROBE_H
#define CLATTN_PROBE_H

#include "facts.h"

/* Then applies `overrides` and, unless the environment is ignored, CLATTN_DEVICE_OVERRIDE. Errors: INVALID_ARGUMENT (malformed
 * override). */
clattn_status cla_probe(cl_device_id device, const char *overrides, bool ignore_environment, struct facts *facts,
                        clattn_error *error);

/* A string of OpenCL on one line, truncated if it is too long; "" if the query fails. */
void cla_read_device_text(cl_device_id device, cl_device_info name, char *out, size_t size);
void cla_read_platform_text(cl_platform_id platform, cl_platform_info name, char *out, size_t size);

#endif
