/* SPDX-License-Identifier: Apache-2.0
 * The tiny problems of the self-check and their data. */
#ifndef CLATTN_SELFCHECK_DATA_H
#define CLATTN_SELFCHECK_DATA_H

#include "engine.h"

enum { CLA_CHECK_CASES = 2, CLA_CHECK_BUFFERS = 9, CLA_CHECK_HEADS = 4 };

/* Buffers of one case: q, k, v, o, lse, mask, kv_lengths, bias, slopes, of which the last four may be NULL; and their contents
 * on the host, contiguous. */
struct check_data {
    const clattn_problem *problem;
    cl_mem buffers[CLA_CHECK_BUFFERS];
    float *q, *k, *v, *bias;
    float slopes[CLA_CHECK_HEADS];
    unsigned char *mask;
    size_t o_count, lse_count;
};

/* Problem number `number`, with the types and head sizes of `like` and everything else on which its kernel source depends. */
void cla_check_problem(const clattn_problem *like, const struct config *config, int number, clattn_problem *problem);

/* Number of keys of that sequence. */
int64_t cla_check_keys(const clattn_problem *problem, int64_t batch);

/* The tolerance for an engine: it may sum in another order and round weights and output to the storage type. */
double cla_check_tolerance(const clattn_problem *problem);

/* False if memory runs out; call cla_check_data_free in either case. */
bool cla_check_data_make(cl_context cl, const clattn_problem *problem, struct check_data *data);
void cla_check_data_free(struct check_data *data);

/* Fills the outputs with NaN and sets all buffers of a call. */
bool cla_check_data_bind(struct check_data *data, cl_command_queue queue, clattn_call *call);

/* Waits for the queue and reads the outputs as floats. */
bool cla_check_data_read(const struct check_data *data, cl_command_queue queue, float *o, float *lse);

#endif
