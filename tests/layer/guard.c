/* SPDX-License-Identifier: Apache-2.0
 * A layer between the OpenCL loader and a driver whose kernels run in this process (PoCL): every buffer becomes memory of the
 * host that ends where a page ends, with a protected page before and after it. A kernel that reads or writes a byte past the
 * end of a buffer ends the process at once, and the layer says how far past the end it was. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */

#include <CL/cl_layer.h>

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

/* How many buffers stood between pages so far; a test reads it. */
extern EXPORT size_t guard_buffers;
size_t guard_buffers;

struct region {
    char *pages, *first; /* `first`: of the buffer */
    size_t whole, size;
    struct region *next;
};

static struct region *regions;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const cl_icd_dispatch *below;
static cl_icd_dispatch table;

/* The process ends in any case, so calls that are not safe in a signal handler do no harm here. */
static void on_fault(int number, siginfo_t *about, void *unused)
{
    const uintptr_t at = (uintptr_t)about->si_addr;
    (void)unused;
    for (const struct region *r = regions; r != NULL; r = r->next)
        if (at >= (uintptr_t)r->pages && at < (uintptr_t)r->pages + r->whole)
            fprintf(stderr, "guard pages: byte %lld of a buffer of %zu was touched\n",
                    (long long)((int64_t)at - (int64_t)(uintptr_t)r->first), r->size);
    signal(number, SIG_DFL);
    raise(number);
}

static void CL_CALLBACK release(cl_mem buffer, void *user)
{
    struct region *const r = user;
    (void)buffer;
    pthread_mutex_lock(&lock);
    for (struct region **at = &regions; *at != NULL; at = &(*at)->next) {
        if (*at == r) {
            *at = r->next;
            break;
        }
    }
    pthread_mutex_unlock(&lock);
    munmap(r->pages, r->whole);
    free(r);
}

static struct region *make_region(size_t size)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), body = (size + page - 1) / page * page;
    struct region *const r = calloc(1, sizeof *r);
    if (r == NULL)
        return NULL;
    r->size = size;
    r->whole = body + 2 * page;
    r->pages = mmap(NULL, r->whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (r->pages == MAP_FAILED || mprotect(r->pages + page, body, PROT_READ | PROT_WRITE) != 0) {
        if (r->pages != MAP_FAILED)
            munmap(r->pages, r->whole);
        free(r);
        return NULL;
    }
    r->first = r->pages + page + body - size;
    memset(r->pages + page, 0x7f, body); /* NaN, as is what lies before the buffer in its first page */
    return r;
}

static cl_mem CL_API_CALL guard_clCreateBuffer(cl_context context, cl_mem_flags flags, size_t size, void *host, cl_int *code)
{
    struct region *const r = size > 0 && !(flags & CL_MEM_USE_HOST_PTR) ? make_region(size) : NULL;
    if (r == NULL)
        return below->clCreateBuffer(context, flags, size, host, code);
    if (flags & CL_MEM_COPY_HOST_PTR)
        memcpy(r->first, host, size);
    flags &= ~(cl_mem_flags)(CL_MEM_COPY_HOST_PTR | CL_MEM_ALLOC_HOST_PTR);
    const cl_mem buffer = below->clCreateBuffer(context, flags | CL_MEM_USE_HOST_PTR, size, r->first, code);
    pthread_mutex_lock(&lock);
    r->next = regions;
    regions = r;
    guard_buffers++;
    pthread_mutex_unlock(&lock);
    if (buffer == NULL || below->clSetMemObjectDestructorCallback(buffer, release, r) != CL_SUCCESS)
        release(buffer, r);
    return buffer;
}

EXPORT CL_API_ENTRY cl_int CL_API_CALL clGetLayerInfo(cl_layer_info what, size_t size, void *value, size_t *needed)
{
    static const char name[] = "clattn guard pages";
    const cl_layer_api_version version = CL_LAYER_API_VERSION_100;
    const void *answer = what == CL_LAYER_API_VERSION ? (const void *)&version : name;
    const size_t length = what == CL_LAYER_API_VERSION ? sizeof version : sizeof name;
    if ((what != CL_LAYER_API_VERSION && what != CL_LAYER_NAME) || (value && size < length))
        return CL_INVALID_VALUE;
    if (value)
        memcpy(value, answer, length);
    if (needed)
        *needed = length;
    return CL_SUCCESS;
}

EXPORT CL_API_ENTRY cl_int CL_API_CALL clInitLayer(cl_uint count, const cl_icd_dispatch *target, cl_uint *count_ret,
                                                   const cl_icd_dispatch **table_ret)
{
    const cl_uint own = sizeof table / sizeof(void *);
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    if (!target || !count_ret || !table_ret)
        return CL_INVALID_VALUE;
    below = target;
    memcpy(&table, target, (count < own ? count : own) * sizeof(void *));
    table.clCreateBuffer = guard_clCreateBuffer;
    sigaction(SIGSEGV, &action, NULL);
    *count_ret = count < own ? count : own;
    *table_ret = &table;
    return CL_SUCCESS;
}
