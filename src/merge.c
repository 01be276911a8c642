/* SPDX-License-Identifier: Apache-2.0
 * Merges two partial results, as a separate call. */
#include "buffer.h"
#include "context.h"
#include "launch.h"
#include "problem.h"
#include "queue.h"

#include <string.h>

/* The twin of merge_args in cl/split/merge_partials.cl. */
struct merge_args {
    struct tensor_view a, b, o, a_lse, b_lse, o_lse;
    int32_t batches, heads, seq_q, head_dim;
    int32_t a_floats, b_floats, o_floats, unused; /* of an element of LSE; 0: no LSE */
};

/* The size of the first version of the struct; it never changes. */
#define FIRST_MERGE_SIZE (offsetof(clattn_merge, out) + sizeof(clattn_partial))

void clattn_merge_init_sized(clattn_merge *merge, size_t size)
{
    clattn_merge fresh;
    if (!merge)
        return;
    memset(&fresh, 0, sizeof fresh);
    fresh.a.o_layout.type = fresh.b.o_layout.type = fresh.out.o_layout.type = CLATTN_FP32;
    memset(merge, 0, size);
    memcpy(merge, &fresh, size < sizeof fresh ? size : sizeof fresh);
    merge->struct_size = size;
}

static clattn_status check_partial(const char *o_field, const char *lse_field, clattn_partial *part, const clattn_merge *m,
                                   bool needs_lse, bool written, const clattn_context *context, clattn_error *error)
{
    const clattn_tensor *layout = &part->o_layout;
    if (layout->type != CLATTN_FP32 && layout->type != CLATTN_FP16 && layout->type != CLATTN_BF16)
        return cla_fail(error, CLATTN_INVALID_ARGUMENT, o_field, "%s: its type is %d, no clattn_type", o_field,
                        (int)layout->type);
    const struct tensor_check o = {o_field,
                                   &part->o,
                                   cla_type_size(layout->type),
                                   {m->batch, m->heads, m->seq_q, m->head_dim},
                                   {layout->strides.batch, layout->strides.head, layout->strides.row, layout->strides.column},
                                   written};
    if (needs_lse && part->lse_form != CLATTN_LSE && part->lse_form != CLATTN_MAX_AND_SUM)
        return cla_fail(error, CLATTN_INVALID_ARGUMENT, lse_field, "%s: its form is %d, no clattn_lse_form", lse_field,
                        (int)part->lse_form);
    const struct tensor_check lse = {lse_field,
                                     &part->lse,
                                     cla_lse_size(part->lse_form),
                                     {m->batch, m->heads, m->seq_q, 1},
                                     {part->lse_strides.batch, part->lse_strides.head, part->lse_strides.row, 0},
                                     written};
    TRY(cla_check_tensor(&o, context, error));
    return needs_lse ? cla_check_tensor(&lse, context, error) : CLATTN_SUCCESS;
}

static bool has_lse(const clattn_merge *m) { return m->out.lse.kind != CLATTN_BUFFER_NONE; }

static clattn_status check_out_strides(const clattn_merge *m, clattn_error *error)
{
    const clattn_partial *out = &m->out;
    const bool lse = has_lse(m);
    if (cla_problem_is_empty(m->batch, m->heads, m->seq_q) || m->head_dim == 0) /* contiguous strides may be 0 */
        return CLATTN_SUCCESS;
    TRY(cla_check_output_stride("merge.out.o_layout.strides.batch", m->batch, out->o_layout.strides.batch, error));
    TRY(cla_check_output_stride("merge.out.o_layout.strides.head", m->heads, out->o_layout.strides.head, error));
    TRY(cla_check_output_stride("merge.out.o_layout.strides.row", m->seq_q, out->o_layout.strides.row, error));
    TRY(cla_check_output_stride("merge.out.o_layout.strides.column", m->head_dim, out->o_layout.strides.column, error));
    TRY(cla_check_output_stride("merge.out.lse_strides.batch", lse ? m->batch : 0, out->lse_strides.batch, error));
    TRY(cla_check_output_stride("merge.out.lse_strides.head", lse ? m->heads : 0, out->lse_strides.head, error));
    return cla_check_output_stride("merge.out.lse_strides.row", lse ? m->seq_q : 0, out->lse_strides.row, error);
}

static clattn_status check(clattn_merge *m, const clattn_context *context, clattn_error *error)
{
    const struct {
        const char *field;
        int64_t value;
    } sizes[] = {
        {"merge.batch", m->batch}, {"merge.heads", m->heads}, {"merge.seq_q", m->seq_q}, {"merge.head_dim", m->head_dim}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i].value < 0 || sizes[i].value > CLA_MAX_SEQ)
            return cla_fail(error, CLATTN_INVALID_ARGUMENT, sizes[i].field, "%s must lie in 0 ... 2^29", sizes[i].field);
    TRY(cla_check_rows("merge.batch", m->batch, m->heads, m->seq_q, error));
    TRY(check_out_strides(m, error));
    TRY(check_partial("merge.a.o", "merge.a.lse", &m->a, m, true, false, context, error));
    TRY(check_partial("merge.b.o", "merge.b.lse", &m->b, m, true, false, context, error));
    return check_partial("merge.out.o", "merge.out.lse", &m->out, m, has_lse(m), true, context, error);
}

static struct tensor_view o_view(const clattn_partial *part)
{
    const clattn_tensor *t = &part->o_layout;
    const struct tensor_view v = {(int64_t)(part->o.offset / cla_type_size(t->type)), t->strides.batch, t->strides.head,
                                  t->strides.row, t->strides.column};
    return v;
}

static struct tensor_view lse_view(const clattn_partial *part)
{
    const struct tensor_view v = {(int64_t)(part->lse.offset / cla_lse_size(part->lse_form)), part->lse_strides.batch,
                                  part->lse_strides.head, part->lse_strides.row, 0};
    return v;
}

static int32_t lse_floats(const clattn_partial *part) { return (int32_t)(cla_lse_size(part->lse_form) / sizeof(float)); }

static clattn_status get_kernel(clattn_context *context, const clattn_merge *m, cl_kernel *kernel, clattn_error *error)
{
    static const char *const files[] = {"cl/base.cl", "cl/args.cl", "cl/split/merge_partials.cl"};
    struct text defines = {0}, options = {0};
    struct source source = {0};
    cl_program program = NULL;
    cl_int code = CL_SUCCESS;
    cla_text_add(&defines,
                 "#define K_TYPE %d\n#define O_TYPE %d\n#define Q_TYPE %d\n#define SCORE_OPTIONS 0\n#define V_TYPE 1\n",
                 (int)m->b.o_layout.type, (int)m->out.o_layout.type, (int)m->a.o_layout.type);
    cla_program_options(&context->facts, cla_variable(context->ignores_environment, VARIABLE_BUILD_OPTIONS), &options);
    clattn_status status =
        defines.failed || options.failed
            ? cla_fail(error, CLATTN_OUT_OF_HOST_MEMORY, "", "out of host memory while composing kernel source")
            : cla_source_compose(&source, defines.data, files, 3,
                                 cla_variable(context->ignores_environment, VARIABLE_SOURCE_DIR), error);
    if (status == CLATTN_SUCCESS)
        status = cla_program_get(context, &source, options.data, NULL, &program, error);
    if (status == CLATTN_SUCCESS) {
        *kernel = clCreateKernel(program, "merge_partials", &code);
        if (code != CL_SUCCESS)
            status = cla_fail_cl(error, code, "clCreateKernel");
        else
            cla_program_save(context, program);
    }
    cla_text_free(&defines);
    cla_text_free(&options);
    cla_source_free(&source);
    return status;
}

static cl_int set_arguments(const clattn_context *context, cl_kernel kernel, const clattn_merge *m)
{
    const struct merge_args args = {.a = o_view(&m->a),
                                    .b = o_view(&m->b),
                                    .o = o_view(&m->out),
                                    .a_lse = lse_view(&m->a),
                                    .b_lse = lse_view(&m->b),
                                    .o_lse = lse_view(&m->out),
                                    .batches = (int32_t)m->batch,
                                    .heads = (int32_t)m->heads,
                                    .seq_q = (int32_t)m->seq_q,
                                    .head_dim = (int32_t)m->head_dim,
                                    .a_floats = lse_floats(&m->a),
                                    .b_floats = lse_floats(&m->b),
                                    .o_floats = has_lse(m) ? lse_floats(&m->out) : 0};
    const clattn_buffer *const buffers[] = {&m->a.o, &m->a.lse, &m->b.o, &m->b.lse, &m->out.o, &m->out.lse};
    const cl_uint count = sizeof buffers / sizeof *buffers;
    cl_int code = CL_SUCCESS;
    for (cl_uint i = 0; i < count && code == CL_SUCCESS; i++)
        code = cla_set_buffer(context, kernel, i, buffers[i]);
    return code == CL_SUCCESS ? clSetKernelArg(kernel, count, sizeof args, &args) : code;
}

clattn_status clattn_enqueue_merge(clattn_context *context, cl_command_queue queue, const clattn_merge *given,
                                   cl_uint wait_count, const cl_event *wait_list, cl_event *event, clattn_error *error)
{
    clattn_merge full;
    const clattn_merge *const merge = &full;
    cl_kernel kernel = NULL;
    cla_clear(error);
    if (!context)
        return cla_fail(error, CLATTN_INVALID_ARGUMENT, "context", "context is NULL");
    clattn_merge_init(&full);
    TRY(cla_struct_take("merge", given, FIRST_MERGE_SIZE, &full, sizeof full, error));
    TRY(cla_check_queue(context, queue, wait_count, wait_list, error));
    TRY(check(&full, context, error));
    const size_t rows = (size_t)merge->batch * (size_t)merge->heads * (size_t)merge->seq_q;
    if (rows == 0)
        return cla_enqueue_marker(context, queue, wait_count, wait_list, event, error);
    TRY(get_kernel(context, merge, &kernel, error));
    const char *call = "clSetKernelArg";
    cl_int code = set_arguments(context, kernel, merge);
    if (code == CL_SUCCESS) {
        call = "clEnqueueNDRangeKernel";
        code = clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &rows, NULL, wait_count, wait_count ? wait_list : NULL, event);
    }
    clReleaseKernel(kernel);
    return code == CL_SUCCESS ? CLATTN_SUCCESS : cla_fail_enqueue(context, queue, code, call, error);
}
