/* SPDX-License-Identifier: Apache-2.0
 * Real devices and problems for tests of pure functions. */
#ifndef CLATTN_TESTS_DEVICE_FACTS_H
#define CLATTN_TESTS_DEVICE_FACTS_H

#include "engine.h"
#include "facts.h"

#define DEVICE_FACTS CLATTN_SOURCE_DIR "/tests/devices"

/* The facts of a file in there; the test fails where they cannot be read. */
void device_facts_read(const char *name, struct facts *facts);

/* The problem of a SHAPE text, with a scale. */
clattn_problem shape_of(const char *text);

/* The number that the kernel source of a configuration defines under this name. Fails the test where there is none. */
int define_of(const struct facts *facts, const clattn_problem *problem, const struct config *config, const char *name);

#endif
