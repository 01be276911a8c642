/* SPDX-License-Identifier: Apache-2.0
 * A device in use: a context and a queue on it; and one plan with its buffers, run from host arrays. */
#ifndef CLATTN_TOOLS_SESSION_H
#define CLATTN_TOOLS_SESSION_H

#include "cli.h"

struct session {
    const char *command; /* for messages */
    clattn_context *context;
    cl_command_queue queue;
};

/* Functions return CLI_OK, or the exit code after the message was printed. */
int session_open(struct session *session, const char *command, const char *device);
/* The same without the cache on disk: programs built only for checks are not worth the time to store. */
int session_open_uncached(struct session *session, const char *command, const char *device);
void session_close(struct session *session);

/* Whether the sizes go together, so that some engine could serve the problem. Needs no device; false with the error set. */
bool session_problem_is_valid(const clattn_problem *problem, clattn_error *error);

/* Fails for a name that is no engine's; `also` (may be NULL) is one more allowed name. */
int session_refuse_engines(const char *command, const struct cli_list *engines, const char *also);

/* "NVIDIA H200 (NVIDIA CUDA, driver 580.1)", from malloc; NULL when memory is out. */
char *session_device_text(const struct session *session);

enum runner_tensor { RUN_Q, RUN_K, RUN_V, RUN_O, RUN_LSE, RUN_SCORES, RUN_TENSORS };

enum { RUN_MAX_OPTIONS = 10 };

/* A plan with a device buffer for each of its tensors. Dense tensors only: what clattn_problem_set_layout makes. */
struct runner {
    struct session *session;
    clattn_problem problem;
    clattn_plan *plan;
    size_t bytes[RUN_TENSORS];
    cl_mem buffers[RUN_TENSORS], workspace;
    cl_mem options[RUN_MAX_OPTIONS]; /* what runner_option made */
    size_t option_count;
    size_t workspace_bytes;
    clattn_call call; /* ready to run; the caller may alter sizes and offsets */
};

int runner_open(struct runner *runner, struct session *session, const clattn_problem *problem, const char *engine);
void runner_close(struct runner *runner);

/* Puts the buffer of an option on the device; *argument, a member of runner->call, is set to it. */
int runner_option(struct runner *runner, const char *what, const void *data, size_t bytes, clattn_buffer *argument);

int runner_write(struct runner *runner, enum runner_tensor tensor, const void *data);
int runner_read(struct runner *runner, enum runner_tensor tensor, void *data);

/* Runs the call to its end; *seconds (may be NULL) is the time between enqueuing and completion on the host's clock. */
int runner_run(struct runner *runner, double *seconds);

/* Median time of enough runs, after a warm-up, that take about `budget` seconds in all; at least one. */
int runner_time(struct runner *runner, double budget, double *seconds);

#endif
