/* SPDX-License-Identifier: Apache-2.0
 * Elements of a trial's tensors in host memory. */
#include "half.h"
#include "trial.h"

static int64_t index_of(const struct trial_tensor *t, int64_t b, int64_t h, int64_t s, int64_t d)
{
    return t->origin + b * t->stride[0] + h * t->stride[1] + s * t->stride[2] + d * t->stride[3];
}

size_t trial_item_size(const struct trial_tensor *t) { return t->integer ? (size_t)t->integer : storage_size(t->type); }

static int64_t get_integer(const struct trial_tensor *t, int64_t index)
{
    return t->integer == 1   ? ((const uint8_t *)t->data)[index]
           : t->integer == 4 ? ((const int32_t *)t->data)[index]
                             : ((const int64_t *)t->data)[index];
}

static void set_integer(const struct trial_tensor *t, int64_t index, int64_t x)
{
    if (t->integer == 1)
        ((uint8_t *)t->data)[index] = (uint8_t)x;
    else if (t->integer == 4)
        ((int32_t *)t->data)[index] = (int32_t)x;
    else
        ((int64_t *)t->data)[index] = x;
}

float trial_get(const struct trial_tensor *t, int64_t b, int64_t h, int64_t s, int64_t d)
{
    const int64_t index = index_of(t, b, h, s, d);
    return t->integer ? (float)get_integer(t, index) : storage_get(t->type, t->data, index);
}

void trial_set(const struct trial_tensor *t, int64_t b, int64_t h, int64_t s, int64_t d, float x)
{
    if (t->integer)
        set_integer(t, index_of(t, b, h, s, d), (int64_t)x);
    else
        storage_set(t->type, t->data, index_of(t, b, h, s, d), x);
}

void trial_set_integer(const struct trial_tensor *t, int64_t i, int64_t x) { set_integer(t, index_of(t, 0, 0, 0, i), x); }
