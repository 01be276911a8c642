/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "plants.h"

#include "files.h"

static void run(const struct plant *plant, struct trial_result *result)
{
    struct trial trial;
    clattn_error error;
    clattn_error_init(&error);
    assert_ok(trial_parse(plant->shape, &trial, &error), &error);
    trial_run_engine(bench.context, bench.queue, plant->engine, &trial, result);
}

/* Points the library at the copy while the trial runs. */
void plant_run(const struct plant *plant, const struct edit *edits, size_t count, struct trial_result *result)
{
    char *root = sources_copy();
    assert_non_null(root);
    bool altered = true;
    size_t failed = 0;
    for (size_t i = 0; altered && i < count && edits[i].file != NULL; i++) {
        altered = sources_alter(root, edits[i].file, edits[i].from, edits[i].to);
        failed = i;
    }
    if (altered) {
        setenv("CLATTN_SOURCE_DIR", root, 1);
        run(plant, result);
        unsetenv("CLATTN_SOURCE_DIR");
    }
    sources_remove(root);
    if (!altered) {
        fail_msg("%s: '%s' does not stand exactly once in %s", plant->name, edits[failed].from, edits[failed].file);
    }
}

/* Whether a plant before this one has the same trial. */
static bool is_repeated(const struct plant *plants, size_t i)
{
    for (size_t j = 0; j < i; j++) {
        if (strcmp(plants[i].engine, plants[j].engine) == 0 && strcmp(plants[i].shape, plants[j].shape) == 0) {
            return true;
        }
    }
    return false;
}

void plants_pass_unaltered(const struct plant *plants, size_t count, size_t least)
{
    size_t served = 0;
    for (size_t i = 0; i < count; i++) {
        struct trial_result result;
        if (is_repeated(plants, i)) {
            continue;
        }
        plant_run(&plants[i], NULL, 0, &result);
        /* Not every device has the engine. */
        served += result.status != CLATTN_UNSUPPORTED;
        if (!result.ok && result.status != CLATTN_UNSUPPORTED) {
            fail_msg("%s, \"%s\": %s", plants[i].engine, plants[i].shape, result.message);
        }
    }
    assert_true(served >= least);
}

void plants_are_noticed(const struct plant *plants, size_t count)
{
    size_t unnoticed = 0;
    for (size_t i = 0; i < count; i++) {
        struct trial_result result;
        plant_run(&plants[i], plants[i].edits, COUNT_OF(plants[i].edits), &result);
        if (result.status == CLATTN_UNSUPPORTED) {
            continue;
        }
        /* A vendor's engine is first held against a few problems of the library's own: that it is found wrong there is enough.
         */
        if (result.status == CLATTN_BUILD_FAILED && strstr(result.message, "self-check: output is off") != NULL) {
            continue;
        }
        /* It must run: a source that does not build proves nothing. */
        if (result.status != CLATTN_SUCCESS) {
            fail_msg("%s in %s: %s", plants[i].name, plants[i].engine, result.message);
        }
        if (result.ok) {
            print_error("not noticed: %s in %s, \"%s\": error %g, bound %g\n", plants[i].name, plants[i].engine,
                        plants[i].shape, result.max_error, result.bound);
            unnoticed++;
        }
    }
    assert_int_equal(unnoticed, 0);
}
