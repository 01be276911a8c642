/* SPDX-License-Identifier: Apache-2.0 */
#include "overlap.h"

#include "arithmetic.h"
#include "problem.h"

/* The bytes of a tensor: runs of `run` bytes that begin at `start` plus any sum of steps. Steps are positive and ascending, and
 * none lies within a run. */
struct bytes {
    int64_t start, run;
    int64_t count[4], step[4];
    int steps;
};

static void add_step(struct bytes *bytes, int64_t count, int64_t step)
{
    int at = bytes->steps++;
    for (; at > 0 && bytes->step[at - 1] > step; at--) {
        bytes->step[at] = bytes->step[at - 1];
        bytes->count[at] = bytes->count[at - 1];
    }
    bytes->step[at] = step;
    bytes->count[at] = count;
}

/* Merges the shortest steps into the run as long as that leaves no gap. */
static void join_steps(struct bytes *bytes)
{
    int joined = 0;
    while (joined < bytes->steps && bytes->step[joined] <= bytes->run) {
        bytes->run += cla_times(bytes->count[joined] - 1, bytes->step[joined]);
        joined++;
    }
    for (int i = joined; i < bytes->steps; i++) {
        bytes->step[i - joined] = bytes->step[i];
        bytes->count[i - joined] = bytes->count[i];
    }
    bytes->steps -= joined;
}

/* False: the tensor has no element. `base` is where its buffer begins. */
static bool find_bytes(const struct tensor_check *t, int64_t base, struct bytes *bytes)
{
    const int64_t width = (int64_t)t->element_size, limit = (int64_t)1 << 60;
    int64_t lowest, highest;
    if (!cla_tensor_extent(t->sizes, t->strides, &lowest, &highest))
        return false;
    const int64_t offset = t->buffer->offset > (uint64_t)limit ? limit : (int64_t)t->buffer->offset;
    *bytes = (struct bytes){.start = base + offset + cla_times(lowest, width), .run = width};
    for (int i = 0; i < 4; i++) {
        const int64_t stride = cla_times(t->strides[i], width);
        if (t->sizes[i] > 1 && stride != 0)
            add_step(bytes, t->sizes[i], stride < 0 ? -stride : stride);
    }
    join_steps(bytes);
    return true;
}

/* One past the last byte. */
static int64_t end_of(const struct bytes *bytes)
{
    int64_t end = bytes->start + bytes->run;
    for (int i = 0; i < bytes->steps; i++)
        end += cla_times(bytes->count[i] - 1, bytes->step[i]);
    return end;
}

static int64_t common_divisor(int64_t a, int64_t b)
{
    while (b != 0) {
        const int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Whether the tensors alternate in one buffer: all steps are multiples of a period, within which their runs do not overlap. */
static bool take_turns(const struct bytes *a, const struct bytes *b)
{
    int64_t period = 0;
    for (int i = 0; i < a->steps; i++)
        period = common_divisor(a->step[i], period);
    for (int i = 0; i < b->steps; i++)
        period = common_divisor(b->step[i], period);
    if (period == 0)
        return false;
    const int64_t between = ((b->start - a->start) % period + period) % period;
    return between >= a->run && between + b->run <= period;
}

/* Whether a run of `a` overlaps one of `b`. Tries each position along the longest step of either. */
static bool meet(const struct bytes *a, const struct bytes *b, int *patience)
{
    if (end_of(a) <= b->start || end_of(b) <= a->start || take_turns(a, b))
        return false;
    if (a->steps == 0 && b->steps == 0)
        return true;
    if (b->steps > 0 && (a->steps == 0 || b->step[b->steps - 1] > a->step[a->steps - 1])) {
        const struct bytes *const swap = a;
        a = b;
        b = swap;
    }
    struct bytes part = *a;
    part.steps--;
    const int64_t step = a->step[part.steps], last = a->count[part.steps] - 1;
    /* Positions before `from` and after `to` are outside the other tensor. */
    const int64_t before = b->start - end_of(&part), after = end_of(b) - part.start;
    const int64_t from = before < 0 ? 0 : before / step, to = after / step < last ? after / step : last;
    for (int64_t i = from; i <= to && (*patience)-- > 0; i++) {
        part.start = a->start + i * step;
        if (meet(&part, b, patience))
            return true;
    }
    return false;
}

bool cla_tensors_overlap(const struct tensor_check *a, const struct tensor_check *b)
{
    const clattn_buffer *const x = a->buffer, *const y = b->buffer;
    struct bytes a_bytes, b_bytes;
    int patience = 10000;
    if (x->kind == CLATTN_BUFFER_NONE || x->kind != y->kind || (x->kind == CLATTN_BUFFER_MEM && x->handle != y->handle))
        return false;
    /* SVM pointers may be in one allocation, or in two, which their distance separates. */
    const int64_t apart = (int64_t)((uintptr_t)y->handle - (uintptr_t)x->handle);
    return find_bytes(a, 0, &a_bytes) && find_bytes(b, apart, &b_bytes) && meet(&a_bytes, &b_bytes, &patience);
}
