/* SPDX-License-Identifier: Apache-2.0
 * Decoding with a growing cache: one plan for all steps. Each step appends a row to K and V of every head and attends with one
 * query a head to all rows so far. The cache has room for CAPACITY tokens, which is the plan's bound; a call says how many of
 * them there are. Each step is compared with the same sum on the host. */
#include <clattn/clattn.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { HEADS_Q = 8, HEADS_KV = 2, CAPACITY = 128, STEPS = 40, DIM = 64, GROUP = HEADS_Q / HEADS_KV };

static float q[HEADS_Q][DIM], o[HEADS_Q][DIM], k[HEADS_KV][CAPACITY][DIM], v[HEADS_KV][CAPACITY][DIM];

static void stop(const char *what, const char *why)
{
    fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

/* Numbers between -1 and 1. */
static float next_number(void)
{
    static unsigned state = 1;
    state = state * 1664525u + 1013904223u;
    return (float)(state >> 8) / 8388608.0f - 1.0f;
}

/* The largest difference between o and attention over the first `tokens` rows. */
static double compare(int tokens)
{
    double worst = 0.0;
    for (int h = 0; h < HEADS_Q; h++) {
        double sum = 0.0, top = -INFINITY, score[CAPACITY], want[DIM] = {0.0};
        for (int j = 0; j < tokens; j++) {
            score[j] = 0.0;
            for (int d = 0; d < DIM; d++)
                score[j] += (double)q[h][d] * (double)k[h / GROUP][j][d] / sqrt(DIM);
            top = score[j] > top ? score[j] : top;
        }
        for (int j = 0; j < tokens; j++) {
            const double weight = exp(score[j] - top);
            sum += weight;
            for (int d = 0; d < DIM; d++)
                want[d] += weight * (double)v[h / GROUP][j][d];
        }
        for (int d = 0; d < DIM; d++) {
            const double off = fabs((double)o[h][d] - want[d] / sum);
            worst = off <= worst ? worst : off; /* NaN counts */
        }
    }
    return worst;
}

int main(void)
{
    clattn_error error;
    clattn_context *context = NULL;
    clattn_error_init(&error);
    if (clattn_context_create(NULL, NULL, NULL, &context, &error) != CLATTN_SUCCESS)
        stop("context", error.message);

    /* Once: the plan, for one query and as many keys as the cache has room for. */
    clattn_problem problem;
    clattn_plan *plan = NULL;
    clattn_problem_init(&problem);
    problem.batch = 1, problem.heads_q = HEADS_Q, problem.heads_kv = HEADS_KV;
    problem.seq_q = 1, problem.seq_kv = CAPACITY, problem.head_dim_qk = problem.head_dim_v = DIM;
    clattn_problem_set_layout(&problem, CLATTN_BHSD); /* strides of the whole cache: they stay while it grows */
    if (clattn_plan_create(context, &problem, NULL, &plan, &error) != CLATTN_SUCCESS)
        stop("plan", error.message);

    cl_int code = CL_SUCCESS;
    cl_context cl = clattn_context_cl(context);
    cl_command_queue queue = clCreateCommandQueue(cl, clattn_context_device(context), 0, &code);
    cl_mem mem_q = clCreateBuffer(cl, CL_MEM_READ_ONLY, sizeof q, NULL, &code);
    cl_mem mem_k = clCreateBuffer(cl, CL_MEM_READ_ONLY, sizeof k, NULL, &code);
    cl_mem mem_v = clCreateBuffer(cl, CL_MEM_READ_ONLY, sizeof v, NULL, &code);
    cl_mem mem_o = clCreateBuffer(cl, CL_MEM_WRITE_ONLY, sizeof o, NULL, &code);
    if (code != CL_SUCCESS)
        stop("buffers", "OpenCL made none");

    clattn_call call;
    clattn_call_init(&call, plan);
    call.q = clattn_mem(mem_q, 0);
    call.k = clattn_mem(mem_k, 0);
    call.v = clattn_mem(mem_v, 0);
    call.o = clattn_mem(mem_o, 0);
    double worst = 0.0;
    for (int step = 0; step < STEPS; step++) {
        /* What a model would give: a row of K and V for each key/value head, a query for each query head. */
        for (int h = 0; h < HEADS_KV; h++) {
            const size_t at = ((size_t)h * CAPACITY + (size_t)step) * DIM * sizeof(float);
            for (int d = 0; d < DIM; d++)
                k[h][step][d] = next_number(), v[h][step][d] = next_number();
            clEnqueueWriteBuffer(queue, mem_k, CL_FALSE, at, sizeof k[h][step], k[h][step], 0, NULL, NULL);
            clEnqueueWriteBuffer(queue, mem_v, CL_FALSE, at, sizeof v[h][step], v[h][step], 0, NULL, NULL);
        }
        for (int h = 0; h < HEADS_Q; h++)
            for (int d = 0; d < DIM; d++)
                q[h][d] = next_number();
        clEnqueueWriteBuffer(queue, mem_q, CL_FALSE, 0, sizeof q, q, 0, NULL, NULL);

        call.seq_kv = step + 1; /* all that changes from step to step */
        if (clattn_enqueue(plan, queue, &call, 0, NULL, NULL, &error) != CLATTN_SUCCESS)
            stop("call", error.message);

        if (clEnqueueReadBuffer(queue, mem_o, CL_TRUE, 0, sizeof o, o, 0, NULL, NULL) != CL_SUCCESS)
            stop("output", "it cannot be read");
        const double off = compare(step + 1);
        worst = off <= worst ? worst : off;
    }
    clReleaseMemObject(mem_q);
    clReleaseMemObject(mem_k);
    clReleaseMemObject(mem_v);
    clReleaseMemObject(mem_o);
    clReleaseCommandQueue(queue);
    clattn_plan_destroy(plan);
    clattn_context_destroy(context);
    printf("%d steps, largest error %.1e: %s\n", STEPS, worst, worst < 1e-5 ? "right" : "wrong");
    return worst < 1e-5 ? 0 : 1;
}
