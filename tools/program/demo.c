/* SPDX-License-Identifier: Apache-2.0 */
#include "demo.h"

#include "arrays.h"
#include "demo_table.h"
#include "half.h"
#include "picture.h"
#include "sample.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Everything of one demonstration. Queries and outputs are fp32, keys and values fp16 as the sample holds them. */
struct demo {
    const struct demo_options *options;
    struct session session;
    struct sample sample;
    float *q, *weights; /* weights: [heads][tokens][tokens] of the shown sentence */
    void *k, *v;
    struct output picture;
    float *out; /* of one sentence, in the strides of the whole */
};

enum { SHOWN = 0 }; /* the sentence that is drawn */

#define TOLERANCE 1e-5 /* of the largest expected number, as docs/semantics.md has it for fp32 */

static int load(struct demo *demo)
{
    struct sample *s = &demo->sample;
    const int code = sample_load(s, demo->options->data);
    if (code != CLI_OK)
        return code;
    demo->q = array_to_storage(&s->q, CLATTN_FP32);
    demo->k = array_to_storage(&s->k, CLATTN_FP16);
    demo->v = array_to_storage(&s->v, CLATTN_FP16);
    const size_t n = (size_t)s->lengths[SHOWN];
    demo->out = malloc(s->q.count * sizeof *demo->out);
    demo->weights = malloc((size_t)s->heads * n * n * sizeof *demo->weights);
    if (demo->q == NULL || demo->k == NULL || demo->v == NULL || demo->out == NULL || demo->weights == NULL)
        return cli_fail("run", CLI_FAILED, "--demo", "out of memory");
    return CLI_OK;
}

/* One plan for every sentence: what a call brings are its length and where its tensors begin. */
static void make_problem(const struct sample *s, clattn_problem *p)
{
    clattn_problem_init(p);
    p->batch = s->sentences;
    p->heads_q = p->heads_kv = s->heads;
    p->seq_q = p->seq_kv = s->longest;
    p->head_dim_qk = p->head_dim_v = s->head_dim;
    p->k.type = p->v.type = CLATTN_FP16;
    clattn_problem_set_layout(p, CLATTN_BHSD);
}

static int open_runner(struct demo *demo, const clattn_problem *problem, const char *engine, struct runner *runner)
{
    int code = runner_open(runner, &demo->session, problem, engine);
    if (code != CLI_OK)
        return code;
    code = runner_write(runner, RUN_Q, demo->q);
    code = code != CLI_OK ? code : runner_write(runner, RUN_K, demo->k);
    code = code != CLI_OK ? code : runner_write(runner, RUN_V, demo->v);
    if (code != CLI_OK)
        runner_close(runner);
    return code;
}

static void choose_sentence(const struct sample *s, int sentence, clattn_call *call)
{
    const size_t at = (size_t)sentence * (size_t)s->heads * (size_t)s->longest * (size_t)s->head_dim;
    call->batch = 1;
    call->seq_q = call->seq_kv = s->lengths[sentence];
    call->q.offset = call->o.offset = at * storage_size(CLATTN_FP32);
    call->k.offset = call->v.offset = at * storage_size(CLATTN_FP16);
}

/* ---------------------------------------------------------------------------------------------------- right or not */

static double largest_error(const struct demo *demo, int sentence, double *largest)
{
    const struct sample *s = &demo->sample;
    double worst = 0;
    for (int h = 0; h < s->heads; h++) {
        for (int i = 0; i < s->lengths[sentence]; i++) {
            const size_t row = ((size_t)(sentence * s->heads + h) * (size_t)s->longest + (size_t)i) * (size_t)s->head_dim;
            for (size_t d = row; d < row + (size_t)s->head_dim; d++) {
                const double want = array_get(&s->expected, d), error = fabs((double)demo->out[d] - want);
                worst = error <= worst ? worst : error; /* a NaN stays */
                *largest = fabs(want) > *largest ? fabs(want) : *largest;
            }
        }
    }
    return worst;
}

/* "the quick brown fox", cut to what is left of 80 columns. */
static void print_sentence(const struct sample *s, int sentence)
{
    int left = 46;
    for (int i = 1; i + 1 < s->lengths[sentence]; i++) {
        const char *word = s->tokens[sentence][i];
        const bool joined = word[0] == '#' && word[1] == '#';
        const int length = (int)strlen(word) - (joined ? 2 : 0) + !joined;
        if (length > left - 4) {
            printf(" ...");
            break;
        }
        printf("%s%s", joined || i == 1 ? "" : " ", joined ? word + 2 : word);
        left -= length;
    }
    printf("\n");
}

static int compute_sentence(struct demo *demo, struct runner *runner, int sentence)
{
    double largest = 0;
    choose_sentence(&demo->sample, sentence, &runner->call);
    int code = runner_run(runner, NULL);
    code = code != CLI_OK ? code : runner_read(runner, RUN_O, demo->out);
    if (code != CLI_OK)
        return code;
    const double error = largest_error(demo, sentence, &largest);
    const bool right = error <= TOLERANCE * largest;
    printf("  %6d  %13.1e  %-6s  ", demo->sample.lengths[sentence], error, right ? "right" : "WRONG");
    print_sentence(&demo->sample, sentence);
    return right ? CLI_OK : CLI_CHECK_FAILED;
}

static int compute_all(struct demo *demo)
{
    struct runner runner;
    clattn_problem problem;
    make_problem(&demo->sample, &problem);
    int worst = open_runner(demo, &problem, demo->options->engine, &runner);
    if (worst != CLI_OK)
        return worst;
    printf("\n1. Four sentences through one layer of a sentence encoder, by the engine `%s`,\n"
           "   against attention in double precision (12 heads of 32, K and V fp16)\n\n"
           "  tokens  largest error          sentence\n",
           clattn_plan_engine(runner.plan));
    for (int i = 0; i < demo->sample.sentences && worst <= CLI_CHECK_FAILED; i++) {
        const int code = compute_sentence(demo, &runner, i);
        worst = code > worst ? code : worst;
    }
    runner_close(&runner);
    if (worst == CLI_CHECK_FAILED)
        cli_fail("run", CLI_CHECK_FAILED, "--demo",
                 "the error is too large; please report it with the output of `clattn info`");
    return worst;
}

/* ------------------------------------------------------------------------------------------------------------ picture */

static int compute_weights(struct demo *demo)
{
    struct runner runner;
    clattn_problem problem;
    const struct sample *s = &demo->sample;
    const size_t n = (size_t)s->lengths[SHOWN], longest = (size_t)s->longest;
    make_problem(s, &problem);
    problem.scores.kind = CLATTN_SCORES_SOFTMAX;
    int code = open_runner(demo, &problem, "unfused", &runner);
    if (code != CLI_OK)
        return code;
    float *scores = malloc(runner.bytes[RUN_SCORES]);
    choose_sentence(s, SHOWN, &runner.call);
    code = scores != NULL ? runner_run(&runner, NULL) : cli_fail("run", CLI_FAILED, "--demo", "out of memory");
    code = code != CLI_OK ? code : runner_read(&runner, RUN_SCORES, scores);
    for (size_t h = 0; h < (size_t)s->heads && code == CLI_OK; h++)
        for (size_t i = 0; i < n; i++)
            memcpy(demo->weights + (h * n + i) * n, scores + (h * longest + i) * longest, n * sizeof *scores);
    free(scores);
    runner_close(&runner);
    return code;
}

static const char *picture_path(const struct demo *demo) { return demo->options->svg ? demo->options->svg : "clattn-demo.svg"; }

static int show(struct demo *demo)
{
    const char *const path = picture_path(demo);
    char note[1200];
    char *device = session_device_text(&demo->session);
    int code = compute_weights(demo);
    snprintf(note, sizeof note, "Weights computed by clattn %s on %s", clattn_version(), device ? device : "n/a");
    free(device);
    const struct picture picture = {.heads = demo->sample.heads,
                                    .tokens = demo->sample.lengths[SHOWN],
                                    .weights = demo->weights,
                                    .labels = demo->sample.tokens[SHOWN],
                                    .title = "Which word looks at which",
                                    .note = note};
    if (code != CLI_OK)
        return code;
    const int head = picture_telling_head(&picture);
    printf("\n2. Which word (left) looks at which (above): head %d of the first sentence\n\n", head);
    picture_print(&picture, head, cli_wants_colour(1));
    picture_draw_svg(demo->picture.file, &picture, head);
    code = cli_commit_output(&demo->picture, "run", "--svg", path);
    if (code == CLI_OK)
        printf("%8s all heads as a picture: %s\n", "", path);
    return code;
}

static int demonstrate(struct demo *demo)
{
    char *device = session_device_text(&demo->session);
    printf("clattn %s on\n   %s\n", clattn_version(), device ? device : "n/a");
    free(device);
    int code = compute_all(demo);
    if (code == CLI_OK)
        code = show(demo);
    if (code == CLI_OK)
        code = demo_table(&demo->session, demo->options->engine);
    return code;
}

int demo_run(const struct demo_options *options)
{
    struct demo demo;
    memset(&demo, 0, sizeof demo);
    demo.options = options;
    int code = load(&demo);
    code = code != CLI_OK ? code : cli_open_output(&demo.picture, "run", "--svg", picture_path(&demo));
    code = code != CLI_OK ? code : session_open(&demo.session, "run", options->device);
    if (code == CLI_OK) {
        code = demonstrate(&demo);
        session_close(&demo.session);
    }
    output_abandon(&demo.picture);
    sample_free(&demo.sample);
    free(demo.q);
    free(demo.k);
    free(demo.v);
    free(demo.out);
    free(demo.weights);
    return code;
}
