/* SPDX-License-Identifier: Apache-2.0
 * The test matrix as data: groups of trials, each trial a text that trial_parse reads. */
#ifndef CLATTN_TOOLS_MATRIX_H
#define CLATTN_TOOLS_MATRIX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Words of a trial come from these lists, one of each. The first three decide which programs are built. */
enum matrix_list {
    MATRIX_TYPES,
    MATRIX_DIMS,
    MATRIX_SETTING, /* layouts and emulated limits */
    MATRIX_HEADS,
    MATRIX_Q,
    MATRIX_KV,
    MATRIX_MASK,
    MATRIX_EXTRA,
    MATRIX_HIDE,      /* explicit masks and biases */
    MATRIX_SCORE,     /* what changes scores, and sinks */
    MATRIX_SEQUENCES, /* lengths, offsets, packed sequences */
    MATRIX_LISTS
};

struct matrix_group {
    const char *name;
    const char *about;
    const char *const *lists[MATRIX_LISTS]; /* each ends with NULL; a missing list is one empty word */
    unsigned rotate;                        /* bit 1 << list: not crossed with the others, one word drawn for each trial */
    unsigned quick_cells, quick_trials;     /* of the quick sample: combinations of the first three lists, trials in each */
    unsigned quick_pool;                    /* these many first combinations are drawn from; 0: all */
};

extern const struct matrix_group matrix_groups[];
extern const size_t matrix_group_count;

/* NULL: there is no group of that name. */
const struct matrix_group *matrix_find(const char *name);

/* How many trials matrix_walk visits. */
size_t matrix_count(const struct matrix_group *group, bool full);

/* Calls visit with the text of each trial: all of them, or a seeded sample; trials of one program follow each other.
 * visit returns false to stop. */
typedef bool (*matrix_visitor)(void *user, const struct matrix_group *group, const char *text);
void matrix_walk(const struct matrix_group *group, bool full, uint64_t seed, matrix_visitor visit, void *user);

#endif
