/* SPDX-License-Identifier: Apache-2.0
 * In an application that has an OpenCL context, a queue and tensors of its own: clattn takes them as they are. Q, K and V are
 * three views of one buffer, as the product with a joint weight matrix leaves them (batch, token, [q | k | v], head, element);
 * strides say so and nothing is copied. All rows of V are the same, so every output is that row. */
#include <clattn/clattn.h>

#include <math.h>
#include <stdio.h>

enum { TOKENS = 100, HEADS = 4, DIM = 32, WIDTH = HEADS * DIM };

static float qkv[TOKENS][3][HEADS][DIM], out[TOKENS][HEADS][DIM];

int main(void)
{
    clattn_error error;
    clattn_error_init(&error);

    /* What the application has already. */
    cl_int code = CL_SUCCESS;
    cl_device_id device = NULL;
    if (clattn_device_find(NULL, &device, &error) != CLATTN_SUCCESS) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    for (int t = 0; t < TOKENS; t++)
        for (int h = 0; h < HEADS; h++)
            for (int d = 0; d < DIM; d++) {
                qkv[t][0][h][d] = qkv[t][1][h][d] = sinf((float)(t * WIDTH + h * DIM + d));
                qkv[t][2][h][d] = (float)d;
            }
    cl_context cl = clCreateContext(NULL, 1, &device, NULL, NULL, &code);
    cl_command_queue queue = clCreateCommandQueue(cl, device, 0, &code);
    cl_mem mem = clCreateBuffer(cl, CL_MEM_READ_ONLY, sizeof qkv, NULL, &code);
    cl_mem mem_out = clCreateBuffer(cl, CL_MEM_WRITE_ONLY, sizeof out, NULL, &code);
    if (code != CL_SUCCESS) {
        fprintf(stderr, "no context, queue or buffers\n");
        return 1;
    }

    /* A clattn context for them, one a device, kept for as long as the device is used. */
    clattn_context *context = NULL;
    clattn_plan *plan = NULL;
    if (clattn_context_create(cl, device, NULL, &context, &error) != CLATTN_SUCCESS) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    clattn_problem problem;
    clattn_problem_init(&problem);
    problem.batch = 1, problem.heads_q = problem.heads_kv = HEADS;
    problem.seq_q = problem.seq_kv = TOKENS, problem.head_dim_qk = problem.head_dim_v = DIM;
    clattn_problem_set_layout(&problem, CLATTN_BSHD); /* of O; those of the others are views */
    const clattn_strides view = {(int64_t)TOKENS * 3 * WIDTH, DIM, (int64_t)3 * WIDTH, 1}; /* in elements */
    problem.q.strides = problem.k.strides = problem.v.strides = view;
    if (clattn_plan_create(context, &problem, NULL, &plan, &error) != CLATTN_SUCCESS) {
        fprintf(stderr, "%s: %s\n", error.field, error.message);
        return 1;
    }

    /* The call waits for the upload and the download for the call: events, as between any commands. */
    cl_event uploaded = NULL, attended = NULL;
    clattn_call call;
    clattn_call_init(&call, plan);
    call.q = clattn_mem(mem, 0);
    call.k = clattn_mem(mem, (size_t)WIDTH * sizeof(float)); /* in bytes */
    call.v = clattn_mem(mem, (size_t)2 * WIDTH * sizeof(float));
    call.o = clattn_mem(mem_out, 0);
    clEnqueueWriteBuffer(queue, mem, CL_FALSE, 0, sizeof qkv, qkv, 0, NULL, &uploaded);
    if (clattn_enqueue(plan, queue, &call, 1, &uploaded, &attended, &error) != CLATTN_SUCCESS) {
        fprintf(stderr, "%s: %s\n", error.field, error.message);
        return 1;
    }
    code = clEnqueueReadBuffer(queue, mem_out, CL_TRUE, 0, sizeof out, out, 1, &attended, NULL);
    for (int t = 0; t < TOKENS; t++)
        for (int h = 0; h < HEADS; h++)
            for (int d = 0; d < DIM; d++)
                if (code != CL_SUCCESS || !(fabsf(out[t][h][d] - (float)d) < 1e-4f)) {
                    fprintf(stderr, "token %d, head %d, element %d is wrong: %g\n", t, h, d, (double)out[t][h][d]);
                    return 1;
                }
    clReleaseEvent(uploaded);
    clReleaseEvent(attended);
    clattn_plan_destroy(plan);
    clattn_context_destroy(context);
    clReleaseMemObject(mem);
    clReleaseMemObject(mem_out);
    clReleaseCommandQueue(queue);
    clReleaseContext(cl);
    printf("%d outputs, all right\n", TOKENS * WIDTH);
    return 0;
}
