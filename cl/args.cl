/* SPDX-License-Identifier: Apache-2.0
 * The numbers of one call, passed by value: nothing of them stands in kernel text. The twin of `struct launch_args` in
 * src/launch.h; a test sends one through a kernel and compares every field.
 */

/* Element (b, h, s, d) stands at base + b*batch + h*head + s*seq + d*dim. */
typedef struct {
    long base, batch, head, seq, dim;
} tensor_view;

typedef struct {
    tensor_view q, k, v, o;
    tensor_view lse;    /* dim unused */
    tensor_view scores; /* seq is the query's stride, dim the key's */
    long offset;        /* key position of query 0, with CORNER_EXPLICIT */
    long workspace;     /* its first float */
    long left, right;   /* keys i + offset - left ... i + offset + right are seen; OPEN_END where there is no limit */
    int corner;
    int batches, heads_q, heads_kv;
    int seq_q, seq_kv;
    int group;    /* query heads that share one key/value head */
    int pack;     /* of these, how many lie in one tile's rows, neighbours in the row index; divides group */
    int q_blocks; /* tiles along the rows of one packed head */
    int has_lse, has_scores;
    float scale; /* scores = scale * (q . k); the base-two factor is folded in where it is used */
} launch_args;

#define CORNER_TOP_LEFT 0
#define CORNER_BOTTOM_RIGHT 1
#define CORNER_EXPLICIT 2
#define OPEN_END ((long)1 << 40)

/* One signature serves every kernel: absent buffers are NULL. */
#define KERNEL_PARAMETERS                                                                                                      \
    __global const void *restrict q_data, __global const void *restrict k_data, __global const void *restrict v_data,          \
        __global void *restrict o_data, __global float *restrict lse_data, __global float *restrict scores_data,               \
        __global float *restrict workspace, const launch_args args
