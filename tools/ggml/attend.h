/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention in ggml's terms through clattn: the part of the back end that another application would write too. */
#ifndef GGML_CLATTN_ATTEND_H
#define GGML_CLATTN_ATTEND_H

#define CL_TARGET_OPENCL_VERSION 200
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS /* queues as any OpenCL makes them */
#include <clattn/clattn.h>

#include "ggml-backend-impl.h"
#include "ggml-impl.h"

/* Memory: a cl_mem whose addresses ggml sees as FAKE_BASE and on, or a pointer that the host may use too. */
struct memory {
    cl_command_queue queue; /* of copies to and from it */
    cl_mem mem;
    void *pointer;
};

#define FAKE_BASE ((char *)(uintptr_t)0x10000)

enum { MAX_PLANS = 64 };

/* A plan serves any lengths up to its bounds: powers of two, so that a growing cache seldom asks for another. */
struct kept_plan {
    clattn_plan *plan;
    int64_t seq_q, seq_kv;
    float max_bias;
    cl_mem factors; /* with max_bias: what the mask is multiplied by, one a head */
    size_t used;
};

/* A queue, its plans and scratch memory. For one thread at a time. */
struct stream {
    clattn_context *clattn;
    cl_command_queue queue; /* in-order */
    cl_mem workspace;
    size_t workspace_size;
    struct kept_plan plans[MAX_PLANS];
    size_t clock;
};

/* Describes a FLASH_ATTN_EXT; returns NULL, or the reason why not. */
const char *take_problem(const struct ggml_tensor *op, clattn_problem *problem);

/* Enqueues one. On failure the log says why. */
bool attend(struct stream *stream, const struct ggml_tensor *op);

void stream_init(struct stream *stream, clattn_context *clattn, cl_command_queue queue);
/* Waits for what is enqueued. */
void stream_release(struct stream *stream);

bool complain(const char *what, const char *why);

#endif
