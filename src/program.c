/* SPDX-License-Identifier: Apache-2.0 */
#include "binary.h"
#include "context.h"
#include "ptx.h"
#include "quirks.h"

#include <stdlib.h>
#include <string.h>

enum program_state { PROGRAM_BUILDING, PROGRAM_READY, PROGRAM_FAILED };

struct program {
    struct program *next;
    enum program_state state;
    uintptr_t builder; /* the thread that builds it */
    char *key;         /* options, a line break, the kernel source */
    cl_program cl;
    clattn_error failure;
    bool unsaved; /* built from source, and not in the cache yet */
    bool kept;    /* a plan uses it: to be saved */
    struct cache_key cache_key;
};

void cla_program_options(const struct facts *facts, const char *more, struct text *out)
{
    cla_text_append(out, "", 0);
    if (cla_has_quirk(facts, QUIRK_WRONG_VECTORS))
        cla_text_add(out, "-cl-opt-disable");
    /* This halves the threads, but none of their sums are spilled to memory. */
    if (cla_facts_has_large_registers(facts))
        cla_text_add(out, "-cl-intel-256-GRF-per-thread");
    if (more)
        cla_text_add(out, "%s%s", out->length ? " " : "", more);
}

static void read_log(clattn_context *context, cl_program program, struct text *log)
{
    size_t size = 0;
    if (clGetProgramBuildInfo(program, context->device, CL_PROGRAM_BUILD_LOG, 0, NULL, &size) != CL_SUCCESS || size < 2)
        return;
    char *bytes = calloc(size + 1, 1);
    if (bytes && clGetProgramBuildInfo(program, context->device, CL_PROGRAM_BUILD_LOG, size, bytes, NULL) == CL_SUCCESS)
        cla_text_append(log, bytes, strlen(bytes));
    free(bytes);
}

static clattn_status fail_build(clattn_context *context, cl_int code, const char *kernel, const char *options, const char *log,
                                clattn_error *error)
{
    const char *more = cla_variable(context->ignores_environment, VARIABLE_BUILD_OPTIONS);
    struct text text = {0};
    cla_text_add(&text, "clBuildProgram: %s (%d)\ndevice: %s\ndriver: %s, %s\nkernel: %s\noptions: %s%s\nlog:\n%s",
                 cla_cl_name(code), (int)code, context->facts.device_name, context->facts.driver_version,
                 context->facts.platform_version, kernel, *options ? options : "(none)",
                 more ? " (CLATTN_BUILD_OPTIONS in the environment included)" : "", *log ? log : "(empty)");
    cla_fail(error, CLATTN_BUILD_FAILED, "", "%s", text.data ? text.data : "clBuildProgram failed");
    cla_set_cl_code(error, code);
    cla_log(&context->logger, CLATTN_LOG_ERROR, text.data ? text.data : "clBuildProgram failed");
    cla_text_free(&text);
    return CLATTN_BUILD_FAILED;
}

/* Only a compiler error condemns the kernel source; drivers report temporary problems by other codes. */
static bool is_verdict(const clattn_error *failure)
{
    return failure->cl_code == CL_BUILD_PROGRAM_FAILURE || failure->cl_code == CL_INVALID_BUILD_OPTIONS ||
           failure->cl_code == CL_COMPILER_NOT_AVAILABLE;
}

/* Builds *program, made from source or from a binary, and releases it if that fails. */
static clattn_status build_program(clattn_context *context, const struct source *source, const char *options,
                                   cl_program *program, clattn_error *error)
{
    const cl_int code = clBuildProgram(*program, 1, &context->device, options, NULL, NULL);
    struct text raw = {0}, log = {0};
    read_log(context, *program, &raw);
    cla_source_translate(source, raw.data ? raw.data : "", &log);
    clattn_status status = CLATTN_SUCCESS;
    if (code == CL_OUT_OF_HOST_MEMORY) {
        status = cla_fail_cl(error, code, "clBuildProgram");
    } else if (code != CL_SUCCESS) {
        status = fail_build(context, code, source->kernel, options, log.data ? log.data : "", error);
    } else if (log.data) {
        cla_log(&context->logger, CLATTN_LOG_INFO, log.data);
    }
    cla_text_free(&raw);
    cla_text_free(&log);
    if (status != CLATTN_SUCCESS) {
        clReleaseProgram(*program);
        *program = NULL;
    }
    return status;
}

/* Counts as an error of the kernel source, like a compiler error. */
static clattn_status fail_stage(const char *target, const char *why, clattn_error *error)
{
    cla_fail(error, CLATTN_BUILD_FAILED, "", "second stage for %s: %s", target, why);
    cla_set_cl_code(error, CL_BUILD_PROGRAM_FAILURE);
    return CLATTN_BUILD_FAILED;
}

/* The second stage (src/ptx.h): replaces *program with one built from its PTX for `target`. */
static clattn_status retarget(clattn_context *context, const struct source *source, const char *options, const char *target,
                              cl_program *program, clattn_error *error)
{
    struct text binary = {0}, ptx = {0};
    char why[160] = "the driver gives no binary";
    const bool ok = cla_binary_get(*program, context->device, &binary) &&
                    cla_ptx_retarget(binary.data, binary.length, target, &ptx, why, sizeof why);
    clReleaseProgram(*program);
    *program = NULL;
    cla_text_free(&binary);
    clattn_status status = CLATTN_SUCCESS;
    if (!ok) {
        status = fail_stage(target, why, error);
    } else {
        const unsigned char *bytes = (const unsigned char *)ptx.data;
        const size_t size = ptx.length + 1;
        cl_int code = CL_SUCCESS;
        *program = clCreateProgramWithBinary(context->cl, 1, &context->device, &size, &bytes, NULL, &code);
        if (code == CL_SUCCESS)
            status = build_program(context, source, options, program, error);
        else
            status = fail_stage(target, cla_cl_name(code), error);
    }
    cla_text_free(&ptx);
    return status;
}

static clattn_status build(clattn_context *context, const struct source *source, const char *options, const char *target,
                           cl_program *program, clattn_error *error)
{
    const char *text = source->text.data;
    const size_t length = source->text.length;
    cl_int code = CL_SUCCESS;
    *program = clCreateProgramWithSource(context->cl, 1, &text, &length, &code);
    if (code != CL_SUCCESS) {
        *program = NULL;
        return cla_fail_cl(error, code, "clCreateProgramWithSource");
    }
    TRY(build_program(context, source, options, program, error));
    return target ? retarget(context, source, options, target, program, error) : CLATTN_SUCCESS;
}

/* With the lock held. */
static struct program *find(clattn_context *context, const char *key)
{
    struct program *entry = context->programs;
    while (entry && strcmp(entry->key, key) != 0)
        entry = entry->next;
    return entry;
}

static struct program *new_entry(clattn_context *context, const char *key)
{
    struct program *entry = calloc(1, sizeof *entry);
    const size_t size = strlen(key) + 1;
    if (entry)
        entry->key = malloc(size);
    if (!entry || !entry->key) {
        free(entry);
        return NULL;
    }
    memcpy(entry->key, key, size);
    clattn_error_init(&entry->failure);
    entry->state = PROGRAM_BUILDING;
    entry->builder = cla_thread_self();
    entry->next = context->programs;
    context->programs = entry;
    return entry;
}

/* If the failure is not an error of the kernel source, the entry is removed, so that the next attempt builds again. With the
 * lock held; other threads keep the entry only while they hold the lock, except those that wait for it, and these look it up
 * again. */
static void settle(clattn_context *context, struct program *entry, clattn_status status)
{
    if (status == CLATTN_SUCCESS || (status == CLATTN_BUILD_FAILED && is_verdict(&entry->failure))) {
        entry->state = status == CLATTN_SUCCESS ? PROGRAM_READY : PROGRAM_FAILED;
    } else {
        struct program **link = &context->programs;
        while (*link != entry)
            link = &(*link)->next;
        *link = entry->next;
        free(entry->key);
        free(entry);
    }
    cla_signal_all(&context->built);
}

static cl_program load(const clattn_context *context, const struct cache_key *key, const char *options)
{
    struct text binary = {0};
    cl_program program = NULL;
    if (cla_cache_load(&context->cache, key, &binary))
        program = cla_binary_load(context->cl, context->device, options, &binary);
    cla_text_free(&binary);
    return program;
}

static clattn_status build_entry(clattn_context *context, struct program *entry, const struct source *source,
                                 const char *options, const char *target, cl_program *program, clattn_error *error)
{
    clattn_error failure;
    clattn_error_init(&failure);
    cla_lock_give(&context->lock);
    const bool cached =
        cla_cache_key_of(&context->cache, target ? target : "program", options, &source->text, &entry->cache_key);
    *program = cached ? load(context, &entry->cache_key, options) : NULL;
    const bool loaded = *program != NULL;
    const clattn_status status = loaded ? CLATTN_SUCCESS : build(context, source, options, target, program, &failure);
    cla_lock_take(&context->lock);
    context->builds += status == CLATTN_SUCCESS && !loaded;
    entry->unsaved = cached && !loaded;
    entry->cl = *program;
    entry->failure = failure;
    settle(context, entry, status);
    if (status != CLATTN_SUCCESS)
        cla_hand_on(&failure, error);
    return status;
}

static clattn_status get_locked(clattn_context *context, const char *key, const struct source *source, const char *options,
                                const char *target, cl_program *program, clattn_error *error)
{
    struct program *entry;
    while ((entry = find(context, key)) && entry->state == PROGRAM_BUILDING) {
        if (entry->builder == cla_thread_self()) /* called from a log or cache function while this thread builds it */
            return cla_fail(error, CLATTN_BUILD_FAILED, "",
                            "the same kernel is being built by the call that called this function: plan it after that call");
        cla_signal_wait(&context->built, &context->lock);
    }
    if (!entry) {
        entry = new_entry(context, key);
        if (!entry)
            return cla_fail(error, CLATTN_OUT_OF_HOST_MEMORY, "", "out of host memory while building a kernel");
        return build_entry(context, entry, source, options, target, program, error);
    }
    *program = entry->cl;
    if (entry->state == PROGRAM_FAILED) {
        cla_hand_on(&entry->failure, error);
        return CLATTN_BUILD_FAILED;
    }
    return CLATTN_SUCCESS;
}

clattn_status cla_program_get(clattn_context *context, const struct source *source, const char *options, const char *target,
                              cl_program *program, clattn_error *error)
{
    struct text key = {0};
    cla_text_add(&key, "%s\n", options);
    cla_text_append(&key, source->text.data, source->text.length);
    if (key.failed) {
        cla_text_free(&key);
        return cla_fail(error, CLATTN_OUT_OF_HOST_MEMORY, "", "out of host memory while building a kernel");
    }
    cla_lock_take(&context->lock);
    const clattn_status status = get_locked(context, key.data, source, options, target, program, error);
    cla_lock_give(&context->lock);
    cla_text_free(&key);
    return status;
}

static void store(const clattn_context *context, cl_program program, const struct cache_key *key)
{
    struct text binary = {0};
    if (cla_binary_get(program, context->device, &binary))
        cla_cache_store(&context->cache, key, binary.data, binary.length);
    cla_text_free(&binary);
}

void cla_program_save(clattn_context *context, cl_program program)
{
    struct cache_key key;
    cla_lock_take(&context->lock);
    struct program *entry = context->programs;
    while (entry && entry->cl != program)
        entry = entry->next;
    bool now = entry && entry->unsaved;
    if (now) {
        entry->kept = true;
        /* For a binary PoCL compiles all kernels again, which takes as long as the first time, so this waits for
         * clattn_context_save. A binary requested after the first launch also contains the code of that launch. */
        now = !cla_has_quirk(&context->facts, QUIRK_COMPILES_AT_LAUNCH);
        entry->unsaved = !now;
        key = entry->cache_key;
    }
    cla_lock_give(&context->lock);
    if (now)
        store(context, program, &key);
}

/* The next program that waits to be stored, and its key; with the lock held. */
static cl_program take_unsaved(clattn_context *context, struct cache_key *key)
{
    for (struct program *entry = context->programs; entry; entry = entry->next) {
        if (entry->unsaved && entry->kept) {
            entry->unsaved = false;
            *key = entry->cache_key;
            return entry->cl;
        }
    }
    return NULL;
}

size_t clattn_context_save(clattn_context *context)
{
    struct cache_key key;
    size_t count = 0;
    while (context) {
        cla_lock_take(&context->lock);
        cl_program program = take_unsaved(context, &key);
        cla_lock_give(&context->lock);
        if (!program)
            break;
        store(context, program, &key);
        count++;
    }
    return count;
}

void cla_programs_free(clattn_context *context)
{
    while (context->programs) {
        struct program *entry = context->programs;
        context->programs = entry->next;
        if (entry->cl)
            clReleaseProgram(entry->cl);
        free(entry->key);
        free(entry);
    }
}
