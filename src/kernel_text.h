/* SPDX-License-Identifier: Apache-2.0
 * The text of a configuration: the defines that follow from problem, device and choice, then the engine's files. */
#ifndef CLATTN_KERNEL_TEXT_H
#define CLATTN_KERNEL_TEXT_H

#include "engine.h"
#include "source.h"

/* Types, head sizes, tile and what the engine adds; no length, stride, count, offset or scale ever. */
void cla_kernel_defines(const struct facts *facts, const clattn_problem *problem, const struct config *config,
                        struct text *out);

/* `folder` and errors: as cla_source_compose. */
clattn_status cla_kernel_source(const struct facts *facts, const clattn_problem *problem, const struct config *config,
                                const char *folder, struct source *source, clattn_error *error);

#endif
