/* SPDX-License-Identifier: Apache-2.0 */
#define CLATTN_EXPERIMENTAL

#include "session.h"

#include "half.h"
#include "system.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void log_to_stderr(void *user, clattn_log_level level, const char *text)
{
    (void)user;
    static char last[4096]; /* contexts and plans of a command often log the same message: print it once */
    char line[sizeof last];
    if (level > CLATTN_LOG_WARNING || strcmp(last, text) == 0)
        return;
    snprintf(last, sizeof last, "%s", text);
    snprintf(line, sizeof line, "%s", text);
    fprintf(stderr, "clattn: %s\n", cli_clean(line));
}

bool session_problem_is_valid(const clattn_problem *problem, clattn_error *error)
{
    return clattn_explain("", problem, NULL, NULL, 0, NULL, error) != CLATTN_INVALID_ARGUMENT;
}

int session_refuse_engines(const char *command, const struct cli_list *engines, const char *also)
{
    const char *names[CLI_LIST_MAX + 1];
    char all[512] = "";
    size_t count = 0;
    for (; count < CLI_LIST_MAX && clattn_engine_name(count) != NULL; count++)
        names[count] = clattn_engine_name(count);
    if (also != NULL)
        names[count++] = also;
    for (size_t i = 0, at = 0; i < count && at < sizeof all; i++)
        at += (size_t)snprintf(all + at, sizeof all - at, "%s%s", i > 0 ? ", " : "", names[i]);
    for (size_t i = 0; i < engines->count; i++) {
        const char *const given = engines->items[i], *const near = cli_nearest(given, names, count);
        bool known = false;
        for (size_t j = 0; j < count; j++)
            known = known || strcmp(names[j], given) == 0;
        if (!known && near)
            return cli_fail(command, CLI_USAGE, "--engine", "there is no engine \"%s\"; did you mean %s?", given, near);
        if (!known)
            return cli_fail(command, CLI_USAGE, "--engine", "there is no engine \"%s\"; there are %s", given, all);
    }
    return CLI_OK;
}

static int open_session(struct session *session, const char *command, const char *device, bool cache_off)
{
    clattn_context_options options;
    clattn_error error;
    cl_int code;
    memset(session, 0, sizeof *session);
    session->command = command;
    clattn_error_init(&error);
    clattn_context_options_init(&options);
    options.device = device;
    options.log = log_to_stderr;
    options.cache_off = cache_off;
    if (clattn_context_create(NULL, NULL, &options, &session->context, &error) != CLATTN_SUCCESS)
        return cli_fail_library(command, &error);
    session->queue =
        clCreateCommandQueue(clattn_context_cl(session->context), clattn_context_device(session->context), 0, &code);
    if (session->queue != NULL)
        return CLI_OK;
    session_close(session);
    return cli_fail_cl(command, "clCreateCommandQueue", code);
}

int session_open(struct session *session, const char *command, const char *device)
{
    return open_session(session, command, device, false);
}

int session_open_uncached(struct session *session, const char *command, const char *device)
{
    return open_session(session, command, device, true);
}

void session_close(struct session *session)
{
    if (session->queue != NULL)
        clReleaseCommandQueue(session->queue);
    clattn_context_destroy(session->context);
    session->queue = NULL;
    session->context = NULL;
}

static void device_string(cl_device_id device, cl_device_info what, char *text, size_t size)
{
    if (clGetDeviceInfo(device, what, size, text, NULL) != CL_SUCCESS)
        snprintf(text, size, "n/a");
}

char *session_device_text(const struct session *session)
{
    char name[256], driver[256], platform_name[256] = "n/a";
    const cl_device_id device = clattn_context_device(session->context);
    cl_platform_id platform;
    const size_t size = 1024;
    char *text = malloc(size);
    if (text == NULL)
        return NULL;
    device_string(device, CL_DEVICE_NAME, name, sizeof name);
    device_string(device, CL_DRIVER_VERSION, driver, sizeof driver);
    if (clGetDeviceInfo(device, CL_DEVICE_PLATFORM, sizeof platform, &platform, NULL) == CL_SUCCESS)
        (void)clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof platform_name, platform_name, NULL);
    snprintf(text, size, "%s (%s, driver %s)", name, platform_name, driver);
    return cli_clean(text);
}

/* -------------------------------------------------------------------------------------------------------------- runner */

static void sizes_of(const clattn_problem *p, enum runner_tensor tensor, int64_t sizes[4])
{
    const bool is_kv = tensor == RUN_K || tensor == RUN_V;
    const bool is_packed = p->packed.starts != CLATTN_NO_INTEGERS && tensor != RUN_SCORES;
    sizes[0] = is_packed ? 1 : p->batch;
    sizes[1] = is_kv ? p->heads_kv : p->heads_q;
    sizes[2] = is_packed ? (is_kv ? p->packed.total_kv : p->packed.total_q) : is_kv ? p->seq_kv : p->seq_q;
    switch (tensor) {
    case RUN_Q:
    case RUN_K:
        sizes[3] = p->head_dim_qk;
        break;
    case RUN_V:
    case RUN_O:
        sizes[3] = p->head_dim_v;
        break;
    case RUN_LSE:
        sizes[3] = p->lse.present ? 1 : 0;
        break;
    default:
        sizes[3] = p->scores.kind != CLATTN_SCORES_NONE ? p->seq_kv : 0;
        break;
    }
}

static size_t item_bytes(const clattn_problem *p, enum runner_tensor tensor)
{
    const clattn_tensor *const typed[] = {[RUN_Q] = &p->q, [RUN_K] = &p->k, [RUN_V] = &p->v, [RUN_O] = &p->o};
    return tensor <= RUN_O ? storage_size(typed[tensor]->type) : sizeof(float);
}

/* Bytes of a tensor. False: more than size_t counts. */
static bool bytes_of(const clattn_problem *p, enum runner_tensor tensor, size_t *bytes)
{
    int64_t sizes[4];
    bool fits = true;
    sizes_of(p, tensor, sizes);
    *bytes = item_bytes(p, tensor);
    for (int i = 0; i < 4; i++)
        if (sizes[i] == 0)
            *bytes = 0;
    for (int i = 0; i < 4 && *bytes != 0 && fits; i++) {
        fits = (uint64_t)sizes[i] <= SIZE_MAX / *bytes;
        *bytes *= (size_t)sizes[i];
    }
    return fits;
}

/* Allocation of `bytes`; 0 gives no buffer, which the library takes for a tensor without an element. */
static int allocate(struct runner *runner, const char *what, size_t bytes, cl_mem *buffer, clattn_buffer *argument)
{
    cl_int code = CL_SUCCESS;
    if (bytes == 0)
        return CLI_OK;
    *buffer = clCreateBuffer(clattn_context_cl(runner->session->context), CL_MEM_READ_WRITE, bytes, NULL, &code);
    if (*buffer == NULL)
        return cli_fail(runner->session->command, CLI_FAILED, what,
                        "a device buffer of %zu bytes could not be made (OpenCL code %d); try a smaller problem", bytes,
                        (int)code);
    *argument = clattn_mem(*buffer, 0);
    return CLI_OK;
}

static int make_buffers(struct runner *runner)
{
    static const char *const names[] = {"q", "k", "v", "o", "lse", "scores"};
    clattn_buffer *const arguments[] = {&runner->call.q, &runner->call.k,   &runner->call.v,
                                        &runner->call.o, &runner->call.lse, &runner->call.scores};
    for (int t = 0; t < RUN_TENSORS; t++) {
        if (!bytes_of(&runner->problem, (enum runner_tensor)t, &runner->bytes[t]))
            return cli_fail(runner->session->command, CLI_USAGE, names[t],
                            "is larger than memory can be; try a smaller problem");
        const int code = allocate(runner, names[t], runner->bytes[t], &runner->buffers[t], arguments[t]);
        if (code != CLI_OK)
            return code;
    }
    runner->workspace_bytes = clattn_workspace_size(runner->plan);
    return allocate(runner, "workspace", runner->workspace_bytes, &runner->workspace, &runner->call.workspace);
}

int runner_open(struct runner *runner, struct session *session, const clattn_problem *problem, const char *engine)
{
    clattn_plan_options options;
    clattn_error error;
    memset(runner, 0, sizeof *runner);
    runner->session = session;
    runner->problem = *problem;
    clattn_error_init(&error);
    clattn_plan_options_init(&options);
    options.at_bounds = true;
    options.engine = engine;
    if (clattn_plan_create(session->context, problem, &options, &runner->plan, &error) != CLATTN_SUCCESS)
        return cli_fail_library(session->command, &error);
    clattn_call_init(&runner->call, runner->plan);
    const int code = make_buffers(runner);
    if (code != CLI_OK)
        runner_close(runner);
    return code;
}

void runner_close(struct runner *runner)
{
    for (int t = 0; t < RUN_TENSORS; t++)
        if (runner->buffers[t] != NULL)
            clReleaseMemObject(runner->buffers[t]);
    for (size_t i = 0; i < runner->option_count; i++)
        clReleaseMemObject(runner->options[i]);
    if (runner->workspace != NULL)
        clReleaseMemObject(runner->workspace);
    clattn_plan_destroy(runner->plan);
    memset(runner, 0, sizeof *runner);
}

int runner_option(struct runner *runner, const char *what, const void *data, size_t bytes, clattn_buffer *argument)
{
    cl_mem *buffer = &runner->options[runner->option_count];
    int code = allocate(runner, what, bytes, buffer, argument);
    if (code != CLI_OK || *buffer == NULL)
        return code;
    runner->option_count++;
    const cl_int cl = clEnqueueWriteBuffer(runner->session->queue, *buffer, CL_TRUE, 0, bytes, data, 0, NULL, NULL);
    return cl == CL_SUCCESS ? CLI_OK : cli_fail_cl(runner->session->command, "clEnqueueWriteBuffer", cl);
}

int runner_write(struct runner *runner, enum runner_tensor tensor, const void *data)
{
    if (runner->bytes[tensor] == 0)
        return CLI_OK;
    const cl_int code = clEnqueueWriteBuffer(runner->session->queue, runner->buffers[tensor], CL_TRUE, 0, runner->bytes[tensor],
                                             data, 0, NULL, NULL);
    return code == CL_SUCCESS ? CLI_OK : cli_fail_cl(runner->session->command, "clEnqueueWriteBuffer", code);
}

int runner_read(struct runner *runner, enum runner_tensor tensor, void *data)
{
    if (runner->bytes[tensor] == 0)
        return CLI_OK;
    const cl_int code = clEnqueueReadBuffer(runner->session->queue, runner->buffers[tensor], CL_TRUE, 0, runner->bytes[tensor],
                                            data, 0, NULL, NULL);
    return code == CL_SUCCESS ? CLI_OK : cli_fail_cl(runner->session->command, "clEnqueueReadBuffer", code);
}

int runner_run(struct runner *runner, double *seconds)
{
    clattn_error error;
    clattn_error_init(&error);
    const double start = clock_seconds();
    if (clattn_enqueue(runner->plan, runner->session->queue, &runner->call, 0, NULL, NULL, &error) != CLATTN_SUCCESS)
        return cli_fail_library(runner->session->command, &error);
    const cl_int code = clFinish(runner->session->queue);
    if (code != CL_SUCCESS)
        return cli_fail_cl(runner->session->command, "clFinish", code);
    if (seconds != NULL)
        *seconds = clock_seconds() - start;
    return CLI_OK;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int runner_time(struct runner *runner, double budget, double *seconds)
{
    double times[50], spent = 0;
    int count = 0;
    int code = runner_run(runner, NULL); /* PoCL compiles for the work-group size at the first launch */
    while (code == CLI_OK && count < 50 && (count == 0 || spent < budget)) {
        code = runner_run(runner, &times[count]);
        spent += times[count++];
    }
    qsort(times, (size_t)count, sizeof times[0], by_value);
    *seconds = count > 0 ? times[count / 2] : 0;
    return code;
}
