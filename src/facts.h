/* SPDX-License-Identifier: Apache-2.0
 * What a device is: its limits and properties, and no choices. Printed, parsed and overridden as text, so that any device can
 * be emulated on any other. docs/device-facts.md lists the names. */
#ifndef CLATTN_FACTS_H
#define CLATTN_FACTS_H

#include "status.h"
#include "text.h"

enum device_kind { DEVICE_CPU = 1, DEVICE_GPU = 2, DEVICE_ACCELERATOR = 3, DEVICE_OTHER = 4 };

/* S(name) a string, N(name) a number, B(name) a number of bytes (K, M, G understood), in the order of the printed text. */
#define CLA_FACTS(S, N, B)                                                                                                     \
    S(platform_name)                                                                                                           \
    S(platform_version)                                                                                                        \
    S(device_name)                                                                                                             \
    S(device_vendor)                                                                                                           \
    S(device_version)                                                                                                          \
    S(driver_version)                                                                                                          \
    S(c_version)   /* OpenCL C, such as "OpenCL C 1.2" */                                                                      \
    N(device_kind) /* printed as cpu, gpu, accelerator, other */                                                               \
    N(vendor_id)                                                                                                               \
    N(address_bits)                                                                                                            \
    N(compute_units)                                                                                                           \
    N(clock_mhz)                                                                                                               \
    N(max_work_group)                                                                                                          \
    N(max_work_item_0)     /* limit of the first dimension; launches use no other */                                           \
    N(local_mem_is_global) /* 1: CL_LOCAL_MEM_TYPE is GLOBAL, cached plain memory (CPUs) */                                    \
    B(local_mem)                                                                                                               \
    B(local_mem_static) /* what a kernel may declare; more than local_mem on NVIDIA */                                         \
    B(global_mem)                                                                                                              \
    B(max_alloc)                                                                                                               \
    B(cache)              /* CL_DEVICE_GLOBAL_MEM_CACHE_SIZE */                                                                \
    B(max_parameters)     /* CL_DEVICE_MAX_PARAMETER_SIZE */                                                                   \
    N(base_align_bits)    /* CL_DEVICE_MEM_BASE_ADDR_ALIGN, in bits */                                                         \
    N(vector_width)       /* CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT */                                                            \
    N(preferred_multiple) /* warp or wave; 0 unknown before a kernel exists */                                                 \
    N(fma)                /* CL_FP_FMA of single precision */                                                                  \
    N(svm) /* CL_DEVICE_SVM_CAPABILITIES: 1 coarse-grained buffers, 2 fine-grained ones, 4 any host pointer, 8 atomics */      \
    N(nv_compute) /* 90 for sm_90; 0 elsewhere */                                                                              \
    N(host_cpu)   /* 1: a CPU device that is this host, so that CPUID describes it */                                          \
    N(x86_bf16)   /* 1: and the host has AVX512-BF16 */                                                                        \
    N(x86_amx)    /* 1: and it has AMX bf16 tiles, which the system saves for a thread */                                      \
    S(extensions)

#define CLA_FACT_STRING_SIZE 256
#define CLA_FACT_EXTENSIONS_SIZE 4096

struct facts {
#define CLA_FACT_STRING(name)                                                                                                  \
    char name[sizeof(#name) == sizeof("extensions") ? CLA_FACT_EXTENSIONS_SIZE : CLA_FACT_STRING_SIZE];
#define CLA_FACT_NUMBER(name) uint64_t name;
    CLA_FACTS(CLA_FACT_STRING, CLA_FACT_NUMBER, CLA_FACT_NUMBER)
#undef CLA_FACT_STRING
#undef CLA_FACT_NUMBER
};

/* One `name=value` a line, values of 0 or "" included. */
void cla_facts_print(const struct facts *facts, struct text *out);

/* Reads the lines that cla_facts_print wrote: '#' starts a comment, unknown names are an error, missing ones stay 0. */
clattn_status cla_facts_parse(const char *text, struct facts *facts, clattn_error *error);

/* "local_mem=16K,max_work_group=64,extensions-=cl_khr_fp16,extensions+=cl_x": NULL or "" changes nothing.
 * A smaller local_mem lowers local_mem_static with it. Errors: INVALID_ARGUMENT that names the item. */
clattn_status cla_facts_override(struct facts *facts, const char *overrides, clattn_error *error);

/* Whole names only: cl_khr_fp16 is not in "cl_khr_fp16_x". */
bool cla_facts_has_extension(const struct facts *facts, const char *name);

bool cla_facts_is_intel_gpu(const struct facts *facts);

/* An Intel GPU with Intel's driver that gives a thread 256 registers if the build options request it: GPUs with matrix units.
 */
bool cla_facts_has_large_registers(const struct facts *facts);

bool cla_facts_is_pocl(const struct facts *facts);

/* Intel's own OpenCL, for its GPUs or for CPUs. */
bool cla_facts_is_intel_runtime(const struct facts *facts);

/* Whether writes of one group can be made visible to another within one launch: PTX defines how from sm_70 on, OpenCL C 1.2
 * does not. */
bool cla_facts_has_inter_group_visibility(const struct facts *facts);

#endif
