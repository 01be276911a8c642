/* SPDX-License-Identifier: Apache-2.0 */
#include "demo_table.h"

#include "random.h"
#include "system.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* In order of work. One head size and type, so that each engine is built twice at most. */
static const char *const shapes[] = {
    "b1 hq8 q256 d64",  "b1 hq8 q512 d64",         "b1 hq8 q1024 d64", "b1 hq8 q1024 d64 causal",
    "b1 hq8 q2048 d64", "b1 hq8 q2048 d64 causal", "b1 hq8 q4096 d64", "b1 hq8 q8192 d64",
};

/* Rows whose run would take longer than this, or that come when the time is up, are left out. */
static const double longest_run = 1.5, time_for_all = 12.0;

struct row {
    double fused, unfused; /* seconds; 0: not measured */
    size_t fused_bytes, unfused_bytes;
};

/* Operations of the two products; half of the square is skipped under the diagonal. */
static double operations(const clattn_problem *p)
{
    const double all = 4.0 * (double)p->heads_q * (double)p->seq_q * (double)p->seq_kv * (double)p->head_dim_qk;
    return p->causal ? all / 2 : all;
}

static int fill(struct runner *runner)
{
    int code = CLI_OK;
    for (int t = RUN_Q; t <= RUN_V && code == CLI_OK; t++) {
        const size_t count = runner->bytes[t] / sizeof(float);
        float *data = malloc(runner->bytes[t]);
        if (data == NULL)
            return cli_fail("run", CLI_FAILED, "--demo", "out of memory");
        for (size_t i = 0; i < count; i++)
            data[i] = random_signed(random_mix(i + ((uint64_t)t << 40)));
        code = runner_write(runner, (enum runner_tensor)t, data);
        free(data);
    }
    return code;
}

/* *spent: how long the runs took that were measured, without builds and the first run, which some drivers compile in. */
static int measure(struct session *session, const clattn_problem *problem, const char *engine, double *seconds, size_t *bytes,
                   double *spent)
{
    struct runner runner;
    int code = runner_open(&runner, session, problem, engine);
    if (code != CLI_OK)
        return code;
    code = fill(&runner);
    code = code != CLI_OK ? code : runner_run(&runner, NULL);
    const double start = clock_seconds();
    code = code != CLI_OK ? code : runner_time(&runner, 0.5, seconds);
    *spent += clock_seconds() - start;
    *bytes = runner.workspace_bytes;
    runner_close(&runner);
    return code;
}

/* What three separate kernels must keep: a score for every pair. */
static size_t scores_bytes(const clattn_problem *p) { return sizeof(float) * (size_t)(p->heads_q * p->seq_q * p->seq_kv); }

static bool scores_fit(const struct session *session, const clattn_problem *p)
{
    cl_ulong largest = 0, all = 0;
    const cl_device_id device = clattn_context_device(session->context);
    const size_t bytes = scores_bytes(p);
    (void)clGetDeviceInfo(device, CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof largest, &largest, NULL);
    (void)clGetDeviceInfo(device, CL_DEVICE_GLOBAL_MEM_SIZE, sizeof all, &all, NULL);
    return bytes <= largest && bytes <= all / 4;
}

static char *memory_text(size_t bytes, char *text, size_t size)
{
    if (bytes == 0)
        snprintf(text, size, "none");
    else if (bytes < (size_t)10 << 20)
        snprintf(text, size, "%zu KiB", bytes >> 10);
    else
        snprintf(text, size, "%zu MiB", bytes >> 20);
    return text;
}

static void print_row(const char *shape, const clattn_problem *p, const struct row *row)
{
    char fused[32], unfused[32];
    printf("  %-24s%9.2f  %7.0f", shape, 1e3 * row->fused, 1e-9 * operations(p) / row->fused);
    if (row->unfused > 0)
        printf("  %10.2f  %4.1fx", 1e3 * row->unfused, row->unfused / row->fused);
    else
        printf("  %10s  %5s", "no room", "");
    printf("  %s / %s\n", memory_text(row->fused_bytes, fused, sizeof fused),
           memory_text(row->unfused_bytes, unfused, sizeof unfused));
}

int demo_table(struct session *session, const char *engine)
{
    double rate = 0; /* operations a second of the slower side so far */
    double spent = 0;
    const char *left_out[sizeof shapes / sizeof shapes[0]];
    size_t left_out_count = 0;
    printf("\n3. Fused against the three separate kernels it replaces (fp32, milliseconds)\n\n"
           "  %-24s%9s  %7s  %10s  %5s  %s\n",
           "shape", "fused", "GFLOP/s", "unfused", "gain", "extra memory");
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        struct row row = {0, 0, 0, 0};
        clattn_problem p;
        if (clattn_problem_parse(shapes[i], &p, NULL) != CLATTN_SUCCESS)
            return cli_fail("run", CLI_FAILED, shapes[i], "is not understood by this library");
        if (i > 0 && (operations(&p) > rate * longest_run || spent > time_for_all)) {
            left_out[left_out_count++] = shapes[i];
            continue;
        }
        row.unfused_bytes = scores_bytes(&p);
        int code = measure(session, &p, engine, &row.fused, &row.fused_bytes, &spent);
        if (code == CLI_OK && scores_fit(session, &p))
            code = measure(session, &p, "unfused", &row.unfused, &row.unfused_bytes, &spent);
        if (code != CLI_OK)
            return code;
        print_row(shapes[i], &p, &row);
        rate = operations(&p) / (row.unfused > row.fused ? row.unfused : row.fused);
    }
    for (size_t i = 0; i < left_out_count; i++)
        printf("%s%s%s", i == 0 ? "  left out, as it would take long here: " : ", ", left_out[i],
               i + 1 == left_out_count ? "\n" : "");
    return CLI_OK;
}
