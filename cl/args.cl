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
    tensor_view lse;        /* dim unused */
    tensor_view scores;     /* seq is the query's stride, dim the key's; head 0 is score_head */
    tensor_view mask, bias; /* the same */
    tensor_view slopes;     /* batch and head only */
    long offset;            /* key position of query 0, with CORNER_EXPLICIT */
    long workspace;         /* its first float */
    long left, right;       /* keys i + offset - left ... i + offset + right are seen; OPEN_END where there is no limit */
    long total_q, total_kv; /* rows of the packed tensors */
    long sinks, factors;    /* first elements of these buffers */
    long q_lengths, kv_lengths, q_starts, kv_starts, offsets;
    long first_team;              /* a call cut into several launches starts here */
    long call_number;             /* no other call has it, where groups must know what this one wrote; else 0 */
    long classes;                 /* first byte, in the workspace, of the classes of the mask\'s tiles; -1: there are none */
    long class_batch, class_head; /* 0 where the batch or the heads share them */
    long together;                /* packed heads whose tiles come in turn, long ones first */
    int corner;
    int batches, heads_q, heads_kv;
    int seq_q, seq_kv;
    int group;                      /* query heads that share one key/value head */
    int pack;                       /* of these, how many lie in one tile's rows, neighbours in the row index; divides group */
    int q_blocks;                   /* tiles along the rows of one packed head */
    int chunk;                      /* keys of one chunk, a multiple of BLOCK_N, where a tile's keys are split; 0 otherwise */
    int chunks;                     /* 1 where they are not */
    int key_blocks;                 /* of a row of classes */
    int lse_floats;                 /* of an element of LSE: 0: not asked for, 2: maximum and sum */
    int scores_kind;                /* a number of clattn_scores_kind, 0: no scores wanted */
    int score_head, score_heads;    /* the first of the heads that they are wanted of; how many */
    int scores_only;                /* O and LSE come from another engine */
    int mask_columns, bias_columns; /* keys from there on are hidden */
    int has_mask, bias_type, has_slopes, has_sinks, has_factors;
    int q_lengths_type, kv_lengths_type, starts_type, offsets_type; /* INT32, INT64 or 0: absent */
    float scale;   /* scores = scale * (q . k); the base-two factor is folded in where it is used */
    float softcap; /* 0: none */
} launch_args;

#define SCORES_RAW 1
#define SCORES_SOFTCAP 2
#define SCORES_BIAS 3
#define SCORES_SOFTMAX 4

/* What a tile of an explicit mask and bias holds: a key that is seen, one that the mask hides, a bias other than 0, and one
 * that is not below 1e30 in size: infinite, no number, or near the end of a float. */
#define CLASS_SEEN 1
#define CLASS_MASKED 2
#define CLASS_BIASED 4
#define CLASS_LARGE 8
#define CLASS_ANY 15

#define INT32 1
#define INT64 2

#define CORNER_TOP_LEFT 0
#define CORNER_BOTTOM_RIGHT 1
#define CORNER_EXPLICIT 2
#define OPEN_END ((long)1 << 40)

/* One signature serves every kernel: absent buffers are NULL. */
#define KERNEL_PARAMETERS                                                                                                      \
    __global const void *restrict q_data, __global const void *restrict k_data, __global const void *restrict v_data,          \
        __global void *restrict o_data, __global float *restrict lse_data, __global float *restrict scores_data,               \
        __global float *restrict workspace, __global const uchar *restrict mask_data, __global const void *restrict bias_data, \
        __global const float *restrict factors_data, __global const float *restrict slopes_data,                               \
        __global const float *restrict sinks_data, __global const void *restrict q_lengths_data,                               \
        __global const void *restrict kv_lengths_data, __global const void *restrict q_starts_data,                            \
        __global const void *restrict kv_starts_data, __global const void *restrict offsets_data, const launch_args args

#define KERNEL_ARGUMENTS                                                                                                       \
    q_data, k_data, v_data, o_data, lse_data, scores_data, workspace, mask_data, bias_data, factors_data, slopes_data,         \
        sinks_data, q_lengths_data, kv_lengths_data, q_starts_data, kv_starts_data, offsets_data, args

/* The buffers of options, to be handed on together. */
typedef struct {
    __global const uchar *mask;
    __global const void *bias;
    __global const float *factors, *slopes, *sinks;
    __global const void *q_lengths, *kv_lengths, *q_starts, *kv_starts, *offsets;
} option_data;

#define OPTION_DATA                                                                                                            \
    {                                                                                                                          \
        mask_data, bias_data, factors_data, slopes_data, sinks_data, q_lengths_data, kv_lengths_data, q_starts_data,           \
            kv_starts_data, offsets_data                                                                                       \
    }

/* On memory that is little-endian, as load_any on one compiler. */
FN long load_integer(__global const void *p, int type, long i)
{
#ifdef LOADS_EVERY_WAY
    __global const int *u = (__global const int *)p + (type == INT64 ? 2 * i : i);
    const long low = u[0], high = u[type == INT64];
    return type == INT64 ? (low & 0xffffffffL) | high << 32 : low;
#else
    return type == INT64 ? ((__global const long *)p)[i] : (long)((__global const int *)p)[i];
#endif
}

/* Bits of SCORE_OPTIONS: what the text knows of what changes or hides scores. Which of it a call has is asked at run time. */
#define OPTION_MASK 1
#define OPTION_BIAS 2
#define OPTION_SOFTCAP 4
#define OPTION_SLOPES 8
FN int has_mask(const launch_args *a) { return SCORE_OPTIONS & OPTION_MASK ? a->has_mask : 0; }
FN int has_bias(const launch_args *a) { return SCORE_OPTIONS & OPTION_BIAS ? a->bias_type : 0; }
FN int has_softcap(const launch_args *a) { return SCORE_OPTIONS & OPTION_SOFTCAP ? a->softcap != 0.0f : 0; }
FN int has_slopes(const launch_args *a) { return SCORE_OPTIONS & OPTION_SLOPES ? a->has_slopes : 0; }
/* Whether options may hide keys. */
#define MAY_HIDE ((SCORE_OPTIONS & (OPTION_MASK | OPTION_BIAS)) != 0)
