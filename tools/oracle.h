/* SPDX-License-Identifier: Apache-2.0
 * What the answer should be: attention by plain loops on the host, in double precision, written from docs/semantics.md and
 * sharing no line with the library. Beside it the same loops in the kernels' own arithmetic (fp32 sums), whose error against
 * the double ones says how much error is in the nature of the numbers. */
#ifndef CLATTN_TOOLS_ORACLE_H
#define CLATTN_TOOLS_ORACLE_H

#include "clattn/clattn.h"

struct oracle_call {
    const clattn_problem *problem; /* types, heads, head sizes, strides, options; its batch and lengths are not used */
    int64_t batch, seq_q, seq_kv;  /* what this call uses of them */
    int64_t offset;                /* with CLATTN_EXPLICIT */
    float scale;                   /* NaN: 1/sqrt(head_dim_qk) */
    const void *q, *k, *v;         /* element (0, 0, 0, 0) of each in its storage type; strides may reach below it */
};

struct oracle {
    struct oracle_call call;
    int64_t batch, kv_head; /* whose keys and values are held below as float; -1: none yet */
    float *k, *v, *q;
    double *weights;
    float *plain_weights;
};

/* False: out of memory, and there is nothing to end. */
bool oracle_begin(struct oracle *oracle, const struct oracle_call *call);
void oracle_end(struct oracle *oracle);

/* Row i of head h in double precision: head_dim_v outputs, the LSE, and (unless NULL) the seq_kv weights. Rows are fastest
 * asked for in the order of their heads. */
void oracle_row(struct oracle *oracle, int64_t batch, int64_t head, int64_t row, double *o, double *lse, double *weights);

/* The same row in fp32, stored in the output's type at the end. round_weights: the weights are rounded to V's storage type
 * before the second product, as engines that multiply in that type do. */
void oracle_plain_row(struct oracle *oracle, int64_t batch, int64_t head, int64_t row, bool round_weights, float *o,
                      float *lse);

/* All rows: o[batch][heads_q][seq_q][head_dim_v] and lse[batch][heads_q][seq_q] (or NULL), contiguous. False: out of memory. */
bool oracle_attention(const struct oracle_call *call, double *o, double *lse);

/* The key position of query row 0. */
int64_t oracle_offset(const struct oracle_call *call);

#endif
