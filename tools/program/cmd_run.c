/* SPDX-License-Identifier: Apache-2.0
 * `clattn run`: attention on .npy files. */
#include "arrays.h"
#include "demo.h"
#include "half.h"
#include "run_options.h"
#include "verdict.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct request {
    const char *q, *k, *v, *out, *lse;
    const char *dtype, *out_dtype, *layout, *device, *engine;
    double scale;
    struct run_options options;
    bool check;
    bool demo;
    const char *data, *svg;
};

enum { OUT, LSE, SCORES, OUTPUTS };

/* One run in progress: files, the problem that they make, results. */
struct job {
    const struct request *request;
    clattn_layout layout;
    struct npy in[3]; /* q, k, v */
    clattn_problem problem;
    enum npy_type out_type;
    void *storage[3], *o;
    float *lse, *scores;
    struct trial_data options;
    struct output outputs[OUTPUTS];
};

static const char *const output_names[OUTPUTS] = {"--out", "--lse", "--scores"};
static const char *const option_names[3] = {"--q", "--k", "--v"};

static const char *output_path(const struct request *r, int which)
{
    const char *const paths[OUTPUTS] = {r->out, r->lse, r->options.scores[1]};
    return paths[which];
}

/* Before any work, so that a path that cannot be written is reported at once. Two outputs must not be the same file. */
static int open_outputs(struct job *job)
{
    const struct request *const r = job->request;
    int code = CLI_OK;
    for (int i = 1; i < OUTPUTS; i++)
        for (int j = 0; j < i && code == CLI_OK; j++)
            code = cli_refuse_same("run", output_names[i], output_path(r, i), output_names[j], output_path(r, j));
    for (int i = 0; i < OUTPUTS && code == CLI_OK; i++)
        if (output_path(r, i))
            code = cli_open_output(&job->outputs[i], "run", output_names[i], output_path(r, i));
    return code;
}

static int read_inputs(struct job *job)
{
    const char *const paths[3] = {job->request->q, job->request->k, job->request->v};
    for (int i = 0; i < 3; i++) {
        if (paths[i] == NULL)
            return cli_fail("run", CLI_USAGE, option_names[i], "is missing: --q, --k, --v and --out are needed (or --demo)");
    }
    if (job->request->out == NULL)
        return cli_fail("run", CLI_USAGE, "--out", "is missing: name the file that the output goes to");
    const int opened = open_outputs(job);
    if (opened != CLI_OK)
        return opened;
    for (int i = 0; i < 3; i++) {
        const int code = array_read("run", option_names[i], paths[i], &job->in[i]);
        if (code != CLI_OK)
            return code;
    }
    return CLI_OK;
}

/* --------------------------------------------------------------------------------------------------------------- sizes */

static int shape_conflict(const struct job *job, int which, const char *axis, int64_t size, const char *like, int64_t wanted)
{
    char shape[128];
    return cli_fail("run", CLI_USAGE, option_names[which],
                    "its shape %s has %s %" PRId64 " where %s has %" PRId64 " (--layout %s)",
                    npy_shape_text(&job->in[which], shape, sizeof shape), axis, size, like, wanted,
                    job->layout == CLATTN_BSHD ? "bshd" : "bhsd");
}

static int compare_sizes(const struct job *job, const int64_t q[4], const int64_t k[4], const int64_t v[4])
{
    if (k[0] != q[0])
        return shape_conflict(job, 1, "batch", k[0], "--q", q[0]);
    if (k[3] != q[3])
        return shape_conflict(job, 1, "head_dim", k[3], "--q", q[3]);
    if (v[0] != k[0])
        return shape_conflict(job, 2, "batch", v[0], "--k", k[0]);
    if (v[1] != k[1])
        return shape_conflict(job, 2, "heads", v[1], "--k", k[1]);
    if (v[2] != k[2])
        return shape_conflict(job, 2, "sequence length", v[2], "--k", k[2]);
    if (q[1] > 0 && (k[1] == 0 || q[1] % k[1] != 0))
        return cli_fail("run", CLI_USAGE, "--q",
                        "its %" PRId64 " heads are not a multiple of --k's %" PRId64 "; check --layout", q[1], k[1]);
    return CLI_OK;
}

static int set_sizes(struct job *job)
{
    int64_t sizes[3][4];
    clattn_problem *p = &job->problem;
    for (int i = 0; i < 3; i++) {
        char shape[128];
        if (!array_sizes(&job->in[i], job->layout, sizes[i]))
            return cli_fail("run", CLI_USAGE, option_names[i], "its shape %s has %d dimensions; 2 to 4 are understood",
                            npy_shape_text(&job->in[i], shape, sizeof shape), job->in[i].rank);
    }
    const int code = compare_sizes(job, sizes[0], sizes[1], sizes[2]);
    p->batch = sizes[0][0];
    p->heads_q = sizes[0][1];
    p->seq_q = sizes[0][2];
    p->head_dim_qk = sizes[0][3];
    p->heads_kv = sizes[1][1];
    p->seq_kv = sizes[1][2];
    p->head_dim_v = sizes[2][3];
    return code;
}

/* -------------------------------------------------------------------------------------------------------------- options */

static int set_types(struct job *job)
{
    struct storage_types types = {0, 0, 0, 0};
    const struct request *r = job->request;
    clattn_type out = 0;
    if (r->dtype != NULL && !storage_types_parse(r->dtype, &types))
        return cli_fail("run", CLI_USAGE, "--dtype",
                        "'%s' is not a type; give fp32, fp16 or bf16, or such as q=fp32,kv=fp16,o=fp32", r->dtype);
    if (r->out_dtype != NULL && !storage_type_parse(r->out_dtype, &out))
        return cli_fail("run", CLI_USAGE, "--out-dtype", "'%s' is not a type; give fp32, fp16 or bf16", r->out_dtype);
    clattn_problem *p = &job->problem;
    p->q.type = types.q ? types.q : storage_type_of(&job->in[0]);
    p->k.type = types.k ? types.k : storage_type_of(&job->in[1]);
    p->v.type = types.v ? types.v : storage_type_of(&job->in[2]);
    p->o.type = types.o ? types.o : p->q.type;
    if (out == 0)
        out = p->o.type == CLATTN_BF16 ? CLATTN_FP32 : p->o.type;
    job->out_type = out == CLATTN_FP32 ? NPY_F4 : out == CLATTN_FP16 ? NPY_F2 : job->in[0].type == NPY_U2 ? NPY_U2 : NPY_V2;
    return CLI_OK;
}

static int set_layout(struct job *job)
{
    const char *text = job->request->layout;
    if (text == NULL || strcmp(text, "bhsd") == 0)
        job->layout = CLATTN_BHSD;
    else if (strcmp(text, "bshd") == 0)
        job->layout = CLATTN_BSHD;
    else
        return cli_fail("run", CLI_USAGE, "--layout", "'%s' is neither bhsd nor bshd", text);
    return CLI_OK;
}

/* Sizes come from a file and may have any value: nothing is computed from them before the library has accepted them. */
static int accept_problem(struct job *job)
{
    clattn_error error;
    clattn_error_init(&error);
    clattn_problem_set_layout(&job->problem, job->layout);
    return session_problem_is_valid(&job->problem, &error) ? CLI_OK : cli_fail_library("run", &error);
}

static int make_problem(struct job *job)
{
    const struct run_options *o = &job->request->options;
    clattn_problem_init(&job->problem);
    job->problem.scale = (float)job->request->scale;
    job->problem.lse.present = job->request->lse != NULL;
    int code = set_layout(job);
    code = code != CLI_OK ? code : set_sizes(job);
    code = code != CLI_OK ? code : set_types(job);
    code = code != CLI_OK ? code : run_options_set(o, &job->problem);
    code = code != CLI_OK ? code : accept_problem(job);
    code = code != CLI_OK ? code : run_options_starts(o, &job->problem, &job->options);
    code = code != CLI_OK ? code : accept_problem(job);
    return code != CLI_OK ? code : run_options_read(o, &job->problem, &job->options);
}

/* ------------------------------------------------------------------------------------------------------------- the work */

static int convert_inputs(struct job *job)
{
    const clattn_type types[3] = {job->problem.q.type, job->problem.k.type, job->problem.v.type};
    for (int i = 0; i < 3; i++) {
        job->storage[i] = array_to_storage(&job->in[i], types[i]);
        if (job->storage[i] == NULL)
            return cli_fail("run", CLI_FAILED, option_names[i], "out of memory");
    }
    return CLI_OK;
}

/* Rows of packed tensors that belong to no sequence are not written: a mark shows which. */
static int mark_outputs(const struct job *job, struct runner *runner)
{
    const size_t o_items = runner->bytes[RUN_O] / storage_size(job->problem.o.type);
    if (job->problem.packed.starts == CLATTN_NO_INTEGERS)
        return CLI_OK;
    storage_fill_poison(job->problem.o.type, job->o, (int64_t)o_items);
    storage_fill_poison(CLATTN_FP32, job->lse, (int64_t)(runner->bytes[RUN_LSE] / sizeof(float)));
    const int code = runner_write(runner, RUN_O, job->o);
    return code != CLI_OK ? code : runner_write(runner, RUN_LSE, job->lse);
}

/* In the files such rows are 0. */
static void clear_marks(clattn_type type, void *data, size_t bytes)
{
    for (int64_t i = 0; i < (int64_t)(bytes / storage_size(type)); i++)
        if (storage_is_poison(type, data, i))
            storage_set(type, data, i, 0.0f);
}

static int compute(struct job *job, struct runner *runner)
{
    int code = CLI_OK;
    double seconds = 0;
    job->o = malloc(runner->bytes[RUN_O] + 1);
    job->lse = malloc(runner->bytes[RUN_LSE] + 1);
    job->scores = malloc(runner->bytes[RUN_SCORES] + 1);
    if (job->o == NULL || job->lse == NULL || job->scores == NULL)
        return cli_fail("run", CLI_FAILED, "--out", "out of memory");
    for (int i = 0; i < 3 && code == CLI_OK; i++)
        code = runner_write(runner, (enum runner_tensor)i, job->storage[i]);
    code = code != CLI_OK ? code : run_options_send(&job->options, runner);
    code = code != CLI_OK ? code : mark_outputs(job, runner);
    code = code != CLI_OK ? code : runner_run(runner, &seconds);
    code = code != CLI_OK ? code : runner_read(runner, RUN_O, job->o);
    code = code != CLI_OK ? code : runner_read(runner, RUN_LSE, job->lse);
    code = code != CLI_OK ? code : runner_read(runner, RUN_SCORES, job->scores);
    return code;
}

static void report(const struct job *job, const struct runner *runner)
{
    char shape[512];
    char *device = session_device_text(runner->session);
    if (clattn_problem_print(&job->problem, shape, sizeof shape, NULL) == CLATTN_SUCCESS)
        printf("shape      %s\n", shape);
    printf("engine     %s\ndevice     %s\n", clattn_plan_engine(runner->plan), device ? device : "n/a");
    if (runner->workspace_bytes != 0)
        printf("workspace  %zu bytes\n", runner->workspace_bytes);
    free(device);
}

/* Numbers into the file of an output. */
static int write_array(struct job *job, int which, enum npy_type as, clattn_type type, const void *data, int rank,
                       const int64_t *shape)
{
    struct npy array;
    if (!array_from_storage(&array, as, type, data, rank, shape))
        return cli_fail("run", CLI_FAILED, output_names[which], "out of memory");
    (void)npy_write(job->outputs[which].file, &array); /* a failure is remembered by the file and reported at its commit */
    npy_free(&array);
    return CLI_OK;
}

static int write_outputs(struct job *job)
{
    const clattn_problem *p = &job->problem;
    const struct npy *q = &job->in[0];
    const bool packed = p->packed.starts != CLATTN_NO_INTEGERS;
    int64_t shape[4];
    memcpy(shape, q->shape, sizeof shape);
    shape[q->rank - 1] = p->head_dim_v;
    int code = write_array(job, OUT, job->out_type, p->o.type, job->o, q->rank, shape);
    const int64_t lse_shape[3] = {packed ? 1 : p->batch, p->heads_q, packed ? p->packed.total_q : p->seq_q};
    if (code == CLI_OK && output_path(job->request, LSE))
        code = write_array(job, LSE, NPY_F4, CLATTN_FP32, job->lse, q->rank - 1, lse_shape + 4 - q->rank);
    const int64_t scores_shape[4] = {p->batch, p->heads_q, p->seq_q, p->seq_kv};
    const int scores_rank = packed ? 4 : q->rank;
    if (code == CLI_OK && output_path(job->request, SCORES))
        code = write_array(job, SCORES, NPY_F4, CLATTN_FP32, job->scores, scores_rank, scores_shape + 4 - scores_rank);
    for (int i = 0; i < OUTPUTS && code == CLI_OK; i++)
        if (job->outputs[i].file != NULL)
            code = cli_commit_output(&job->outputs[i], "run", output_names[i], output_path(job->request, i));
    return code;
}

static int finish(struct job *job, const struct runner *runner)
{
    const clattn_problem *p = &job->problem;
    int verdict = CLI_OK;
    report(job, runner);
    if (job->request->check)
        verdict = verdict_print("run", clattn_plan_engine(runner->plan), p, &job->options, job->storage, job->o,
                                p->lse.present ? job->lse : NULL, p->scores.kind != CLATTN_SCORES_NONE ? job->scores : NULL);
    if (p->packed.starts != CLATTN_NO_INTEGERS) {
        clear_marks(p->o.type, job->o, runner->bytes[RUN_O]);
        clear_marks(CLATTN_FP32, job->lse, runner->bytes[RUN_LSE]);
    }
    const int code = write_outputs(job);
    return code != CLI_OK ? code : verdict;
}

static int run_on_device(struct job *job)
{
    struct session session;
    struct runner runner;
    int code = session_open(&session, "run", job->request->device);
    if (code != CLI_OK)
        return code;
    code = runner_open(&runner, &session, &job->problem, job->request->engine);
    if (code == CLI_OK) {
        code = compute(job, &runner);
        code = code != CLI_OK ? code : finish(job, &runner);
        runner_close(&runner);
    }
    session_close(&session);
    return code;
}

static int run_files(const struct request *request)
{
    struct job job;
    memset(&job, 0, sizeof job);
    job.request = request;
    int code = read_inputs(&job);
    code = code != CLI_OK ? code : make_problem(&job);
    code = code != CLI_OK ? code : convert_inputs(&job);
    code = code != CLI_OK ? code : run_on_device(&job);
    for (int i = 0; i < 3; i++) {
        npy_free(&job.in[i]);
        free(job.storage[i]);
    }
    for (int i = 0; i < OUTPUTS; i++)
        output_abandon(&job.outputs[i]);
    free(job.o);
    free(job.lse);
    free(job.scores);
    run_options_free(&job.options);
    return code;
}

static int run_demo(const struct request *r)
{
    const struct demo_options options = {.device = r->device, .data = r->data, .svg = r->svg, .engine = r->engine};
    if (r->q || r->k || r->v || r->out)
        return cli_fail("run", CLI_USAGE, "--demo", "brings its own input; leave out --q, --k, --v and --out");
    return demo_run(&options);
}

int cmd_run(int argc, char **argv)
{
    struct request r = {.scale = (double)NAN};
    int code;
    const struct cli_option options[] = {
        {"--q", "Q.npy", CLI_TEXT, &r.q, "queries; fp32, fp16, fp64, or bf16 as uint16 or V2 bits"},
        {"--k", "K.npy", CLI_TEXT, &r.k, "keys; fewer heads than Q are shared by runs of Q's heads (GQA)"},
        {"--v", "V.npy", CLI_TEXT, &r.v, "values"},
        {"--out", "O.npy", CLI_TEXT, &r.out, "the output, in the shape of Q; - is standard output, here and below"},
        {"--lse", "L.npy", CLI_TEXT, &r.lse, "also write log-sum-exp a row, fp32 (batch, heads, sequence)"},
        {"--dtype", "TYPE", CLI_TEXT, &r.dtype,
         "storage types on the device: fp32, fp16, bf16, or such as\nq=fp32,kv=fp16,o=fp32 (default: as the files, O as Q)"},
        {"--out-dtype", "TYPE", CLI_TEXT, &r.out_dtype, "type of O.npy (default: O's, bf16 written as fp32)"},
        {"--layout", "bhsd|bshd", CLI_TEXT, &r.layout,
         "the order of axes: 4-D as named, 3-D without batch, 2-D is (seq, dim)\n(default bhsd)"},
        {"--scale", "X", CLI_REAL, &r.scale, "what Q.K is multiplied by (default 1/sqrt(head_dim))"},
        {"--causal", "CORNER", CLI_TEXT, &r.options.causal,
         "top-left: query i sees keys up to i; bottom-right: the last query sees\nevery key; or a number: the key position of "
         "query 0"},
        {"--window", "L,R", CLI_TEXT, &r.options.window,
         "only L keys to the left and R to the right of a query's own position;\n-1 is open"},
        {"--corner", "CORNER", CLI_TEXT, &r.options.corner,
         "top-left or bottom-right: own positions for --window and --alibi where there\nis no --causal (default top-left)"},
        {"--offset", "N", CLI_TEXT, &r.options.offset, "the same as the key position of query 0"},
        {"--mask", "M.npy", CLI_TEXT, &r.options.mask,
         "bool or uint8, non-zero keeps a key: (keys), (queries, keys), (heads,\nqueries, keys) or (batch, heads, queries, "
         "keys); 1 in a place is a broadcast"},
        {"--bias", "B.npy", CLI_TEXT, &r.options.bias, "floats of such a shape, added to the scores; -inf masks a key"},
        {"--softcap", "X", CLI_REAL, &r.options.softcap, "scores become X tanh(score / X), before bias and masks"},
        {"--alibi", "auto|S.npy", CLI_TEXT, &r.options.alibi,
         "a slope for each query head (or batch entry and head) times the distance is\nsubtracted; auto: the usual slopes"},
        {"--sink", "S.npy", CLI_TEXT, &r.options.sink, "a number for each query head that joins the denominator"},
        {"--q-lengths", "L.npy", CLI_TEXT, &r.options.q_lengths,
         "how many queries of each batch entry are real, int32 or int64"},
        {"--kv-lengths", "L.npy", CLI_TEXT, &r.options.kv_lengths, "how many keys"},
        {"--cu-q", "C.npy", CLI_TEXT, &r.options.cu_q,
         "packed sequences: where each begins in Q, and the end of the last;\nthe batch is their number"},
        {"--cu-k", "C.npy", CLI_TEXT, &r.options.cu_k, "the same for K and V"},
        {"--scores", "KIND P.npy", CLI_PAIR, r.options.scores,
         "also write a number for each query and key, fp32: raw, softcap, bias (what\nsoftmax takes) or softmax (the weights)"},
        {"--device", "SEL", CLI_TEXT, &r.device, "0:1, gpu, cpu, or a part of a name, as `clattn info` lists them"},
        {"--engine", "NAME", CLI_TEXT, &r.engine, "only this engine; `unfused` is the three-kernel baseline"},
        {"--check", NULL, CLI_FLAG, &r.check, "compare with double precision on the host and print the error"},
        {"--demo", NULL, CLI_FLAG, &r.demo, "no files needed: attention of a sentence encoder, shown and checked"},
        {"--data", "DIR", CLI_TEXT, &r.data, "with --demo: the folder that holds its data"},
        {"--svg", "FILE", CLI_TEXT, &r.svg, "with --demo: where the picture goes (default clattn-demo.svg)"},
    };
    const struct cli_command command = {
        .name = "run",
        .synopsis = "--q Q.npy --k K.npy --v V.npy --out O.npy [OPTION]...\n--demo [--device SEL] [--svg FILE]",
        .about = "Computes softmax(scale Q.K^T) V for .npy files on an OpenCL device.",
        .options = options,
        .option_count = sizeof options / sizeof options[0],
        .examples = "  clattn run --demo\n"
                    "  clattn run --q q.npy --k k.npy --v v.npy --out o.npy --check\n"
                    "  clattn run --q q.npy --k k.npy --v v.npy --out o.npy --causal bottom-right \\\n"
                    "             --dtype q=fp32,kv=fp16,o=fp32 --layout bshd --device gpu\n"
                    "  clattn run --q q.npy --k k.npy --v v.npy --out o.npy --window 128,0 --causal top-left\n"
                    "  clattn run --q q.npy --k k.npy --v v.npy --out o.npy --kv-lengths lengths.npy --alibi auto\n",
    };
    if (!cli_parse(&command, argc, argv, &code))
        return code;
    if (!r.demo && (r.data || r.svg))
        return cli_fail("run", CLI_USAGE, r.data ? "--data" : "--svg", "belongs to --demo; add it, or leave this out");
    return r.demo ? run_demo(&r) : run_files(&r);
}
