/* SPDX-License-Identifier: Apache-2.0
 * The kernel source of a configuration: the defines that follow from problem, device and choice, then the engine's files. */
#ifndef CLATTN_KERNEL_TEXT_H
#define CLATTN_KERNEL_TEXT_H

#include "engine.h"
#include "source.h"

/* Adds types, head sizes, tile and the engine's own defines; never a length, stride, count, offset or scale. */
void cla_kernel_defines(const struct facts *facts, const clattn_problem *problem, const struct config *config,
                        struct text *out);

/* `folder` and errors: as cla_source_compose. */
clattn_status cla_kernel_source(const struct facts *facts, const clattn_problem *problem, const struct config *config,
                                const char *folder, struct source *source, clattn_error *error);

#endif
