/* SPDX-License-Identifier: Apache-2.0
 * The node tests of ONNX's Attention operator, opsets 23 to 25, on every engine: expected answers from outside this project.
 * convert.py has made them; without them (CLATTN_ONNX_CASES holds no manifest) the program says so and ends with 77. */
#include "attend.h"
#include "files.h"

#include "arrays.h"
#include "half.h"

enum { CASES = 93, SKIPPED = 77 };

struct onnx_case {
    char name[128], shape[512];
};

static struct onnx_case cases[CASES + 1];
static const char *folder;

static bool read_array(const struct onnx_case *c, const char *name, struct npy *array)
{
    char path[1024], why[NPY_WHY_SIZE];
    snprintf(path, sizeof path, "%s/%s/%s.npy", folder, c->name, name);
    return npy_read(path, array, why);
}

/* Element (b, h, s, d) of a C-ordered array of four dimensions. */
static double element(const struct npy *array, int64_t b, int64_t h, int64_t s, int64_t d)
{
    return array_get(array, (size_t)(((b * array->shape[1] + h) * array->shape[2] + s) * array->shape[3] + d));
}

static void fill(const struct onnx_case *c, const char *name, const struct trial_tensor *tensor)
{
    struct npy array;
    assert_true(read_array(c, name, &array));
    assert_int_equal(array.rank, 4);
    for (int axis = 0; axis < 4; axis++)
        assert_int_equal(array.shape[axis], tensor->size[axis]);
    for (int64_t b = 0; b < tensor->size[0]; b++)
        for (int64_t h = 0; h < tensor->size[1]; h++)
            for (int64_t s = 0; s < tensor->size[2]; s++)
                for (int64_t d = 0; d < tensor->size[3]; d++)
                    trial_set(tensor, b, h, s, d, (float)element(&array, b, h, s, d));
    npy_free(&array);
}

static void fill_all(const struct onnx_case *c, struct attend *a)
{
    const clattn_problem *p = &a->trial.problem;
    struct npy lengths;
    fill(c, "q", &a->data.q);
    fill(c, "k", &a->data.k);
    fill(c, "v", &a->data.v);
    if (p->mask.present)
        fill(c, "mask", &a->data.mask);
    if (p->bias.present)
        fill(c, "bias", &a->data.bias);
    if (p->kv_lengths) {
        assert_true(read_array(c, "kv_lengths", &lengths));
        assert_int_equal(lengths.count, a->trial.batch);
        for (int64_t b = 0; b < a->trial.batch; b++)
            trial_set_integer(&a->data.kv_lengths, b, (int64_t)array_get(&lengths, (size_t)b));
        npy_free(&lengths);
    }
}

/* ONNX's own runner allows 1e-3 in every type. The exact answer rounded once to fp16 or bf16 may be further off than that. */
static double tolerance(clattn_type type) { return type == CLATTN_FP32 ? 1e-3 : type == CLATTN_FP16 ? 2e-3 : 0x1p-6; }

static void compare(const struct onnx_case *c, const char *engine, const char *name, const struct trial_tensor *got,
                    clattn_type type)
{
    struct npy want;
    assert_true(read_array(c, name, &want));
    for (int64_t b = 0; b < got->size[0]; b++)
        for (int64_t h = 0; h < got->size[1]; h++)
            for (int64_t s = 0; s < got->size[2]; s++)
                for (int64_t d = 0; d < got->size[3]; d++) {
                    const double x = (double)trial_get(got, b, h, s, d), y = element(&want, b, h, s, d);
                    if (!(x == y || fabs(x - y) <= 1e-7 + tolerance(type) * fabs(y)))
                        fail_msg("%s, %s: %s[%d %d %d %d] is %.9g, ONNX has %.9g (\"%s\")", engine, c->name, name, (int)b,
                                 (int)h, (int)s, (int)d, x, y, c->shape);
                }
    npy_free(&want);
}

static void run_case(void **state)
{
    const struct onnx_case *c = *state;
    bool reference = false, unfused = false;
    FOR_EACH_ENGINE(engine)
    {
        struct attend a;
        attend_begin(&a, c->shape);
        fill_all(c, &a);
        if (attend_launch(&a, engine)) {
            reference = reference || strcmp(engine, "reference") == 0;
            unfused = unfused || strcmp(engine, "unfused") == 0;
            compare(c, engine, "y", &a.data.o, a.trial.problem.o.type);
            if (a.trial.problem.scores.kind != CLATTN_SCORES_NONE)
                compare(c, engine, "scores", &a.data.scores, a.trial.problem.q.type);
            /* And by this project's own measure: guards, completeness, the oracle. */
            trial_judge(&a.trial, &a.data, &a.result);
            if (!a.result.ok)
                fail_msg("%s, %s: %s", engine, c->name, a.result.message);
        }
        attend_end(&a);
    }
    /* Others may decline on this device; these two take everything. */
    if (!reference || !unfused)
        fail_msg("%s: %s declines \"%s\"", c->name, reference ? "unfused" : "reference", c->shape);
}

static size_t read_manifest(void)
{
    char path[1024];
    size_t count = 0;
    snprintf(path, sizeof path, "%s/manifest", folder);
    char *text = folder[0] ? file_read(path) : NULL;
    for (char *line = text; line && *line && count <= CASES; line += strcspn(line, "\n"), line += *line == '\n')
        count += sscanf(line, "%127[^\t]\t%511[^\n]", cases[count].name, cases[count].shape) == 2;
    free(text);
    return count;
}

int main(void)
{
    static struct CMUnitTest tests[CASES];
    folder = getenv("CLATTN_ONNX_CASES") ? getenv("CLATTN_ONNX_CASES") : "";
    const size_t count = read_manifest();
    if (count == 0) {
        fprintf(stderr, "onnx: there are no cases in \"%s\": the ONNX conformance tests are SKIPPED\n", folder);
        return getenv("CLATTN_REQUIRE_ONNX") ? EXIT_FAILURE : SKIPPED;
    }
    if (count != CASES) {
        fprintf(stderr, "onnx: %zu cases in the manifest, %d expected\n", count, CASES);
        return EXIT_FAILURE;
    }
    for (size_t i = 0; i < count; i++)
        tests[i] = (struct CMUnitTest){.name = cases[i].name, .test_func = run_case, .initial_state = &cases[i]};
    return _cmocka_run_group_tests("onnx", tests, count, bench_open, bench_close);
}
