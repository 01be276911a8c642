/* SPDX-License-Identifier: Apache-2.0
 * An application outside the tree: one attention with V = 1 on the first device there is, each output of which is 1. */
#include <clattn/clattn.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { QUERIES = 5, KEYS = 9, DIM = 8 };

static int fail(const char *what, const clattn_error *error)
{
    fprintf(stderr, "%s: %s\n", what, error->message);
    return 1;
}

int main(void)
{
    static float q[QUERIES * DIM], k[KEYS * DIM], v[KEYS * DIM], o[QUERIES * DIM];
    clattn_error error;
    clattn_context *context;
    clattn_problem problem;
    cl_int code;
    clattn_error_init(&error);
    for (int i = 0; i < KEYS * DIM; i++) {
        k[i] = 0.01f * (float)i;
        v[i] = 1.0f;
    }
    if (clattn_context_create(NULL, NULL, NULL, &context, &error) != CLATTN_SUCCESS)
        return fail("context", &error);
    clattn_problem_init(&problem);
    problem.batch = problem.heads_q = problem.heads_kv = 1;
    problem.seq_q = QUERIES;
    problem.seq_kv = KEYS;
    problem.head_dim_qk = problem.head_dim_v = DIM;
    clattn_problem_set_layout(&problem, CLATTN_BHSD);
    cl_context cl = clattn_context_cl(context);
    cl_command_queue queue = clCreateCommandQueue(cl, clattn_context_device(context), 0, &code);
    cl_mem mq = clCreateBuffer(cl, CL_MEM_COPY_HOST_PTR, sizeof q, q, &code);
    cl_mem mk = clCreateBuffer(cl, CL_MEM_COPY_HOST_PTR, sizeof k, k, &code);
    cl_mem mv = clCreateBuffer(cl, CL_MEM_COPY_HOST_PTR, sizeof v, v, &code);
    cl_mem mo = clCreateBuffer(cl, CL_MEM_COPY_HOST_PTR, sizeof o, o, &code);
    if (clattn_attention(context, queue, &problem, mq, mk, mv, mo, NULL, 0, NULL, NULL, &error) != CLATTN_SUCCESS)
        return fail("attention", &error);
    code = clEnqueueReadBuffer(queue, mo, CL_TRUE, 0, sizeof o, o, 0, NULL, NULL);
    for (int i = 0; i < QUERIES * DIM; i++) {
        if (code != CL_SUCCESS || !(fabsf(o[i] - 1.0f) < 1e-5f)) {
            fprintf(stderr, "output %d is %g\n", i, (double)o[i]);
            return 1;
        }
    }
    clReleaseMemObject(mq);
    clReleaseMemObject(mk);
    clReleaseMemObject(mv);
    clReleaseMemObject(mo);
    clReleaseCommandQueue(queue);
    clattn_context_destroy(context);
    printf("clattn %s serves\n", clattn_version());
    return 0;
}
