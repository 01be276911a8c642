/* SPDX-License-Identifier: Apache-2.0
 * One trial: inputs made from a seed, one attention by the library, and the verdict of the oracle. Every buffer lies between
 * guard bands, gaps between strides included; what must not be read is NaN, what must be written is poisoned first. */
#ifndef CLATTN_TOOLS_TRIAL_H
#define CLATTN_TOOLS_TRIAL_H

#include "oracle.h"

enum trial_inputs {
    TRIAL_RISING,   /* most rows' scores climb along the keys, so that the running maximum rises block by block; one row in four
                       falls */
    TRIAL_STEEP,    /* the same over a span of 90: most weights are subnormal or 0 */
    TRIAL_EQUAL,    /* Q = K = 0: every visible key weighs the same */
    TRIAL_ONES,     /* V = 1: each row gives 1 */
    TRIAL_NAN_ROWS, /* rising, with NaN in some query rows */
    TRIAL_LARGE,    /* Q and K near 32: products past the range of fp16 */
    TRIAL_OUTLIERS, /* rising, one element in a hundred 20 times as large */
    TRIAL_INPUTS
};

/* Which keys score highest where scores are large: one, those of every third key, all alike; or scores that rise on top of what
 * all have in common. */
enum trial_winner { TRIAL_FIRST, TRIAL_MIDDLE, TRIAL_LAST, TRIAL_THIRDS, TRIAL_ALL, TRIAL_RISE, TRIAL_WINNERS };

struct trial {
    clattn_problem problem;       /* what the plan is made of: bounds, strides, options */
    int64_t batch, seq_q, seq_kv; /* what the call uses of the bounds */
    int64_t offset;
    float scale;
    int64_t window_left, window_right;
    int64_t mask_columns, bias_columns;
    uint64_t seed; /* of all numbers, those in buffers of options included */
    enum trial_inputs inputs;
    double level; /* not 0: products of queries and keys are of this size, as far as K's type reaches; a fourth of the rows has
                     the opposite sign */
    enum trial_winner winner;
    bool has_totals; /* rows of packed tensors were given in words */
    bool has_sink;   /* every other head's sink is `sink` */
    float sink;
    float value;         /* not 0: V is this large */
    int shift;           /* elements that each tensor starts after a 64-byte border; -1: some number, from the seed */
    int repeats;         /* runs, at least 1: each must give the same bits */
    bool round_weights;  /* the engine multiplies weights and V in V's storage type: tolerances follow */
    int64_t mask_blocks; /* above 0: the mask lets queries see keys of their own block of so many, documents in a row */
    int64_t chunk;       /* clattn_plan_options.chunk */
    double slice;        /* clattn_plan_options.max_launch_ms; above 0: the bits must be those of a single launch */
    int64_t effort;      /* multiply-adds that the oracle may spend before it takes a sample of rows; 0: a default */
    bool tight;          /* buffers end where their elements do, without a guard: for tests whose buffers end with a page */
    char layout[24];     /* a name of layout.h, for the text form; "" for strides set by hand */
    char override[96];   /* device facts to change (clattn_context_options.overrides) when the context is created */
};

/* A trial of this problem at its own sizes, rising inputs, seed 1. */
void trial_init(struct trial *trial, const clattn_problem *problem);
/* Multiply-adds of all its runs, masked keys included. */
double trial_work(const struct trial *trial);

/* A SHAPE with words of its own:
 *     "b2 hq8 hkv2 q37 k53 d64 fp16 causal=bottom-right lse layout=bshd call=1,20,50 inputs=nan-rows seed=7"
 * call=BATCH,SEQ_Q,SEQ_KV is what is used of the bounds before it; also mask-columns=N, bias-columns=N, chunk=N,
 * slice=MILLISECONDS, repeats=N, shift=N, mask-blocks=N, override=FACT=VALUE,..., level=NUMBER with winner=first, middle,
 * last, thirds, all or rise, sink=NUMBER, value=NUMBER, totals=QUERIES,KEYS of packed tensors.
 * Errors: INVALID_ARGUMENT, with the word as the field. */
clattn_status trial_parse(const char *text, struct trial *trial, clattn_error *error);
void trial_print(const struct trial *trial, char *text, size_t size);

struct trial_result {
    clattn_status status; /* of the library; UNSUPPORTED is no failure of the trial */
    bool ok;              /* false too when status is not SUCCESS */
    char engine[32];
    double max_error, bound;     /* of O: largest absolute error, and what was allowed */
    double rel_error, rel_bound; /* of O: |out - ref| / |ref| over all checked rows */
    double lse_error, lse_bound;
    double weights_error, weights_bound;
    int64_t rows_checked;
    char message[512]; /* what is wrong, with element, got and want; "" when ok */
};

/* Everything, on a plan of trial->problem; where the trial asks for slices, with a second plan to compare with. */
void trial_run(clattn_context *context, cl_command_queue queue, clattn_plan *plan, const struct trial *trial,
               struct trial_result *result);
/* The same with a plan of its own. engine NULL: the library's choice. */
void trial_run_engine(clattn_context *context, cl_command_queue queue, const char *engine, const struct trial *trial,
                      struct trial_result *result);

/* The options that such a plan is made with. */
void trial_plan_options(const struct trial *trial, const char *engine, clattn_plan_options *options);

/* ------------------------------------------------------------------------------- step by step, for tests with their own
 * numbers */

/* One tensor in host memory: front guard, elements with gaps, back guard. */
struct trial_tensor {
    clattn_type type;           /* of its elements, unless they are integers */
    int integer;                /* bytes of an integer element: 1, 4 or 8; 0 for floats */
    int64_t size[4], stride[4]; /* batch, head, seq, dim */
    int64_t origin;             /* index of element (0, 0, 0, 0) */
    int64_t count;              /* elements of the whole buffer; 0 when the tensor has none */
    void *data;
};

/* Absent tensors have count 0. Axes of broadcast masks and biases have size 1. Lists lie along the last axis. */
struct trial_data {
    struct trial_tensor q, k, v, o, lse, scores;
    struct trial_tensor mask, bias, bias_factors, alibi, sinks;
    struct trial_tensor q_lengths, kv_lengths, offsets, q_starts, kv_starts;
};

/* All of them, in that order. */
enum { TRIAL_BUFFERS = 16, TRIAL_FIRST_OUTPUT = 3, TRIAL_LAST_OUTPUT = 5 };
const struct trial_tensor *trial_tensor_at(const struct trial_data *data, int index);
const char *trial_buffer_name(int index);
size_t trial_item_size(const struct trial_tensor *tensor);

/* Buffers of trial's call, inputs filled, outputs poisoned. False: out of memory. */
bool trial_data_create(struct trial_data *data, const struct trial *trial);
void trial_data_destroy(struct trial_data *data);
void trial_poison(struct trial_data *data); /* the outputs, as they were at first */
float trial_get(const struct trial_tensor *tensor, int64_t b, int64_t h, int64_t s, int64_t d);
void trial_set(const struct trial_tensor *tensor, int64_t b, int64_t h, int64_t s, int64_t d, float x);
/* Element i of a list of integers. */
void trial_set_integer(const struct trial_tensor *tensor, int64_t i, int64_t x);
/* What options of this trial hold, from its seed, and then what Q, K and V do; trial_data_create calls them. */
void trial_fill_options(struct trial_data *data, const struct trial *trial);
void trial_fill_inputs(struct trial_data *data, const struct trial *trial, const struct oracle_call *call);
/* The trial as the oracle takes it. */
void trial_oracle_call(const struct trial *trial, const struct trial_data *data, struct oracle_call *call);

/* The same in device memory, a buffer a tensor. */
struct trial_device {
    cl_mem mems[TRIAL_BUFFERS]; /* NULL for what has no element */
};

/* Buffers that hold what the host has. False: *call and *code name the OpenCL call that failed; nothing is to be freed. */
bool trial_device_create(struct trial_device *device, clattn_context *context, const struct trial_data *data, const char **call,
                         cl_int *code);
void trial_device_destroy(struct trial_device *device);
/* A call at the trial's sizes on these buffers, ready to be enqueued. */
void trial_device_call(const struct trial_device *device, const clattn_plan *plan, const struct trial *trial,
                       const struct trial_data *data, clattn_call *call);
/* Puts the host's outputs there: after trial_poison, what a run leaves unwritten shows. */
bool trial_device_write_outputs(const struct trial_device *device, cl_command_queue queue, const struct trial_data *data,
                                const char **call, cl_int *code);
/* Reads the outputs back. False: as above. */
bool trial_device_read(const struct trial_device *device, cl_command_queue queue, struct trial_data *data, const char **call,
                       cl_int *code);

/* Uploads, enqueues, waits, reads everything back. False: result says why. */
bool trial_launch(clattn_context *context, cl_command_queue queue, clattn_plan *plan, const struct trial *trial,
                  struct trial_data *data, struct trial_result *result);
/* Guards, completeness, and errors against the oracle. */
void trial_judge(const struct trial *trial, const struct trial_data *data, struct trial_result *result);
/* The same with what this engine rounds. */
void trial_judge_engine(const struct trial *trial, const char *engine, const struct trial_data *data,
                        struct trial_result *result);

/* "rising", "ones", ...; NULL past the last. */
const char *trial_inputs_name(enum trial_inputs inputs);

#endif
