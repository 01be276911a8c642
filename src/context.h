/* SPDX-License-Identifier: Apache-2.0
 * State that all plans of a device share: its OpenCL context, its facts and the programs built so far. */
#ifndef CLATTN_CONTEXT_H
#define CLATTN_CONTEXT_H

#include "cache.h"
#include "engine.h"
#include "environment.h"
#include "facts.h"
#include "log.h"
#include "os/os.h"
#include "source.h"
#include "verdict.h"

struct program;

/* clSetKernelArgSVMPointer of OpenCL 2.0, which is looked up at run time. */
typedef cl_int(CL_API_CALL *cla_set_svm_fn)(cl_kernel kernel, cl_uint index, const void *pointer);

struct clattn_context {
    cl_context cl;
    cl_device_id device;
    struct facts facts;
    struct logger logger; /* never called with the lock held */
    struct cache cache;
    bool ignores_environment;
    cla_set_svm_fn set_svm;  /* NULL: the device has no shared virtual memory */
    struct cla_lock lock;    /* guards the members below */
    struct cla_signal built; /* a program is ready or has failed */
    struct program *programs;
    struct verdict *verdicts;      /* of the self-check, one a program */
    bool lost;                     /* the device failed: cla_fail_enqueue */
    double rates[CLA_MAX_ENGINES]; /* multiply-adds in a millisecond, by engine; 0: not measured */
    size_t builds;                 /* number of programs built from source */
    uint64_t calls;                /* the last number that cla_call_number returned */
};

/* The program of this kernel source, built or loaded from the cache at its first use and shared afterwards; threads that need
 * one being built wait for it. It lives as long as the context. Source that failed to build fails again at once, with the same
 * log. `target`: NULL, or the architecture of a second stage (src/ptx.h). Errors: BUILD_FAILED with device, driver, options
 * and log; OPENCL; OUT_OF_HOST_MEMORY. */
clattn_status cla_program_get(clattn_context *context, const struct source *source, const char *options, const char *target,
                              cl_program *program, clattn_error *error);

/* Stores a program that was built from source in the cache, once. Called after its kernels are created: some drivers compile
 * only then. If a driver takes long to return a binary, clattn_context_save stores it instead. */
void cla_program_save(clattn_context *context, cl_program program);

void cla_programs_free(clattn_context *context);

/* A number that no other call of this or another context has: it starts from the clock and the context's address, and counts
 * up. */
int64_t cla_call_number(clattn_context *context);

/* The build options that this device needs, then `more` (CLATTN_BUILD_OPTIONS), which may be NULL. */
void cla_program_options(const struct facts *facts, const char *more, struct text *out);

#endif
