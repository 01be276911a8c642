/* SPDX-License-Identifier: Apache-2.0
 * tools/verify/matrix.c: every text is a trial, a seed names one sample, and the groups cover what they are there for. */
#include "support.h"

#include "../../tools/verify/layout.c"
#include "../../tools/verify/matrix.c"
#include "../../tools/verify/trial_text.c"

struct walk {
    size_t count, limit;
    uint64_t hash;
    const char *wanted; /* a word to look for, and how often it came */
    size_t found;
};

static bool visit(void *user, const struct matrix_group *group, const char *text)
{
    struct walk *walk = user;
    struct trial trial;
    clattn_error error;
    clattn_error_init(&error);
    if (trial_parse(text, &trial, &error) != CLATTN_SUCCESS)
        fail_msg("%s: \"%s\": %s", group->name, text, error.message);
    for (const char *c = text; *c; c++)
        walk->hash = random_mix(walk->hash ^ (unsigned char)*c);
    walk->found += walk->wanted && strstr(text, walk->wanted);
    walk->count++;
    return walk->limit == 0 || walk->count < walk->limit;
}

static struct walk walk_all(const struct matrix_group *group, bool full, uint64_t seed, const char *wanted)
{
    struct walk walk = {.wanted = wanted};
    matrix_walk(group, full, seed, visit, &walk);
    return walk;
}

static void every_text_is_a_trial(void **state)
{
    (void)state;
    for (size_t g = 0; g < matrix_group_count; g++) {
        for (int full = 0; full < 2; full++) {
            const struct walk walk = walk_all(&matrix_groups[g], full, 1, NULL);
            assert_int_equal(walk.count, matrix_count(&matrix_groups[g], full));
            assert_true(walk.count > 0 || !full);
        }
    }
}

static void a_seed_names_one_sample(void **state)
{
    (void)state;
    for (size_t g = 0; g < matrix_group_count; g++) {
        if (matrix_count(&matrix_groups[g], false) == 0)
            continue;
        const struct walk one = walk_all(&matrix_groups[g], false, 5, NULL),
                          again = walk_all(&matrix_groups[g], false, 5, NULL);
        const struct walk other = walk_all(&matrix_groups[g], false, 6, NULL);
        assert_true(one.hash == again.hash);
        assert_true(one.hash != other.hash);
    }
}

static void lengths_are_crossed(void **state)
{
    (void)state;
    const struct matrix_group *sizes = matrix_find("sizes-fp32");
    assert_non_null(sizes);
    assert_int_equal(walk_all(sizes, true, 1, "d512 ").found, 14 * 13);
    assert_int_equal(walk_all(sizes, true, 1, "q129 k513 ").found, 13);
    /* Drawn words all come up. */
    assert_true(walk_all(sizes, true, 1, "causal=bottom-right").found > 300);
    assert_true(walk_all(sizes, true, 1, "hq4 hkv2").found > 400);
    assert_true(walk_all(sizes, true, 1, "lse").found > 1500);
}

static void the_sample_is_small(void **state)
{
    size_t trials = 0, cells = 0;
    (void)state;
    for (size_t g = 0; g < matrix_group_count; g++) {
        trials += matrix_count(&matrix_groups[g], false);
        cells += matrix_groups[g].quick_cells;
    }
    assert_true(trials >= 300 && trials <= 500);
    assert_true(cells <= 34);
}

static void a_walk_can_be_stopped(void **state)
{
    struct walk walk = {.limit = 3};
    (void)state;
    matrix_walk(&matrix_groups[0], true, 1, visit, &walk);
    assert_int_equal(walk.count, 3);
    assert_null(matrix_find("no such group"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_text_is_a_trial), cmocka_unit_test(a_seed_names_one_sample),
        cmocka_unit_test(lengths_are_crossed),   cmocka_unit_test(the_sample_is_small),
        cmocka_unit_test(a_walk_can_be_stopped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
