/* SPDX-License-Identifier: Apache-2.0
 * Integer arithmetic used everywhere. Products and sums saturate instead of wrapping. */
#ifndef CLATTN_ARITHMETIC_H
#define CLATTN_ARITHMETIC_H

#include <stddef.h>
#include <stdint.h>

/* a * b, limited to +-2^60, so that a sum of up to seven of them cannot wrap. */
static inline int64_t cla_times(int64_t a, int64_t b)
{
    const int64_t limit = (int64_t)1 << 60;
    if (a == 0 || b == 0)
        return 0;
    const double product = (double)a * (double)b;
    return product > (double)limit ? limit : product < -(double)limit ? -limit : a * b;
}

/* The least number of parts of size `part` that hold `whole`. Both are positive, or `whole` is 0; their sum is below 2^63. */
static inline int64_t cla_divide_up(int64_t whole, int64_t part) { return (whole + part - 1) / part; }

/* The least multiple of `step` that is not below `x`. The limits are those of cla_divide_up. */
static inline int64_t cla_round_up(int64_t x, int64_t step) { return cla_divide_up(x, step) * step; }

/* Bytes: a * b, at most SIZE_MAX. `b` is not negative. */
static inline size_t cla_bytes_times(size_t a, int64_t b)
{
    return b == 0 ? 0 : (uint64_t)b > SIZE_MAX || a > SIZE_MAX / (size_t)b ? SIZE_MAX : a * (size_t)b;
}

/* Bytes: a + b, at most SIZE_MAX. */
static inline size_t cla_bytes_plus(size_t a, size_t b) { return b > SIZE_MAX - a ? SIZE_MAX : a + b; }

/* Bytes: the least multiple of `step` that is not below `bytes`, at most SIZE_MAX. */
static inline size_t cla_bytes_round_up(size_t bytes, size_t step)
{
    return bytes > SIZE_MAX - (step - 1) ? SIZE_MAX : (bytes + (step - 1)) / step * step;
}

#endif
