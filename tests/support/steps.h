/* SPDX-License-Identifier: Apache-2.0
 * The life of a context in steps, each of which a test can disturb: create, plan, enqueue, merge, destroy. */
#ifndef CLATTN_TESTS_STEPS_H
#define CLATTN_TESTS_STEPS_H

#include "buffers.h"

/* What all sessions of a program work on: made with the driver alone, not by the library. */
struct stage {
    cl_context cl;
    cl_device_id device;
    cl_command_queue queue;
    char *folder; /* the cache's */
    clattn_problem problem;
    struct buffers buffers;
    clattn_error error; /* of the last step */
};
extern struct stage stage;

void stage_open(void);
void stage_close(void);
/* Removes all entries of the cache. */
void stage_forget(void);

/* What a step works on, and its results. */
struct session {
    clattn_context *context;
    clattn_plan *plan;
    bool own_cl; /* the library makes the OpenCL context */
};

enum { STEP_CONTEXT, STEP_PLAN, STEP_ENQUEUE, STEP_MERGE, STEPS };

clattn_status step_run(struct session *session, size_t step);
/* Runs steps first ... last - 1, which must succeed. */
void steps_run(struct session *session, size_t first, size_t last);
void session_close(struct session *session);

#endif
