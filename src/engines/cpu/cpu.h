/* SPDX-License-Identifier: Apache-2.0
 * What the engines for CPU devices have in common. */
#ifndef CLATTN_ENGINES_CPU_H
#define CLATTN_ENGINES_CPU_H

#include "../../engine.h"

/* Whether this is a CPU device whose compiler is correct for vector code; if not, `why` says so. */
bool cla_cpu_is_known(const struct facts *facts, char *why, size_t why_size);

/* Number of floats in a vector. */
int cla_cpu_lanes(const struct facts *facts);

/* Vectors of rows in a tile: at most `most`, at least `least`; fewer if few rows would leave lanes idle, or few tiles would
 * leave cores idle. */
int cla_cpu_vectors(const struct facts *facts, const clattn_problem *problem, int most, int least);

/* A tile of one work-item that owns `vectors` times `lanes` rows. */
struct config cla_cpu_config(const struct engine *engine, int lanes, int vectors, int block_n);

/* Whether a bf16-pair engine (x86 instructions) can serve this problem; if not, `why` says so. */
bool cla_cpu_serves_pairs(const struct facts *facts, const clattn_problem *problem, char *why, size_t why_size);

/* Whether the compiler's prefetch builtin works. Compilers that use SPIR-V accept it too, but then abort the process. */
bool cla_cpu_has_prefetch(const struct facts *facts);

#endif
