/* SPDX-License-Identifier: Apache-2.0
 * A layer between the OpenCL loader and the driver, for tests: it counts calls and objects, makes one call fail, and changes
 * what a device reports. The loader loads it where OPENCL_LAYERS names it; a test finds its state with layer_open. */
#ifndef CLATTN_TESTS_LAYER_H
#define CLATTN_TESTS_LAYER_H

#include <CL/cl.h>

#include <stdatomic.h>
#include <stdbool.h>

enum layer_kind { LAYER_CONTEXT, LAYER_QUEUE, LAYER_MEMORY, LAYER_PROGRAM, LAYER_KERNEL, LAYER_EVENT, LAYER_KINDS };

struct layer_state {
    /* Set by the test. */
    atomic_bool counting;      /* calls are counted and may fail */
    atomic_long fail_at;       /* the call with this number fails, counted from 1; 0: none */
    const char *fail_names[2]; /* every call of these names fails; NULL: none */
    cl_int fail_code;
    const char *driver_version; /* what every device reports; NULL: unchanged */
    size_t work_group_limit;    /* the largest group that a kernel runs with, as devices report it; 0: unchanged */
    const char *limited_kernel; /* the only kernel that this is said of; NULL: all */

    /* Set by the layer. */
    atomic_long calls;
    char failed[64];               /* the call that failed; "" */
    atomic_long live[LAYER_KINDS]; /* references held by the application */
    atomic_long source_builds, binary_builds;
    atomic_long buffer_bytes; /* of buffers made while calls are counted */
};

/* The name under which the layer offers its state. */
#define LAYER_STATE_NAME "layer_state"

#endif
