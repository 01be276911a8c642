/* SPDX-License-Identifier: Apache-2.0
 * The arguments of one call, passed by value. The kernel source holds none of them. The same as `struct launch_args` in
 * src/launch.h; a test sends one through a kernel and compares every field.
 */

/* Element (b, h, s, d) is at base + b*batch + h*head + s*seq + d*dim. */
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
    long left, right;       /* query i sees keys i + offset - left ... i + offset + right; OPEN_END: no limit */
    long total_q, total_kv; /* rows of the packed tensors */
    long sinks, factors;    /* first elements of these buffers */
    long q_lengths, kv_lengths, q_starts, kv_starts, offsets;
    long first_team;              /* first team of this launch, where a call is cut into several */
    long call_number;             /* unique to the call where groups must know what this call wrote; else 0 */
    long classes;                 /* byte offset in the workspace of the classes of mask tiles; -1: none */
    long class_batch, class_head; /* 0 where the batch entries or the heads share the classes */
    long together;                /* packed heads whose tiles alternate, long ones first */
    int corner;
    int batches, heads_q, heads_kv;
    int seq_q, seq_kv;
    int group;                   /* query heads that share one key/value head */
    int pack;                    /* of these heads, how many share one tile's rows, adjacent in the row index; divides group */
    int q_blocks;                /* tiles along the rows of one packed head */
    int chunk;                   /* keys of one chunk, a multiple of BLOCK_N; 0: the keys of a tile are not split */
    int chunks;                  /* chunks of a tile; 1: not split */
    int key_blocks;              /* key blocks of a row of classes */
    int lse_floats;              /* floats of an LSE element; 0: LSE is not wanted, 2: maximum and sum */
    int scores_kind;             /* a number of clattn_scores_kind; 0: scores are not wanted */
    int score_head, score_heads; /* the first head whose scores are wanted, and how many heads */
    int scores_only;             /* another engine writes O and LSE */
    int mask_columns, bias_columns; /* keys from this one on are masked */
    int has_mask, bias_type, has_slopes, has_sinks, has_factors;
    int q_lengths_type, kv_lengths_type, starts_type, offsets_type; /* INT32, INT64, or 0 where absent */
    float scale;   /* scores = scale * (q . k); kernels fold in the base-two factor themselves */
    float softcap; /* 0: none */
} launch_args;

#define SCORES_RAW 1
#define SCORES_SOFTCAP 2
#define SCORES_BIAS 3
#define SCORES_SOFTMAX 4

/* Class bits of a tile of an explicit mask and bias: it has a visible key, a masked key, a bias other than 0, or a bias that is
 * not below 1e30 in magnitude (infinite, NaN, or near the largest float). */
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

/* Every kernel has the same signature. Absent buffers are NULL. */
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

/* The buffers of options, passed on together. */
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

/* Assumes little-endian memory. LOADS_EVERY_WAY: for the same compiler as in load_any. */
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

/* Bits of SCORE_OPTIONS: the options that this kernel source supports. At run time a kernel tests which of them a call uses. */
#define OPTION_MASK 1
#define OPTION_BIAS 2
#define OPTION_SOFTCAP 4
#define OPTION_SLOPES 8
FN int has_mask(const launch_args *a) { return SCORE_OPTIONS & OPTION_MASK ? a->has_mask : 0; }
FN int has_bias(const launch_args *a) { return SCORE_OPTIONS & OPTION_BIAS ? a->bias_type : 0; }
FN int has_softcap(const launch_args *a) { return SCORE_OPTIONS & OPTION_SOFTCAP ? a->softcap != 0.0f : 0; }
FN int has_slopes(const launch_args *a) { return SCORE_OPTIONS & OPTION_SLOPES ? a->has_slopes : 0; }
/* Whether options can mask keys. */
#define MAY_HIDE ((SCORE_OPTIONS & (OPTION_MASK | OPTION_BIAS)) != 0)
