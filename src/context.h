/* SPDX-License-Identifier: Apache-2.0
 * What all plans of a device share: its OpenCL context, its facts and the programs built so far. */
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

/* clSetKernelArgSVMPointer of OpenCL 2.0, which is not linked. */
typedef cl_int(CL_API_CALL *cla_set_svm_fn)(cl_kernel kernel, cl_uint index, const void *pointer);

struct clattn_context {
    cl_context cl;
    cl_device_id device;
    struct facts facts;
    struct logger logger; /* never called with the lock held */
    struct cache cache;
    bool ignores_environment;
    cla_set_svm_fn set_svm;  /* NULL: no shared virtual memory here */
    struct cla_lock lock;    /* guards what follows */
    struct cla_signal built; /* a program is ready or has failed */
    struct program *programs;
    struct verdict *verdicts;      /* of the self-check, a program each */
    bool lost;                     /* the device failed: cla_fail_enqueue */
    double rates[CLA_MAX_ENGINES]; /* multiply-adds in a millisecond, an engine; 0: not measured */
    size_t builds;                 /* from source */
    uint64_t calls;                /* the number of the last call that needed one: cla_call_number */
};

/* The program for this text, built or taken from the cache at its first use and shared from then on; threads that ask for one
 * that is being built wait for it. It lives as long as the context. A text that failed once fails again at once, with the same
 * log. `target` NULL, or the architecture of a second stage (src/ptx.h). Errors: BUILD_FAILED with device, driver, options and
 * log; OPENCL; OUT_OF_HOST_MEMORY. */
clattn_status cla_program_get(clattn_context *context, const struct source *source, const char *options, const char *target,
                              cl_program *program, clattn_error *error);

/* Puts a program that was built from source into the cache, once. Called after the creation of its kernels: some drivers
 * compile only then. Where it takes a driver long to give a binary, that is left to clattn_context_save. */
void cla_program_save(clattn_context *context, cl_program program);

void cla_programs_free(clattn_context *context);

/* A number that no other call has, of this context or another: it begins where clock and address of the context say, and
 * counts. */
int64_t cla_call_number(clattn_context *context);

/* Options that this device needs for its own reasons, then `more` (CLATTN_BUILD_OPTIONS), which may be NULL. */
void cla_program_options(const struct facts *facts, const char *more, struct text *out);

#endif
