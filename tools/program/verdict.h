/* SPDX-License-Identifier: Apache-2.0
 * Compares a user's arrays with the oracle, within the tolerance of docs/semantics.md. */
#ifndef CLATTN_TOOLS_VERDICT_H
#define CLATTN_TOOLS_VERDICT_H

#include "trial.h"

/* Dense arrays in the problem's layout and types; inputs are q, k, v; lse and scores may be NULL. `options` holds the tensors
 * of the problem's options, with no guards; NULL: it has none. Prints one line, and one more when it is wrong. Returns CLI_OK
 * or CLI_CHECK_FAILED. */
int verdict_print(const char *command, const char *engine, const clattn_problem *problem, const struct trial_data *options,
                  void *const inputs[3], void *o, float *lse, float *scores);

#endif
