/* SPDX-License-Identifier: Apache-2.0
 * The expected result: attention by plain loops on the host, in double precision, written from docs/semantics.md and sharing no
 * line with the library. Also the same loops in the kernels' own arithmetic (fp32 sums): their error against the double loops
 * is the error that is unavoidable for these numbers. */
#ifndef CLATTN_TOOLS_ORACLE_H
#define CLATTN_TOOLS_ORACLE_H

#include "clattn/clattn.h"

#if defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__)
#error "the oracle cannot detect NaN with -ffast-math or -ffinite-math-only"
#endif

struct oracle_call {
    const clattn_problem *problem;      /* types, heads, head sizes, strides, options; its batch and lengths are not used */
    int64_t batch, seq_q, seq_kv;       /* what this call uses of them */
    int64_t offset;                     /* with CLATTN_EXPLICIT */
    float scale;                        /* NaN: 1/sqrt(head_dim_qk) */
    const void *q, *k, *v;              /* element (0, 0, 0, 0) of each in its storage type; strides may reach below it */
    int64_t window_left, window_right;  /* -1: open */
    int64_t mask_columns, bias_columns; /* -1: all keys */
    /* First elements of the buffers of options that the problem has. */
    const uint8_t *mask;
    const void *bias;
    const float *bias_factors, *alibi, *sinks;
    const void *q_lengths, *kv_lengths, *offsets, *q_starts, *kv_starts;
};

/* All numbers as in the problem, no buffers. */
void oracle_call_init(struct oracle_call *call, const clattn_problem *problem);

/* One sequence of the batch: its lengths made safe, and where it lies in packed tensors. */
struct oracle_sequence {
    int64_t q_rows;              /* rows that the output has of it: all of a padded sequence, its own of a packed one */
    int64_t kv_rows;             /* the same of K and V */
    int64_t q_length, kv_length; /* queries and keys that are real */
    int64_t q_start, kv_start;   /* first rows in packed tensors, otherwise 0 */
    int64_t offset;              /* the key position of query 0 */
};
void oracle_sequence_find(const struct oracle_call *call, int64_t batch, struct oracle_sequence *sequence);

/* Does query i of this head see key j? */
bool oracle_sees(const struct oracle_call *call, const struct oracle_sequence *sequence, int64_t batch, int64_t head, int64_t i,
                 int64_t j);

struct oracle {
    struct oracle_call call;
    struct oracle_sequence sequence; /* of batch entry `batch` */
    int64_t batch, kv_head;          /* whose keys and values are held below as float; -1: none yet */
    int64_t head, row;               /* whose query is held, and which keys it sees */
    float *k, *v, *q;
    bool *seen;
    double *weights;
    float *plain_weights;
};

/* False: out of memory, and nothing is to be freed. */
bool oracle_begin(struct oracle *oracle, const struct oracle_call *call);
void oracle_end(struct oracle *oracle);

/* Row i of head h in double precision: head_dim_v outputs, the LSE, and (unless NULL) the seq_kv weights. Rows are fastest
 * asked for in the order of their heads. */
void oracle_row(struct oracle *oracle, int64_t batch, int64_t head, int64_t row, double *o, double *lse, double *weights);

/* The same row in fp32, stored in the output's type at the end, by plain loops: one in natural exponentials, one in base two
 * that sums products from the last to the first, since one loop alone may have an unusually small error. round_weights: the
 * weights are rounded to V's storage type before the second product, as engines that multiply in that type do. For these a
 * third loop sums the products of a score as matrix units do, 16 at a time, and cuts each sum instead of rounding it, with a
 * tanh that is as far off as OpenCL allows; without, it is the first again. */
enum { ORACLE_PLAIN_NATURAL, ORACLE_PLAIN_BASE_TWO, ORACLE_PLAIN_CUT, ORACLE_PLAIN_FORMS };
struct oracle_plain {
    float *o[ORACLE_PLAIN_FORMS], *weights[ORACLE_PLAIN_FORMS]; /* the caller's; weights may be NULL */
    float lse[ORACLE_PLAIN_FORMS];
};
void oracle_plain_row(struct oracle *oracle, int64_t batch, int64_t head, int64_t row, bool round_weights,
                      struct oracle_plain *plain);

/* Scores of the same row before softmax, seq_kv numbers: CLATTN_SCORES_RAW, _SOFTCAP or _BIAS; and the same in fp32. */
void oracle_scores(struct oracle *oracle, int64_t batch, int64_t head, int64_t row, clattn_scores_kind kind, double *scores,
                   float *plain);

/* All rows: o[batch][heads_q][seq_q][head_dim_v] and lse[batch][heads_q][seq_q] (or NULL), contiguous. False: out of memory. */
bool oracle_attention(const struct oracle_call *call, double *o, double *lse);

#endif
