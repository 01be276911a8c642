/* SPDX-License-Identifier: Apache-2.0
 *
 * clattn: exact attention for any OpenCL device.
 *
 *     O = softmax(scale * Q * K^T, masked) * V          one pass, no seq_q x seq_kv tensor in memory
 *
 * The simplest use: create a *context* (one OpenCL device), fill a *problem* (types, sizes, strides, options) and call
 * clattn_attention, which enqueues one attention on the caller's queue. An application that computes repeatedly keeps a *plan*
 * (engine, tiles, built kernels) of a problem and enqueues any number of *calls* on it. docs/semantics.md says what every
 * option means.
 *
 * Rules that hold for every function of this header:
 * - It returns a status and never aborts, prints, or keeps state outside the objects it is given, with one exception that an
 *   application can rule out: clattn_context_options.allow_process_changes.
 * - The last argument, `clattn_error *error`, may be NULL; otherwise it receives the status, the name of the argument or field
 *   that is wrong and a message that says how to fix it. On success it is cleared.
 * - Functions on distinct objects may run concurrently on any threads. Many threads may use a context or a plan concurrently;
 *   destroying one while another thread uses it is the caller's error.
 * - Sizes are in elements, buffer offsets and workspace sizes in bytes. Strides are in elements of their tensor.
 * - Structs that may grow begin with `struct_size`, set by their `_init` function (which passes the size that the program was
 *   compiled with to its `_init_sized` twin in the library). New fields come at their end, so a program built against an older
 *   header keeps working with a newer library. Structs without `struct_size` (clattn_strides, clattn_tensor, clattn_buffer,
 *   clattn_partial) never change. A struct of a newer header is accepted if the fields that this library does not know
 *   are 0, as `_init` leaves them, and refused otherwise.
 */
#ifndef CLATTN_CLATTN_H
#define CLATTN_CLATTN_H

/* Any OpenCL version works: CL_TARGET_OPENCL_VERSION is the program's choice. */
#ifdef __APPLE__
#include <OpenCL/cl.h>
#else
#include <CL/cl.h>
#endif

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(CLATTN_STATIC)
/* Marks the functions that the library exports. CLATTN_STATIC: the library is linked statically. */
#define CLATTN_API
#elif defined(_WIN32)
#ifdef CLATTN_BUILDING
#define CLATTN_API __declspec(dllexport)
#else
#define CLATTN_API __declspec(dllimport)
#endif
#elif defined(__GNUC__)
#define CLATTN_API __attribute__((visibility("default")))
#else
#define CLATTN_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this header: first number. */
#define CLATTN_VERSION_MAJOR 0
/* The second number of the version. */
#define CLATTN_VERSION_MINOR 1
/* The third number of the version. */
#define CLATTN_VERSION_PATCH 0

/* The version of the library that is linked, "0.1.0". The string lives as long as the library. */
CLATTN_API const char *clattn_version(void);

/* ------------------------------------------------------------------------------------------------------------- status */

/* X(name, number, text). Numbers never change; new ones are added at the end. */
#define CLATTN_STATUS_LIST(X)                                                                                                  \
    X(SUCCESS, 0, "success")                                                                                                   \
    X(INVALID_ARGUMENT, 1, "an argument or a field of one is not valid")                                                       \
    X(UNSUPPORTED, 2, "valid, but no engine serves it on this device")                                                         \
    X(OUT_OF_HOST_MEMORY, 3, "the host is out of memory")                                                                      \
    X(NO_PLATFORM, 4, "no OpenCL platform is installed")                                                                       \
    X(NO_DEVICE, 5, "no OpenCL device matches")                                                                                \
    X(BUILD_FAILED, 6, "no kernel could be built for this device")                                                             \
    X(OPENCL, 7, "an OpenCL call failed")                                                                                      \
    X(DEVICE_LOST, 8, "the device failed; its context cannot be used any more")                                                \
    X(INTERNAL, 9, "a defect of clattn; please report it")

/* What a function returns; 0 is success. */
typedef enum clattn_status {
#define CLATTN_STATUS_ENUM(name, number, text) CLATTN_##name = number,
    CLATTN_STATUS_LIST(CLATTN_STATUS_ENUM)
#undef CLATTN_STATUS_ENUM
} clattn_status;

/* The name of a status, such as "INVALID_ARGUMENT"; "UNKNOWN" for unknown numbers. Never NULL. */
CLATTN_API const char *clattn_status_name(clattn_status status);
/* A sentence that explains the status, also for unknown numbers. Never NULL. */
CLATTN_API const char *clattn_status_text(clattn_status status);

/* Why a function failed. {0} counts as a struct of the first version. */
typedef struct clattn_error {
    size_t struct_size;   /* set by _init */
    clattn_status status; /* what the function returned */
    int32_t cl_code;      /* the OpenCL error code that caused it, 0 if none */
    char field[64];       /* the argument or field that is wrong, such as "problem.k.strides.row"; "" if none is */
    char message[1400];   /* one or more lines without a final newline; truncated if too long */
} clattn_error;

/* No error. */
CLATTN_API void clattn_error_init_sized(clattn_error *error, size_t size);
static inline void clattn_error_init(clattn_error *error) { clattn_error_init_sized(error, sizeof *error); }

/* ------------------------------------------------------------------------------------------------------------ devices */

/* How a device is named, in options, on command lines and in the environment variable CLATTN_DEVICE:
 *     "1:0"             platform 1, device 0, numbered as `clattn info` lists them
 *     "gpu" "cpu" "accelerator" "default"
 *     "nvidia"          any part of a platform's or a device's name, except a number alone
 *     "nvidia:h200"     a part of the platform's name, then a part of the device's; either may be a number, as above
 * Case is ignored. A number alone ("1") matches nothing.
 * NULL or "" means: the first GPU, otherwise the first accelerator, otherwise the first CPU. A platform that fails is passed
 * over. */

/* Called for each device, numbered as in a selector. Return false to stop. */
typedef bool (*clattn_device_visitor)(void *user, int platform_index, int device_index, cl_platform_id platform,
                                      cl_device_id device);
/* Calls `visit` once for every usable device, in a fixed order. Errors: NO_PLATFORM, NO_DEVICE. */
CLATTN_API clattn_status clattn_devices(clattn_device_visitor visit, void *user, clattn_error *error);

/* The device that `selector` names (NULL or "": CLATTN_DEVICE from the environment, then the default above). Errors:
 * NO_PLATFORM, NO_DEVICE (the message lists the devices). */
CLATTN_API clattn_status clattn_device_find(const char *selector, cl_device_id *device, clattn_error *error);

/* ------------------------------------------------------------------------------------------------------------ context */

/* One device, with the programs built for it. */
typedef struct clattn_context clattn_context;

/* The kind of a log message. */
typedef enum clattn_log_level {
    CLATTN_LOG_ERROR = 1,
    CLATTN_LOG_WARNING = 2,
    CLATTN_LOG_INFO = 3, /* which engine was chosen, and build logs */
} clattn_log_level;

/* Receives log messages; `text` is valid during the call only. It is called on any thread that calls the library. The callback
 * may call the library, except to plan the kernel being built, which returns BUILD_FAILED. */
typedef void (*clattn_log_fn)(void *user, clattn_log_level level, const char *text);

/* Loads an entry of the application's store. Compiled programs are cached for later processes, so that a kernel is compiled
 * only once for a device and driver: in $XDG_CACHE_HOME/clattn or ~/.cache/clattn (Windows: %LOCALAPPDATA%/clattn), in a folder
 * that the caller names, or in the caller's own store. The environment takes precedence: CLATTN_CACHE=off disables the cache,
 * CLATTN_CACHE_DIR names a folder. An entry that cannot be read or used is created again; one that cannot be written is
 * skipped; neither is an error. Any number of processes may share a folder. A program is stored when a plan is created from it;
 * on PoCL, clattn_context_save stores it.
 *
 * The caller's own store: both functions are called on any thread that calls the library, and may call the library, as a log
 * function may. `name` is a file name of 36 letters, digits and a dot.
 *   load   returns the size of the entry of this name, 0 if there is none, and copies it to `bytes` if `size` is enough.
 *   store  stores `size` bytes under the name and replaces an earlier entry. */
typedef size_t (*clattn_cache_load_fn)(void *user, const char *name, void *bytes, size_t size);
/* Stores an entry of the application's store: see clattn_cache_load_fn. */
typedef void (*clattn_cache_store_fn)(void *user, const char *name, const void *bytes, size_t size);

/* Options of clattn_context_create. */
typedef struct clattn_context_options {
    size_t struct_size;       /* set by _init */
    const char *device;       /* selector, used when no cl_context and no device are given; NULL: see clattn_device_find */
    const char *overrides;    /* device facts to change, such as "local_mem=16K,extensions-=cl_khr_fp16"; docs/device-facts.md.
                                 CLATTN_DEVICE_OVERRIDE in the environment is applied after it. NULL: none */
    clattn_log_fn log;        /* NULL: no log */
    void *log_user;           /* passed to log */
    bool cache_off;           /* no program is stored or looked up */
    const char *cache_folder; /* UTF-8; created if missing; not used if other users may write to it. NULL: as above */
    clattn_cache_load_fn cache_load;   /* if either function is set, the caller's store replaces the folder */
    clattn_cache_store_fn cache_store; /* NULL: nothing is stored */
    void *cache_user;                  /* passed to both */
    /* This context, its plans and calls ignore all CLATTN_* environment variables. Otherwise a variable takes precedence over
     * the application's options, which helps to find faults without a rebuild; docs/packaging.md lists them all. */
    bool ignore_environment;
    /* Whether engines may make requests to the operating system that change the whole process permanently. There is one today:
     * on x86 processors with AMX, Linux lets a process use matrix tiles only on request; afterwards the frame of a signal is 8
     * KiB larger, and sigaltstack refuses a stack of 8 KiB (SIGSTKSZ in old headers) with ENOMEM. The request is made when a
     * bf16 plan would use the tiles, never earlier, and fails if a thread's signal stack is already too small. _init sets
     * true: bf16 is several times slower without the tiles, sysconf(_SC_SIGSTKSZ) has counted the tiles since glibc 2.34, and
     * other libraries of this kind make the request silently. An application with small signal stacks sets false. The
     * environment variable CLATTN_PROCESS_CHANGES=off has the same effect. */
    bool allow_process_changes;
} clattn_context_options;

/* The defaults. */
CLATTN_API void clattn_context_options_init_sized(clattn_context_options *options, size_t size);
static inline void clattn_context_options_init(clattn_context_options *options)
{
    clattn_context_options_init_sized(options, sizeof *options);
}

/* A context for one device.
 *   cl            an OpenCL context that holds the device; it is retained. NULL: the library creates one.
 *   device        one of its devices, or a part of one (a sub-device). NULL: the first device of `cl`, or the one that
 *                 options->device names.
 *   options       NULL: defaults.
 * Errors: INVALID_ARGUMENT (device not in cl, malformed override), NO_PLATFORM, NO_DEVICE, OPENCL, OUT_OF_HOST_MEMORY. */
CLATTN_API clattn_status clattn_context_create(cl_context cl, cl_device_id device, const clattn_context_options *options,
                                               clattn_context **context, clattn_error *error);

/* Destroys a context; destroy all its plans first. Enqueued work still completes. NULL is accepted. */
CLATTN_API void clattn_context_destroy(clattn_context *context);

/* Stores the programs that clattn_plan_create did not store, and returns their number. PoCL compiles a program again when
 * asked for its binary, which takes about half a second, so on PoCL programs are stored only here: call it when there is time,
 * on any thread, after the first calls of the plans. Without it PoCL's own cache serves the next process, which then takes
 * about 0.1 s a program instead of 0.02 s. On other platforms, and when called again, it has nothing to do. NULL returns 0. */
CLATTN_API size_t clattn_context_save(clattn_context *context);

/* The OpenCL context that it uses, not retained for the caller. */
CLATTN_API cl_context clattn_context_cl(const clattn_context *context);
/* The OpenCL device, not retained for the caller. */
CLATTN_API cl_device_id clattn_context_device(const clattn_context *context);

/* The device facts on which choices are based, overrides included, as text: one `name=value` a line (docs/device-facts.md).
 * Writes at most `size` bytes, the terminating zero included, and stores the full size in *needed (either may be NULL / 0). */
CLATTN_API clattn_status clattn_context_facts(const clattn_context *context, char *text, size_t size, size_t *needed);

/* ------------------------------------------------------------------------------------------------------------ problem */

/* How elements are stored. */
typedef enum clattn_type {
    CLATTN_FP32 = 1,
    CLATTN_FP16 = 2, /* IEEE binary16; no device extension needed */
    CLATTN_BF16 = 3, /* the upper half of a binary32 */
} clattn_type;

/* Element (b, h, r, c) of a tensor is at b*batch + h*head + r*row + c*column, in elements from the start of its buffer plus
 * the call's byte offset. What rows and columns are:
 *     q, k, v, o           positions of the sequence, elements of a head's vector
 *     scores, mask, bias   queries, keys
 *     lse                  queries; `column` is not used
 *     alibi                `row` and `column` are not used
 * Any values are valid, negative and 0 included, except 0 for an output dimension over 1. The fastest engines need column = 1
 * and the others multiples of 16 bytes. */
typedef struct clattn_strides {
    int64_t batch;  /* from an entry of the batch to the next */
    int64_t head;   /* from a head to the next */
    int64_t row;    /* from a row to the next */
    int64_t column; /* from a column to the next */
} clattn_strides;

/* How q, k, v or o lies in memory. */
typedef struct clattn_tensor {
    clattn_type type;       /* of its elements */
    clattn_strides strides; /* in elements */
} clattn_tensor;

/* The type of the integers in a device buffer. */
typedef enum clattn_integer {
    CLATTN_NO_INTEGERS = 0, /* the buffer is absent */
    CLATTN_INT32 = 1,
    CLATTN_INT64 = 2,
} clattn_integer;

/* Where the diagonal of causal masks, windows and ALiBi lies: `offset` is the key position of query 0. */
typedef enum clattn_corner {
    CLATTN_TOP_LEFT = 0,     /* offset 0: keys j <= i are visible to query i */
    CLATTN_BOTTOM_RIGHT = 1, /* offset (keys - queries), may be negative: the last query has every key visible */
    CLATTN_EXPLICIT = 2,     /* offset set by the caller, one for all or one a sequence: keys in the cache before query 0 */
} clattn_corner;

/* What the scores output of a call contains, in fp32. */
typedef enum clattn_scores_kind {
    CLATTN_SCORES_NONE = 0,
    CLATTN_SCORES_RAW = 1,     /* scale * q.k of every query and key, visible or masked */
    CLATTN_SCORES_SOFTCAP = 2, /* the same after softcap */
    CLATTN_SCORES_BIAS = 3,    /* after bias and ALiBi, the input of softmax: -inf for a masked key */
    CLATTN_SCORES_SOFTMAX = 4, /* p / l: rows sum to 1 (less with a sink); 0 in a row without visible keys */
} clattn_scores_kind;

/* What an element of an LSE buffer is. */
typedef enum clattn_lse_form {
    CLATTN_LSE = 0, /* one float: ln of the sum of exp(s) over the scores s of the row; -inf in a row without visible keys */
    CLATTN_MAX_AND_SUM = 1, /* two adjacent floats, m and l = sum of exp(s - m): LSE = m + ln l, without its rounding. m is
                               about the largest score, in natural units; in a row without visible keys l is 0 */
} clattn_lse_form;

/* The order of dimensions in memory, the last one contiguous. */
typedef enum clattn_layout {
    CLATTN_BHSD = 0, /* batch, heads, sequence, head_dim: the last one contiguous */
    CLATTN_BSHD = 1,
    CLATTN_SBHD = 2,
} clattn_layout;

/* What a plan fixes. Consecutive query heads share a key/value head: query head h reads key/value head h / (heads_q /
 * heads_kv). */
typedef struct clattn_problem {
    size_t struct_size;              /* set by _init */
    int64_t batch, seq_q, seq_kv;    /* upper bounds of the sizes of a call; each at most 2^29 */
    int64_t heads_q, heads_kv;       /* heads_q a multiple of heads_kv */
    int64_t head_dim_qk, head_dim_v; /* 1 to 65536; few engines serve over 1024, and one serves head_dim_v over 4096 */
    clattn_tensor q, k, v, o;        /* each has its own type and strides */
    float scale;          /* NaN, as set by _init: 1/sqrt(head_dim_qk). Any other number is valid, 0 and negative included */
    bool causal;          /* only keys j <= i + offset are visible to query i */
    clattn_corner corner; /* of causal masks, windows and ALiBi */
    int64_t offset;       /* with CLATTN_EXPLICIT */
    struct {              /* log-sum-exp output, natural logarithm, fp32; in a row without visible keys the sink, or -inf */
        bool present;
        clattn_strides strides; /* in elements, of one float or two */
        clattn_lse_form form;
    } lse;
    struct { /* a second output, fp32: element (b, h - first_head, i, j) of the query heads from first_head on */
        clattn_scores_kind kind;
        int64_t first_head, heads; /* how many heads; 0: all from first_head on */
        clattn_strides strides;
    } scores;

    /* Options. docs/semantics.md has a worked example of each. */
    float softcap; /* 0: none. Otherwise scores become softcap * tanh(score / softcap), before bias and masks */
    struct { /* only keys i + offset - left ... i + offset + right, both included, are visible to query i; -1, as set by _init:
                no limit */
        int64_t left, right;
    } window;
    struct { /* one byte a key: 0 masks the key. Any stride may be 0 (broadcast) */
        bool present;
        int64_t columns; /* number of mask columns; keys past them are masked. -1, as set by _init: all keys of the call */
        clattn_strides strides;
    } mask;
    struct { /* added to the scaled score; -inf masks the key. Any stride may be 0 (broadcast) */
        bool present;
        clattn_type type;
        bool factors; /* call.bias_factors holds one float a query head that multiplies the bias */
        int64_t columns;
        clattn_strides strides;
    } bias;
    struct { /* ALiBi: slope * |i + offset - j| is subtracted. fp32 slopes of query heads; strides may be 0 */
        bool present;
        clattn_strides strides;
    } alibi;
    bool sinks;                /* call.sinks holds one float a query head, which counts only in the denominator of its rows */
    clattn_integer q_lengths;  /* call.q_lengths: number of queries of each sequence; outputs past it are 0 and -inf */
    clattn_integer kv_lengths; /* call.kv_lengths: number of keys of each sequence, from which the corner is computed */
    clattn_integer offsets;    /* call.offsets: one offset a sequence, with CLATTN_EXPLICIT */
    struct {                   /* `batch` sequences one after another along the sequence axis; batch strides are not used */
        clattn_integer starts; /* call.q_starts and call.kv_starts hold batch + 1 cumulative row numbers each; seq_q and seq_kv
                                  are the longest lengths: queries past them are not computed, keys past them are masked */
        int64_t total_q, total_kv; /* rows of the packed tensors */
    } packed;
} clattn_problem;

/* All sizes 0, all types fp32, scale unset, no option. */
CLATTN_API void clattn_problem_init_sized(clattn_problem *problem, size_t size);
static inline void clattn_problem_init(clattn_problem *problem) { clattn_problem_init_sized(problem, sizeof *problem); }

/* Sets all strides of q, k, v, o, lse and scores for contiguous tensors of the sizes in the problem (of packed.total_q and
 * total_kv rows for packed sequences). Set the sizes first. */
CLATTN_API void clattn_problem_set_layout(clattn_problem *problem, clattn_layout layout);

/* The SHAPE text shared by tools, tests and tuning tables, such as
 *     "b2 hq8 hkv2 q37 k53 d64 dv64 fp16 causal=bottom-right"
 * Defaults: b1, hq1, hkv = hq, k = q, dv = d, fp32. The problem is initialised and laid out BHSD. docs/semantics.md has
 * the grammar. Errors: INVALID_ARGUMENT, with the wrong word as the field. */
CLATTN_API clattn_status clattn_problem_parse_sized(const char *shape, clattn_problem *problem, size_t size,
                                                    clattn_error *error);
static inline clattn_status clattn_problem_parse(const char *shape, clattn_problem *problem, clattn_error *error)
{
    return clattn_problem_parse_sized(shape, problem, sizeof *problem, error);
}
/* The SHAPE text of a problem. Sizes as in clattn_context_facts. */
CLATTN_API clattn_status clattn_problem_print(const clattn_problem *problem, char *text, size_t size, size_t *needed);

/* The standard ALiBi slopes of `heads` query heads (Press et al., arXiv:2108.12409, section 3): 2^(-8 i / n) for i = 1 ... n
 * if n is a power of two; otherwise the slopes of the next smaller power of two, then every other slope of twice as many. */
CLATTN_API void clattn_alibi_slopes(int64_t heads, float *slopes);

/* --------------------------------------------------------------------------------------------------- attention in one call */

/* Enqueues the attention of `problem` at its sizes, with these five buffers (lse may be NULL): creates a plan, enqueues one
 * call and destroys the plan. The context keeps the built programs. Only for problems without options that need more buffers.
 * An application that computes repeatedly keeps a plan instead, which avoids choosing an engine each time. Queue, wait list
 * and event are those of clattn_enqueue; errors are those of clattn_enqueue and clattn_plan_create. */
CLATTN_API clattn_status clattn_attention(clattn_context *context, cl_command_queue queue, const clattn_problem *problem,
                                          cl_mem q, cl_mem k, cl_mem v, cl_mem o, cl_mem lse, cl_uint wait_count,
                                          const cl_event *wait_list, cl_event *event, clattn_error *error);

/* --------------------------------------------------------------------------------------------------------------- plan */

/* A problem with an engine, tiles and built kernels. */
typedef struct clattn_plan clattn_plan;

/* Options of clattn_plan_create. The environment variables CLATTN_ENGINE and CLATTN_AVOID, if set and not ignored, replace
 * engine and avoid. */
typedef struct clattn_plan_options {
    size_t struct_size; /* set by _init */
    /* The only engine to use, by the name that `clattn info` shows. NULL: the best that serves. */
    const char *engine;
    /* Names of engines not to use, separated by commas. NULL: none. */
    const char *avoid;
    /* For few queries and many keys: keys of one chunk, rounded up to whole blocks. 0: the library chooses, from the problem
     * alone; -1: keys are never split. */
    int64_t chunk;
    /* A call that would keep the device busy for longer is cut into launches of about this many milliseconds, with
     * bit-identical results; the rate is measured when the plan is created. 0: the library chooses: 500 for `reference`, the
     * slow engine that serves every problem, on GPUs (drivers reset a device that is busy for some seconds), and no limit for
     * others; negative: no limit. */
    double max_launch_ms;
    /* true: calls have the sizes of the plan's bounds, or nearly. One engine with one tile is built; it also serves smaller
     * calls, but slowly if they are much smaller. false: kernels for smaller calls are built as well, such as for one query
     * where the bound is 512, and each call uses what a plan made for its sizes would use; that takes more builds. */
    bool at_bounds;
} clattn_plan_options;

/* The defaults. */
CLATTN_API void clattn_plan_options_init_sized(clattn_plan_options *options, size_t size);
static inline void clattn_plan_options_init(clattn_plan_options *options)
{
    clattn_plan_options_init_sized(options, sizeof *options);
}

/* Chooses an engine and tiles and builds the kernels (programs are shared by all plans of a context). Nothing is launched,
 * with two exceptions, each on a queue of the library: to cut work into slices (max_launch_ms) a small problem is timed, and a
 * program of a vendor's engine is checked when it is first used (docs/engines.md). Errors: INVALID_ARGUMENT with the field,
 * UNSUPPORTED with the reason of each engine, BUILD_FAILED with the log, OPENCL, DEVICE_LOST, OUT_OF_HOST_MEMORY. */
CLATTN_API clattn_status clattn_plan_create(clattn_context *context, const clattn_problem *problem,
                                            const clattn_plan_options *options, clattn_plan **plan, clattn_error *error);

/* Called before each problem, and at the end with done = count. Return false to stop. */
typedef bool (*clattn_progress_fn)(void *user, size_t done, size_t count);

/* Builds the kernels that plans of these problems need, and launches them once on drivers that compile at the first launch.
 * Later plans of these problems compile nothing, nor do those of smaller problems with the same types, head sizes, options and
 * alignment of strides. It may run on its own thread while others use the context. The context keeps the programs.
 *
 * A program depends on types, head sizes, the options that are present, alignment of strides, and a class of sizes, which
 * depends on the device. On CPUs the classes are 1, 2-4, 5-8, 9-16, 17-32 and more queries of heads that share keys, and for up
 * to 16 queries whether there are more than 1024 keys; GPUs have about as many classes, which also depend on the batch. A plan
 * without options.at_bounds has all classes below its bounds, so one plan of the largest sizes covers all others of an
 * application.
 * Errors: those of clattn_plan_create, for the first problem that fails; INVALID_ARGUMENT. */
CLATTN_API clattn_status clattn_warm_up(clattn_context *context, const clattn_problem *const *problems, size_t count,
                                        const clattn_plan_options *options, clattn_progress_fn progress, void *user,
                                        clattn_error *error);

/* Destroys a plan. Enqueued work still completes. NULL is accepted. */
CLATTN_API void clattn_plan_destroy(clattn_plan *plan);

/* SUCCESS if a plan can be created as far as the device facts tell (nothing is built); otherwise the status and reason. */
CLATTN_API clattn_status clattn_supported(clattn_context *context, const clattn_problem *problem,
                                          const clattn_plan_options *options, clattn_error *error);

/* Describes a plan: engine, tiles, local memory, and what was tried first and why it failed; several lines. Sizes as in
 * clattn_context_facts. */
CLATTN_API clattn_status clattn_plan_describe(const clattn_plan *plan, char *text, size_t size, size_t *needed);

/* The name of the engine that serves, as `clattn info` lists it. Lives as long as the library. */
CLATTN_API const char *clattn_plan_engine(const clattn_plan *plan);

/* Bytes of workspace that are enough for every call of the plan; 0 for most plans. */
CLATTN_API size_t clattn_workspace_size(const clattn_plan *plan);

/* Whether the plan, made for another problem, can serve this one: everything that a plan fixes is equal, and batch, seq_q and
 * seq_kv are within its bounds. What a call sets may differ (scale, offset, windows, columns, strides of mask and bias, which
 * must be broadcast along the same axes as the plan's, other strides as clattn_call says), and so may strides along axes that
 * the plan bounds at 1. For applications that keep plans; clattn_call_set_problem then sets up the call. */
CLATTN_API bool clattn_plan_serves(const clattn_plan *plan, const clattn_problem *problem);

/* --------------------------------------------------------------------------------------------------------------- call */

/* What a buffer's handle is. */
typedef enum clattn_buffer_kind {
    CLATTN_BUFFER_NONE = 0, /* no buffer; also valid for a tensor without elements */
    CLATTN_BUFFER_MEM = 1,  /* handle is a cl_mem of the context */
    CLATTN_BUFFER_SVM = 2,  /* handle is a pointer to shared virtual memory: from clSVMAlloc of the same OpenCL context, or any
                               host pointer where the device has fine-grained system memory (the fact `svm`) */
} clattn_buffer_kind;

/* Memory that a call reads or writes. */
typedef struct clattn_buffer {
    clattn_buffer_kind kind; /* what the handle is */
    void *handle;            /* not owned; NULL without a kind */
    size_t offset;           /* bytes, a multiple of the element's size; no other alignment is required */
} clattn_buffer;

/* A cl_mem as a buffer. */
static inline clattn_buffer clattn_mem(cl_mem mem, size_t offset)
{
    clattn_buffer buffer;
    buffer.kind = CLATTN_BUFFER_MEM;
    buffer.handle = (void *)mem;
    buffer.offset = offset;
    return buffer;
}

/* An SVM pointer as a buffer, for devices with shared virtual memory of OpenCL 2.0; other devices refuse the call as
 * UNSUPPORTED. The size of the memory is not checked, since OpenCL does not report it; the memory must stay allocated, and
 * unmapped if it is coarse-grained, until the commands end. */
static inline clattn_buffer clattn_svm(void *pointer, size_t offset)
{
    clattn_buffer buffer;
    buffer.kind = CLATTN_BUFFER_SVM;
    buffer.handle = pointer;
    buffer.offset = offset;
    return buffer;
}

/* What changes from call to call. */
typedef struct clattn_call {
    size_t struct_size;                 /* set by _init */
    clattn_buffer q, k, v, o;           /* strides and types as in the problem */
    clattn_buffer lse;                  /* when problem.lse.present */
    clattn_buffer scores;               /* if problem.scores.kind is not NONE: of the chosen heads */
    clattn_buffer workspace;            /* at least clattn_call_workspace bytes, not used by another call at the same time.
                                             NONE: the library creates one for this call. For an in-order
                                             queue the plan keeps it (up to 16 MiB), and the queue, for the
                                             next call on that queue */
    int64_t batch, seq_q, seq_kv;       /* at most the plan's bounds */
    int64_t offset;                     /* with CLATTN_EXPLICIT, unless problem.offsets */
    float scale;                        /* as in the problem, but not NaN */
    int64_t window_left, window_right;  /* if the problem has a window; -1: no limit */
    int64_t mask_columns, bias_columns; /* -1: all keys of the call */
    clattn_buffer mask, bias;           /* of options: each if that option is present in the problem */
    clattn_buffer bias_factors, alibi, sinks;     /* the same */
    clattn_buffer q_lengths, kv_lengths, offsets; /* values in these buffers are not checked but clamped on the device */
    clattn_buffer q_starts, kv_starts;            /* the same */
    clattn_strides mask_strides, bias_strides;    /* as in the problem, for rows as long as the keys of the call; 0 along batch
                                                     and heads where the problem's are 0, and only there */
    cl_event *first_event; /* NULL, or receives an event of the first command of the call (see clattn_enqueue); the caller
                              releases it */
    /* As in the problem, or others, such as those of a dense cache that grows. A stride is 1 where the problem's is 1,
     * positive where the problem's is, and a multiple of the same power of two, up to 16 bytes. lse_strides: any values except
     * 0. */
    clattn_strides q_strides;
    clattn_strides k_strides;   /* the same */
    clattn_strides v_strides;   /* the same */
    clattn_strides o_strides;   /* the same */
    clattn_strides lse_strides; /* of lse: any values except 0 */
} clattn_call;

/* No buffers; sizes and numbers of the plan's problem. */
CLATTN_API void clattn_call_init_sized(clattn_call *call, size_t size, const clattn_plan *plan);
static inline void clattn_call_init(clattn_call *call, const clattn_plan *plan)
{
    clattn_call_init_sized(call, sizeof *call, plan);
}

/* Copies the numbers of a problem that the plan serves (clattn_plan_serves): batch, seq_q, seq_kv, offset, scale, window,
 * columns and strides. Buffers do not change. */
CLATTN_API void clattn_call_set_problem(clattn_call *call, const clattn_problem *problem);

/* Bytes of workspace that this call needs: never more than clattn_workspace_size, and far less if its sizes are far below the
 * plan's bounds. Only the call's sizes are read. Errors: INVALID_ARGUMENT. */
CLATTN_API clattn_status clattn_call_workspace(clattn_plan *plan, const clattn_call *call, size_t *bytes, clattn_error *error);

/* Enqueues one attention. Asynchronous: returns when the commands are queued.
 *   queue         of the plan's context and device; in-order or out-of-order.
 *   wait_count, wait_list  as in clEnqueueNDRangeKernel: (0, NULL) and (0, list) wait for nothing, (n, NULL) is an error.
 *   event         NULL, or receives an event that completes with the last command of this call; the caller releases it.
 * A call may be several commands. On a queue with profiling, its time is from CL_PROFILING_COMMAND_START of call.first_event to
 * CL_PROFILING_COMMAND_END of `event`; if it is one command, both are that command's event. The queue is not flushed: commands
 * may not begin before clFlush, clFinish or a blocking call on the queue.
 * Every buffer is retained by OpenCL until the commands end, as with any kernel. Buffer sizes are checked against strides
 * before anything is queued. Outputs and workspace (o, lse, scores, workspace) must not overlap any other buffer of the
 * call: the call is refused if handles and strides show an overlap. They do not show it for two sub-buffers of one buffer. If
 * batch, heads_q, seq_q or packed.total_q is 0, nothing is launched (event, if requested, is a marker). After an OPENCL error
 * the contents of the outputs are undefined. DEVICE_LOST is returned, from then on by every call with this context, when a
 * driver reports that the device failed during earlier work: CL_INVALID_COMMAND_QUEUE of a queue that was valid, or
 * CL_OUT_OF_RESOURCES or CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST of a queue that cannot be flushed any more. Then a new
 * OpenCL context is needed. Errors: INVALID_ARGUMENT, UNSUPPORTED (an SVM pointer), OPENCL, DEVICE_LOST, OUT_OF_HOST_MEMORY. */
CLATTN_API clattn_status clattn_enqueue(clattn_plan *plan, cl_command_queue queue, const clattn_call *call, cl_uint wait_count,
                                        const cl_event *wait_list, cl_event *event, clattn_error *error);

/* -------------------------------------------------------------------------------------------------------------- merge */

/* The result of attention over one part of the keys: an output and its LSE (natural logarithm), or maximum and sum. */
typedef struct clattn_partial {
    clattn_buffer o, lse;       /* both are required, except that the LSE of the result is optional */
    clattn_tensor o_layout;     /* of o */
    clattn_strides lse_strides; /* of lse, in elements of its form */
    clattn_lse_form lse_form;   /* a, b and out may each have another form */
} clattn_partial;

/* Two partial results and the merged one. */
typedef struct clattn_merge {
    size_t struct_size;                    /* set by _init */
    int64_t batch, heads, seq_q, head_dim; /* of o; lse has no head_dim */
    clattn_partial a, b, out; /* `out` may be `a` or `b` itself, with the same layout; otherwise out.lse may be absent */
} clattn_merge;

/* All sizes 0, all types fp32, no buffers. */
CLATTN_API void clattn_merge_init_sized(clattn_merge *merge, size_t size);
static inline void clattn_merge_init(clattn_merge *merge) { clattn_merge_init_sized(merge, sizeof *merge); }

/* Attention over both parts of the keys, computed from the results over each: O = (w_a a + w_b b) / (w_a + w_b) with w =
 * exp(LSE), computed without overflow, and LSE = ln(w_a + w_b). If a part has no visible keys (LSE -inf), the result is the
 * other part, bit for bit; if neither has any, it is 0 and -inf. A part with LSE +inf has all the weight; two such parts have
 * half each. A NaN in an LSE makes the row NaN. An LSE is rounded like any float, so weights have a relative error of up to
 * |LSE| * 2^-24: 0.06 for scores near 1e6. Maximum and sum (lse_form, problem.lse.form) avoid this loss. Uses: prefixes shared
 * between calls, keys on several devices. Asynchronous; waiting, events and errors as in clattn_enqueue. */
CLATTN_API clattn_status clattn_enqueue_merge(clattn_context *context, cl_command_queue queue, const clattn_merge *merge,
                                              cl_uint wait_count, const cl_event *wait_list, cl_event *event,
                                              clattn_error *error);

/* ------------------------------------------------------------------------------------------------------- experimental
 * May change with any version. */
#ifdef CLATTN_EXPERIMENTAL

/* What clattn_plan_create would try, in order, for a device described by facts (the text of clattn_context_facts), and why the
 * other engines decline. No device is needed. */
CLATTN_API clattn_status clattn_explain(const char *facts, const clattn_problem *problem, const clattn_plan_options *options,
                                        char *text, size_t size, size_t *needed, clattn_error *error);

/* The kernel source of a plan as it was built, after a comment with the build options. */
CLATTN_API clattn_status clattn_plan_source(const clattn_plan *plan, char *text, size_t size, size_t *needed);

/* The facts of a device, without a context; overrides may be NULL. */
CLATTN_API clattn_status clattn_device_facts(cl_device_id device, const char *overrides, char *text, size_t size,
                                             size_t *needed, clattn_error *error);

/* A quirk of a device described by facts, and its consequence: entry `index` of a list from 0 on; NULL past the last entry,
 * and if the text cannot be parsed. It lives as long as the library. */
CLATTN_API const char *clattn_device_quirk(const char *facts, size_t index);

/* The name of engine number `index`, from 0 on in the order in which they are tried; NULL past the last. It lives as long as
 * the library. */
CLATTN_API const char *clattn_engine_name(size_t index);

/* 1 when the engine of that name multiplies weights and V in V's storage type, so that the weights are rounded to it. */
CLATTN_API int clattn_engine_rounds_weights(const char *engine);

/* The name of number `index` of the environment variables that the library reads, NULL past the last, and its value, NULL if
 * it is not set. The value lives until the environment changes. */
CLATTN_API const char *clattn_environment_variable(size_t index, const char **value);

/* Number of programs that this context has built from source. */
CLATTN_API size_t clattn_context_build_count(const clattn_context *context);

#endif

#ifdef __cplusplus
}
#endif
#endif
