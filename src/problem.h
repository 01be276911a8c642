/* SPDX-License-Identifier: Apache-2.0
 * The caller's problem, converted to this library's version of the struct and checked. */
#ifndef CLATTN_PROBLEM_H
#define CLATTN_PROBLEM_H

#include "status.h"

/* Copies a caller's struct, which may be older and shorter, and fills in fields left unset (scale). Then checks every field
 * that does not need a device. Errors: INVALID_ARGUMENT that names the field. */
clattn_status cla_problem_take(const clattn_problem *given, clattn_problem *problem, clattn_error *error);

/* Whether softcap, mask, bias or ALiBi change the scores: then the kernel source contains the code for them. */
bool cla_problem_alters_scores(const clattn_problem *problem);

/* Number of query heads whose scores are output. */
int64_t cla_score_heads(const clattn_problem *problem);

/* Whether no tensor element would be written. */
bool cla_problem_is_empty(int64_t batch, int64_t heads_q, int64_t seq_q);

/* Query heads that share a key/value head; 1 without heads. */
int64_t cla_group_size(const clattn_problem *problem);

/* Batch entries and rows of Q and O, of K and V: packed sequences are one entry with all their rows; otherwise there are
 * `batch` entries of `seq` rows, sizes of the problem or of a call. */
int64_t cla_entries(const clattn_problem *problem, int64_t batch);
int64_t cla_rows_q(const clattn_problem *problem, int64_t seq_q);
int64_t cla_rows_kv(const clattn_problem *problem, int64_t seq_kv);

/* Whether sequences are packed and none of them has a query row. */
bool cla_packs_no_row(const clattn_problem *problem);

/* Lowest and highest element that a tensor of these sizes touches, relative to its base; false when it has none.
 * Saturates instead of wrapping. */
bool cla_tensor_extent(const int64_t sizes[4], const int64_t strides[4], int64_t *lowest, int64_t *highest);

/* Two elements of an output at one address would race. Only the simple mistake (stride 0) is detected. */
clattn_status cla_check_output_stride(const char *field, int64_t size, int64_t stride, clattn_error *error);

/* Whether there are so many rows that the sizes of launches could wrap. */
clattn_status cla_check_rows(const char *field, int64_t batch, int64_t heads, int64_t seq_q, clattn_error *error);

const char *cla_type_name(clattn_type type);
const char *cla_corner_name(clattn_corner corner);

/* A struct that ends before its options was not set by clattn_problem_init. */
#define CLA_PROBLEM_LEAST_SIZE offsetof(clattn_problem, scale)

enum { CLA_MAX_HEAD_DIM = 65536 };
#define CLA_MAX_SEQ ((int64_t)1 << 29)
#define CLA_MAX_ROWS ((int64_t)1 << 50)

#endif
