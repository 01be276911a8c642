/* SPDX-License-Identifier: Apache-2.0
 * A plan that is kept, and a batch of sequences of different lengths in padded tensors. The lengths lie in a buffer on the
 * device; what the padding holds does not matter, here NaN. With equal scores an output is the mean of the sequence's values,
 * which are 0, 1, 2 ... here. */
#include <clattn/clattn.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { BATCH = 3, LONGEST = 48, DIM = 16 };

static float q[BATCH][LONGEST][DIM], k[BATCH][LONGEST][DIM], v[BATCH][LONGEST][DIM], out[BATCH][LONGEST][DIM];

static void stop(const char *what, const char *why)
{
    fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

/* The sequences of the moment: K and V past their lengths are NaN. */
static void fill(const int *lengths)
{
    for (int b = 0; b < BATCH; b++)
        for (int i = 0; i < LONGEST; i++)
            for (int d = 0; d < DIM; d++) {
                k[b][i][d] = i < lengths[b] ? 0.0f : NAN;
                v[b][i][d] = i < lengths[b] ? (float)i : NAN;
            }
}

static void compare(const int *lengths)
{
    for (int b = 0; b < BATCH; b++)
        for (int i = 0; i < LONGEST; i++)
            for (int d = 0; d < DIM; d++)
                if (!(fabsf(out[b][i][d] - 0.5f * (float)(lengths[b] - 1)) < 1e-4f))
                    stop("output", "it is not the mean of the sequence");
}

int main(void)
{
    static const int rounds[][BATCH] = {{48, 7, 1}, {3, 20, 33}};
    clattn_error error;
    clattn_context *context = NULL;
    clattn_plan *plan = NULL;
    clattn_error_init(&error);
    if (clattn_context_create(NULL, NULL, NULL, &context, &error) != CLATTN_SUCCESS)
        stop("context", error.message);

    /* Upper bounds, and that lengths will come from a buffer of 32-bit integers. */
    clattn_problem problem;
    clattn_problem_init(&problem);
    problem.batch = BATCH, problem.heads_q = problem.heads_kv = 1;
    problem.seq_q = problem.seq_kv = LONGEST, problem.head_dim_qk = problem.head_dim_v = DIM;
    problem.kv_lengths = CLATTN_INT32;
    clattn_problem_set_layout(&problem, CLATTN_BHSD);
    if (clattn_plan_create(context, &problem, NULL, &plan, &error) != CLATTN_SUCCESS)
        stop("plan", error.message);
    char about[4096];
    if (clattn_plan_describe(plan, about, sizeof about, NULL) == CLATTN_SUCCESS)
        printf("%s\n", about); /* the engine, its tile, and why others were not taken */

    cl_int code = CL_SUCCESS;
    cl_context cl = clattn_context_cl(context);
    cl_command_queue queue = clCreateCommandQueue(cl, clattn_context_device(context), 0, &code);
    cl_mem mem_q = clCreateBuffer(cl, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, sizeof q, q, &code);
    cl_mem mem_k = clCreateBuffer(cl, CL_MEM_READ_ONLY, sizeof k, NULL, &code);
    cl_mem mem_v = clCreateBuffer(cl, CL_MEM_READ_ONLY, sizeof v, NULL, &code);
    cl_mem mem_o = clCreateBuffer(cl, CL_MEM_WRITE_ONLY, sizeof out, NULL, &code);
    cl_mem mem_lengths = clCreateBuffer(cl, CL_MEM_READ_ONLY, sizeof rounds[0], NULL, &code);
    if (code != CL_SUCCESS)
        stop("buffers", "OpenCL made none");

    clattn_call call;
    clattn_call_init(&call, plan);
    call.q = clattn_mem(mem_q, 0);
    call.k = clattn_mem(mem_k, 0);
    call.v = clattn_mem(mem_v, 0);
    call.o = clattn_mem(mem_o, 0);
    call.kv_lengths = clattn_mem(mem_lengths, 0);
    for (size_t r = 0; r < sizeof rounds / sizeof *rounds; r++) {
        fill(rounds[r]);
        clEnqueueWriteBuffer(queue, mem_k, CL_TRUE, 0, sizeof k, k, 0, NULL, NULL);
        clEnqueueWriteBuffer(queue, mem_v, CL_TRUE, 0, sizeof v, v, 0, NULL, NULL);
        clEnqueueWriteBuffer(queue, mem_lengths, CL_TRUE, 0, sizeof rounds[r], rounds[r], 0, NULL, NULL);
        if (clattn_enqueue(plan, queue, &call, 0, NULL, NULL, &error) != CLATTN_SUCCESS)
            stop("call", error.message);
        if (clEnqueueReadBuffer(queue, mem_o, CL_TRUE, 0, sizeof out, out, 0, NULL, NULL) != CL_SUCCESS)
            stop("output", "it cannot be read");
        compare(rounds[r]);
    }
    clReleaseMemObject(mem_q);
    clReleaseMemObject(mem_k);
    clReleaseMemObject(mem_v);
    clReleaseMemObject(mem_o);
    clReleaseMemObject(mem_lengths);
    clReleaseCommandQueue(queue);
    clattn_plan_destroy(plan);
    clattn_context_destroy(context);
    printf("%d sequences, all right\n", BATCH * (int)(sizeof rounds / sizeof *rounds));
    return 0;
}
