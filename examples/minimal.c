/* SPDX-License-Identifier: Apache-2.0
 * The least that a program needs: a context, a problem and one call. Causal attention in fp16 with grouped heads, over a V
 * whose rows are all the same, so that every output is that row. */
#include <clattn/clattn.h>

#include <stdio.h>
#include <stdlib.h>

enum { HEADS_Q = 8, HEADS_KV = 2, TOKENS = 256, DIM = 64 };

/* 1.0 as an IEEE binary16. */
#define HALF_ONE 0x3c00

static cl_mem buffer_of(cl_context cl, size_t elements, cl_ushort value)
{
    cl_int code = CL_SUCCESS;
    cl_ushort *numbers = malloc(elements * sizeof *numbers);
    if (!numbers)
        return NULL;
    for (size_t i = 0; i < elements; i++)
        numbers[i] = value;
    cl_mem mem = clCreateBuffer(cl, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, elements * sizeof *numbers, numbers, &code);
    free(numbers);
    return code == CL_SUCCESS ? mem : NULL;
}

int main(void)
{
    clattn_error error;
    clattn_error_init(&error);

    clattn_context *context; /* the best device there is; or bring your own cl_context */
    if (clattn_context_create(NULL, NULL, NULL, &context, &error) != CLATTN_SUCCESS) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    clattn_problem problem;
    clattn_problem_init(&problem);
    problem.batch = 1, problem.heads_q = HEADS_Q, problem.heads_kv = HEADS_KV;
    problem.seq_q = problem.seq_kv = TOKENS, problem.head_dim_qk = problem.head_dim_v = DIM;
    problem.q.type = problem.k.type = problem.v.type = problem.o.type = CLATTN_FP16;
    problem.causal = true;
    clattn_problem_set_layout(&problem, CLATTN_BHSD); /* or any strides you have */

    /* Queue and buffers are the application's own. */
    cl_int code = CL_SUCCESS;
    cl_context cl = clattn_context_cl(context);
    cl_command_queue queue = clCreateCommandQueue(cl, clattn_context_device(context), 0, &code);
    cl_mem q = buffer_of(cl, HEADS_Q * TOKENS * DIM, HALF_ONE), k = buffer_of(cl, HEADS_KV * TOKENS * DIM, HALF_ONE);
    cl_mem v = buffer_of(cl, HEADS_KV * TOKENS * DIM, HALF_ONE), o = buffer_of(cl, HEADS_Q * TOKENS * DIM, 0);
    if (code != CL_SUCCESS || !q || !k || !v || !o) {
        fprintf(stderr, "no queue or buffers\n");
        return 1;
    }
    if (clattn_attention(context, queue, &problem, q, k, v, o, NULL, 0, NULL, NULL, &error) != CLATTN_SUCCESS) {
        fprintf(stderr, "%s: %s\n", error.field, error.message);
        return 1;
    }

    static cl_ushort out[HEADS_Q * TOKENS * DIM];
    code = clEnqueueReadBuffer(queue, o, CL_TRUE, 0, sizeof out, out, 0, NULL, NULL);
    for (size_t i = 0; i < sizeof out / sizeof *out; i++)
        if (code != CL_SUCCESS || out[i] != HALF_ONE) {
            fprintf(stderr, "element %zu is wrong: %#x\n", i, (unsigned)out[i]);
            return 1;
        }
    clReleaseMemObject(q);
    clReleaseMemObject(k);
    clReleaseMemObject(v);
    clReleaseMemObject(o);
    clReleaseCommandQueue(queue);
    clattn_context_destroy(context);
    printf("%d outputs, all right\n", HEADS_Q * TOKENS * DIM);
    return 0;
}
