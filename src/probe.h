/* SPDX-License-Identifier: Apache-2.0
 * Asks an OpenCL device for its facts. A query that fails leaves its fact 0 or "": a device that misreports must not hide
 * itself. */
#ifndef CLATTN_PROBE_H
#define CLATTN_PROBE_H

#include "facts.h"

/* Then applies `overrides` and, unless the environment is ignored, CLATTN_DEVICE_OVERRIDE. Errors: INVALID_ARGUMENT (malformed
 * override). */
clattn_status cla_probe(cl_device_id device, const char *overrides, bool ignore_environment, struct facts *facts,
                        clattn_error *error);

#endif
