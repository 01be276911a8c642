/* SPDX-License-Identifier: Apache-2.0
 * The options of attention as `clattn run` takes them: texts and .npy files into a problem and the buffers of its call. */
#ifndef CLATTN_TOOLS_RUN_OPTIONS_H
#define CLATTN_TOOLS_RUN_OPTIONS_H

#include "session.h"
#include "trial.h"

/* As given on the command line; NULL (softcap 0) where absent. */
struct run_options {
    const char *causal, *corner, *offset, *window;
    double softcap;
    const char *mask, *bias, *alibi, *sink;
    const char *q_lengths, *kv_lengths, *cu_q, *cu_k;
    const char *scores[2]; /* kind and file */
};

/* Where the diagonal lies, window, softcap, and which scores are wanted. */
int run_options_set(const struct run_options *options, clattn_problem *problem);

/* Reads the starts of packed sequences, if there are any: the problem's sizes, of one batch entry that holds all rows, become
 * those of the sequences. */
int run_options_starts(const struct run_options *options, clattn_problem *problem, struct trial_data *data);

/* Reads the other files, for a problem whose sizes are valid. `data` receives the tensors of options, its others are left
 * alone. */
int run_options_read(const struct run_options *options, clattn_problem *problem, struct trial_data *data);
void run_options_free(struct trial_data *data);

/* Puts them on the device. */
int run_options_send(const struct trial_data *data, struct runner *runner);

#endif
