/* SPDX-License-Identifier: Apache-2.0
 * Every engine alone, in every tile that it would use on this device and on some others: its map covers each (row, column)
 * exactly once, each row has one owner, rows fold over all their columns, and both products are right. */
/* ctest: quick */
#include "attend.h"
#include "choose.h"
#include "facts.h"
#include "files.h"
#include "half.h"
#include "kernel_text.h"

enum { KEY_BLOCKS = 3, MAX_SEEN = 128 };

static const float factor_scale = 0.25f;

struct probe {
    const char *engine;
    clattn_problem problem;
    struct config config;
    struct source source;
    cl_kernel kernel;
    int rows, keys, dim, dim_v;
    cl_mem mems[7];       /* in the order of KERNEL_PARAMETERS */
    float *q, *k, *v, *p; /* as the kernel sees them */
    float *scores, *o;
    int32_t *workspace;
};

static char *root;
/* Kernel sources that already ran: many devices get the same tile. */
static char *seen[MAX_SEEN];
static size_t seen_count;

static int open_all(void **state)
{
    root = sources_copy();
    char *from = path_join(CLATTN_SOURCE_DIR, "tests/cl/engine_probe.cl");
    char *text = file_read(from);
    char *to = root != NULL ? path_join(root, "cl/engine_probe.cl") : NULL;
    const bool ok = text != NULL && to != NULL && file_write(to, text);
    free(from);
    free(text);
    free(to);
    return ok ? bench_open(state) : -1;
}

static int close_all(void **state)
{
    for (size_t i = 0; i < seen_count; i++) {
        free(seen[i]);
    }
    sources_remove(root);
    return bench_close(state);
}

static bool is_new(const char *text)
{
    for (size_t i = 0; i < seen_count; i++) {
        if (strcmp(seen[i], text) == 0) {
            return false;
        }
    }
    assert_true(seen_count < MAX_SEEN);
    seen[seen_count++] = strdup(text);
    return true;
}

/* Small whole numbers: exact in every storage type, and so are their products. */
static float number(int row, int col, int salt)
{
    const uint32_t x = (uint32_t)(row * 7919 + col * 104729 + salt * 1299709);
    return (float)((int)((x * 2654435761u) >> 28) % 5 - 2);
}

static float *numbers(int rows, int cols, int salt)
{
    float *list = malloc(sizeof(float) * (size_t)(rows * cols));
    assert_non_null(list);
    for (int i = 0; i < rows; i++) {
        for (int j = 0; j < cols; j++) {
            list[i * cols + j] = number(i, j, salt);
        }
    }
    return list;
}

static cl_mem buffer(const void *data, size_t bytes)
{
    cl_int code;
    cl_mem mem =
        clCreateBuffer(clattn_context_cl(bench.context), CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, bytes, (void *)data, &code);
    assert_int_equal(code, CL_SUCCESS);
    return mem;
}

static cl_mem typed_buffer(const float *list, int count, clattn_type type)
{
    void *data = malloc((size_t)count * storage_size(type));
    assert_non_null(data);
    for (int i = 0; i < count; i++) {
        storage_set(type, data, i, list[i]);
    }
    cl_mem mem = buffer(data, (size_t)count * storage_size(type));
    free(data);
    return mem;
}

static void *zeros(size_t bytes)
{
    void *data = calloc(bytes, 1);
    assert_non_null(data);
    return data;
}

/* The size of the workspace in floats: two tables of counts, owners, maxima and sums. */
static size_t workspace_count(const struct probe *p) { return (size_t)p->rows * (size_t)(p->keys + p->dim_v + 3); }

static void make_buffers(struct probe *p)
{
    p->q = numbers(p->rows, p->dim, 1);
    p->k = numbers(p->keys, p->dim, 2);
    p->v = numbers(p->keys, p->dim_v, 3);
    p->p = numbers(p->rows, p->keys, 4);
    p->scores = zeros(sizeof(float) * (size_t)(p->rows * p->keys));
    p->o = zeros(sizeof(float) * (size_t)(p->rows * p->dim_v));
    p->workspace = zeros(sizeof(float) * workspace_count(p));
    p->mems[0] = typed_buffer(p->q, p->rows * p->dim, p->problem.q.type);
    p->mems[1] = typed_buffer(p->k, p->keys * p->dim, p->problem.k.type);
    p->mems[2] = typed_buffer(p->v, p->keys * p->dim_v, p->problem.v.type);
    p->mems[3] = buffer(p->o, sizeof(float) * (size_t)(p->rows * p->dim_v));
    p->mems[4] = buffer(p->p, sizeof(float) * (size_t)(p->rows * p->keys));
    p->mems[5] = buffer(p->scores, sizeof(float) * (size_t)(p->rows * p->keys));
    p->mems[6] = buffer(p->workspace, sizeof(float) * workspace_count(p));
}

static void free_buffers(struct probe *p)
{
    for (size_t i = 0; i < COUNT_OF(p->mems); i++) {
        clReleaseMemObject(p->mems[i]);
    }
    free(p->q);
    free(p->k);
    free(p->v);
    free(p->p);
    free(p->scores);
    free(p->o);
    free(p->workspace);
}

static void read_back(cl_mem mem, void *data, size_t bytes)
{
    assert_int_equal(clEnqueueReadBuffer(bench.queue, mem, CL_TRUE, 0, bytes, data, 0, NULL, NULL), CL_SUCCESS);
}

static void launch(struct probe *p)
{
    clattn_call call;
    struct launch_args args;
    memset(&call, 0, sizeof call);
    call.batch = 1;
    call.seq_q = p->rows;
    call.seq_kv = p->keys;
    call.scale = factor_scale;
    call.window_left = call.window_right = -1;
    call.q_strides = p->problem.q.strides;
    call.k_strides = p->problem.k.strides;
    call.v_strides = p->problem.v.strides;
    call.o_strides = p->problem.o.strides;
    call.lse_strides = p->problem.lse.strides;
    cla_launch_args(&p->problem, &p->config, &call, &args);
    for (cl_uint i = 0; i < COUNT_OF(p->mems); i++) {
        assert_int_equal(clSetKernelArg(p->kernel, i, sizeof(cl_mem), &p->mems[i]), CL_SUCCESS);
    }
    /* Buffers of options are absent; the numbers come last. */
    cl_uint count = 0;
    assert_int_equal(clGetKernelInfo(p->kernel, CL_KERNEL_NUM_ARGS, sizeof count, &count, NULL), CL_SUCCESS);
    for (cl_uint i = COUNT_OF(p->mems); i < count - 1; i++) {
        assert_int_equal(clSetKernelArg(p->kernel, i, sizeof(cl_mem), NULL), CL_SUCCESS);
    }
    assert_int_equal(clSetKernelArg(p->kernel, count - 1, sizeof args, &args), CL_SUCCESS);
    const size_t size = (size_t)p->config.work_group;
    assert_int_equal(clEnqueueNDRangeKernel(bench.queue, p->kernel, 1, NULL, &size, &size, 0, NULL, NULL), CL_SUCCESS);
    assert_int_equal(clFinish(bench.queue), CL_SUCCESS);
    read_back(p->mems[3], p->o, sizeof(float) * (size_t)(p->rows * p->dim_v));
    read_back(p->mems[5], p->scores, sizeof(float) * (size_t)(p->rows * p->keys));
    read_back(p->mems[6], p->workspace, sizeof(float) * workspace_count(p));
}

#define FAIL_AT(p, what, row, col, got, want)                                                                                  \
    fail_msg("%s, block_m %d block_n %d work_group %d, d%d dv%d: %s of row %d, column %d is %g, wanted %g", (p)->engine,       \
             (p)->config.block_m, (p)->config.block_n, (p)->config.work_group, (p)->dim, (p)->dim_v, what, row, col,           \
             (double)(got), (double)(want))

static void check_counts(const struct probe *p)
{
    const int32_t *count = p->workspace, *o_count = count + p->rows * p->keys, *owned = o_count + p->rows * p->dim_v;
    for (int row = 0; row < p->rows; row++) {
        for (int key = 0; key < p->keys; key++) {
            if (count[row * p->keys + key] != 1) {
                FAIL_AT(p, "number of holders", row, key, count[row * p->keys + key], 1);
            }
        }
        for (int col = 0; col < p->dim_v; col++) {
            if (o_count[row * p->dim_v + col] != 1) {
                FAIL_AT(p, "number of holders in the output", row, col, o_count[row * p->dim_v + col], 1);
            }
        }
        if (owned[row] != 1) {
            FAIL_AT(p, "number of owners", row, 0, owned[row], 1);
        }
    }
}

static void check_scores(const struct probe *p)
{
    const float *folded = (const float *)p->workspace + p->rows * (p->keys + p->dim_v + 1);
    for (int row = 0; row < p->rows; row++) {
        double largest = -INFINITY, sum = 0.0;
        for (int key = 0; key < p->keys; key++) {
            double want = 0.0;
            for (int d = 0; d < p->dim; d++) {
                want += (double)p->q[row * p->dim + d] * p->k[key * p->dim + d];
            }
            want *= (double)factor_scale * 1.4426950408889634;
            const double got = p->scores[row * p->keys + key];
            if (!(fabs(got - want) <= 1e-6 * (1.0 + fabs(want)) * p->dim)) {
                FAIL_AT(p, "score", row, key, got, want);
            }
            largest = got > largest ? got : largest;
            sum += p->p[row * p->keys + key];
        }
        if (folded[row] != (float)largest) {
            FAIL_AT(p, "folded maximum", row, 0, folded[row], largest);
        }
        if (folded[p->rows + row] != (float)sum) {
            FAIL_AT(p, "folded sum", row, 0, folded[p->rows + row], sum);
        }
    }
}

static void check_output(const struct probe *p)
{
    const int block_n = p->config.block_n;
    for (int row = 0; row < p->rows; row++) {
        for (int col = 0; col < p->dim_v; col++) {
            double want = 1.0;
            for (int block = 0; block < KEY_BLOCKS; block++) {
                want *= 0.5;
                for (int key = block * block_n; key < (block + 1) * block_n; key++) {
                    want += (double)p->p[row * p->keys + key] * p->v[key * p->dim_v + col];
                }
            }
            const double got = p->o[row * p->dim_v + col];
            if (!(fabs(got - want) <= 1e-5 * (1.0 + fabs(want)))) {
                FAIL_AT(p, "output", row, col, got, want);
            }
        }
    }
}

static void compose(struct probe *p, const struct facts *facts)
{
    clattn_error error;
    struct text defines = {0};
    clattn_error_init(&error);
    cla_kernel_defines(facts, &p->problem, &p->config, &defines);
    cla_text_add(&defines, "#define KEY_BLOCKS %d\n", KEY_BLOCKS);
    const char *const files[] = {"cl/base.cl", "cl/args.cl", "cl/tile.cl", p->config.engine->file, "cl/engine_probe.cl"};
    assert_ok(cla_source_compose(&p->source, defines.data, files, COUNT_OF(files), root, &error), &error);
    cla_text_free(&defines);
}

static cl_program build(const struct source *source, char *log, size_t log_size)
{
    cl_int code;
    cl_device_id device = clattn_context_device(bench.context);
    const char *text = source->text.data;
    cl_program program = clCreateProgramWithSource(clattn_context_cl(bench.context), 1, &text, NULL, &code);
    assert_int_equal(code, CL_SUCCESS);
    code = clBuildProgram(program, 1, &device, "", NULL, NULL);
    if (code == CL_SUCCESS) {
        return program;
    }
    log[0] = '\0';
    clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, log_size - 1, log, NULL);
    clReleaseProgram(program);
    return NULL;
}

static void run(struct probe *p, const struct facts *facts)
{
    static char log[65536];
    cl_int code;
    /* The problem of one tile; strides do not appear in the kernel source. */
    p->rows = p->config.block_m;
    p->keys = KEY_BLOCKS * p->config.block_n;
    p->dim = (int)p->problem.head_dim_qk;
    p->dim_v = (int)p->problem.head_dim_v;
    p->problem.batch = p->problem.heads_q = p->problem.heads_kv = 1;
    p->problem.seq_q = p->rows;
    p->problem.seq_kv = p->keys;
    clattn_problem_set_layout(&p->problem, CLATTN_BHSD);
    compose(p, facts);
    if (is_new(p->source.text.data)) {
        cl_program program = build(&p->source, log, sizeof log);
        if (program == NULL) {
            fail_msg("%s: %.2000s", p->engine, log);
        }
        p->kernel = clCreateKernel(program, "probe", &code);
        assert_int_equal(code, CL_SUCCESS);
        make_buffers(p);
        launch(p);
        check_counts(p);
        check_scores(p);
        check_output(p);
        free_buffers(p);
        clReleaseKernel(p->kernel);
        clReleaseProgram(program);
    }
    cla_source_free(&p->source);
}

/* The first `most` tiles of each fused engine for the facts. */
static size_t run_all(const struct facts *facts, const struct facts *here, const char *shape, size_t most)
{
    size_t ran = 0;
    clattn_error error;
    clattn_problem problem;
    clattn_error_init(&error);
    assert_ok(clattn_problem_parse(shape, &problem, &error), &error);
    for (size_t i = 0; i < cla_engine_count; i++) {
        char why[200];
        struct config list[CLA_MAX_CONFIGS];
        const struct engine *engine = cla_engines[i];
        if (strcmp(engine->kernel_file, "cl/attention.cl") != 0 || !engine->serves(facts, &problem, why, sizeof why) ||
            (engine->permit && !engine->permit(why, sizeof why))) {
            continue;
        }
        const size_t count = engine->configs(facts, &problem, list);
        for (size_t j = 0; j < count && j < most; j++) {
            if (cla_config_fits(here, &list[j], why, sizeof why)) {
                struct probe probe = {.engine = engine->name, .problem = problem, .config = list[j]};
                run(&probe, facts);
                ran++;
            }
        }
    }
    return ran;
}

static void read_here(struct facts *here)
{
    char text[16384];
    clattn_error error;
    clattn_error_init(&error);
    assert_int_equal(clattn_context_facts(bench.context, text, sizeof text, NULL), CLATTN_SUCCESS);
    assert_ok(cla_facts_parse(text, here, &error), &error);
}

/* Facts of a saved device, without its own instructions (inline PTX), which cannot run here. */
static void read_saved(const char *name, struct facts *facts)
{
    clattn_error error;
    clattn_error_init(&error);
    char *path = path_join(CLATTN_SOURCE_DIR "/tests/devices", name);
    char *text = file_read(path);
    assert_non_null(text);
    assert_ok(cla_facts_parse(text, facts, &error), &error);
    facts->nv_compute = 0;
    free(text);
    free(path);
}

static const char *const shapes[] = {
    "q1 d8 dv12",
    "q1 d5 dv3",
    "q1 d64 q=fp32 kv=fp16 o=fp32",
    "q1 d64 dv128 q=bf16 kv=bf16 o=fp32",
};

static void all_tiles_of_this_device_are_right(void **state)
{
    (void)state;
    struct facts here;
    read_here(&here);
    for (size_t i = 0; i < COUNT_OF(shapes); i++) {
        assert_true(run_all(&here, &here, shapes[i], 2) >= 1);
    }
}

static void all_tiles_of_other_devices_are_right(void **state)
{
    (void)state;
    static const char *const devices[] = {"amd-rdna2-gfx1030.facts", "arm-mali-g71.facts", "apple-cpu-single.facts"};
    struct facts here;
    read_here(&here);
    for (size_t i = 0; i < COUNT_OF(devices); i++) {
        struct facts facts;
        read_saved(devices[i], &facts);
        assert_true(run_all(&facts, &here, shapes[0], 3) >= 1);
    }
}

/* Large heads go through local memory in pieces. */
static void large_heads_in_pieces_are_right(void **state)
{
    (void)state;
    struct facts here, facts;
    read_here(&here);
    read_saved("qualcomm-adreno-750.facts", &facts);
    assert_true(run_all(&facts, &here, "q1 d300 dv260", 2) >= 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_tiles_of_this_device_are_right),
        cmocka_unit_test(all_tiles_of_other_devices_are_right),
        cmocka_unit_test(large_heads_in_pieces_are_right),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
