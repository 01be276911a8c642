/* SPDX-License-Identifier: Apache-2.0
 * Tests that run under the layer of tests/layer. */
#ifndef CLATTN_TESTS_LAYERED_H
#define CLATTN_TESTS_LAYERED_H

#include "support.h"

#include "../layer/layer.h"

/* Asks the loader for the layer: before the first OpenCL call of the process. */
void layer_request(void);

/* Its state; fails the test unless the loader has loaded it and calls go through it. */
struct layer_state *layer_open(void);

/* The sum of live objects. */
long layer_live(const struct layer_state *layer);

#endif
