/* SPDX-License-Identifier: Apache-2.0
 * What the engines for CPU devices have in common. */
#ifndef CLATTN_ENGINES_CPU_H
#define CLATTN_ENGINES_CPU_H

#include "../../engine.h"

/* A CPU device whose compiler can be trusted with vectors; if not, `why` says so. */
bool cla_cpu_is_known(const struct facts *facts, char *why, size_t why_size);

/* Floats of a vector. */
int cla_cpu_lanes(const struct facts *facts);

/* Vectors of rows in a tile: at most `most`, at least `least`; fewer where few rows would leave lanes idle, or few tiles cores.
 */
int cla_cpu_vectors(const struct facts *facts, const clattn_problem *problem, int most, int least);

/* A tile of one work-item that owns `vectors` times `lanes` rows. */
struct config cla_cpu_config(const struct engine *engine, int lanes, int vectors, int block_n);

/* Whether an engine of x86 instructions for pairs of bf16 may be thought of at all; if not, `why` says so. */
bool cla_cpu_serves_pairs(const struct facts *facts, const clattn_problem *problem, char *why, size_t why_size);

/* The compiler's own prefetch: compilers that go by way of SPIR-V know the builtin as well, and then end the process over it.
 */
bool cla_cpu_has_prefetch(const struct facts *facts);

#endif
