/* SPDX-License-Identifier: Apache-2.0
 * Bugs planted one by one in a copy of the kernel files. Each compiles, runs and gives numbers; the tests must notice every one
 * and must pass on the unaltered copy. */
#ifndef CLATTN_TESTS_PLANTS_H
#define CLATTN_TESTS_PLANTS_H

#include "attend.h"

struct edit {
    const char *file, *from, *to;
};

struct plant {
    const char *name;
    const char *engine;
    const char *shape;
    struct edit edits[3]; /* up to the first without a file */
};

/* The trials of all plants pass on an unaltered copy, on at least `served` of the engines' shapes that this device serves. */
void plants_pass_unaltered(const struct plant *plants, size_t count, size_t served);

/* Every plant of an engine that this device has is noticed. Names those that are not, and fails. */
void plants_are_noticed(const struct plant *plants, size_t count);

/* Runs the trial of `plant` on a copy with these edits. */
void plant_run(const struct plant *plant, const struct edit *edits, size_t count, struct trial_result *result);

#endif
