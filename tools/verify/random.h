/* SPDX-License-Identifier: Apache-2.0
 * A seeded generator (splitmix64): the same numbers on every machine, so that a seed names a test. */
#ifndef CLATTN_TOOLS_RANDOM_H
#define CLATTN_TOOLS_RANDOM_H

#include <stdint.h>

/* A hash of x, as good as a fresh random number. */
static inline uint64_t random_mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static inline uint64_t random_next(uint64_t *state)
{
    *state += 0x9e3779b97f4a7c15u;
    return random_mix(*state);
}

/* 0 ... n - 1; n at least 1. */
static inline uint64_t random_below(uint64_t *state, uint64_t n) { return random_next(state) % n; }

/* Uniform in [-1, 1), from the upper 24 bits of a hash: exact in float. */
static inline float random_signed(uint64_t bits) { return (float)(bits >> 40) * 0x1p-23f - 1.0f; }

#endif
