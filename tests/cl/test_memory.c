/* SPDX-License-Identifier: Apache-2.0
 * Each allocation of the library fails in turn: OUT_OF_HOST_MEMORY, or a right result where the library does not need it (the
 * cache, a description); nothing is leaked, and the next attempt succeeds. */
/* ctest: quick */
/* link: -Wl,--wrap=malloc -Wl,--wrap=calloc -Wl,--wrap=realloc -Wl,--wrap=free */
#include "steps.h"

/* Calls from this program and the library in it, but not those of the driver, come here. */
void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void __real_free(void *block);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);
void __wrap_free(void *block);

static bool counting, failed;
static long fail_at, allocations, live;

static bool fails(void)
{
    if (!counting || ++allocations != fail_at) {
        return false;
    }
    failed = true;
    return true;
}

void *__wrap_malloc(size_t size)
{
    void *block = fails() ? NULL : __real_malloc(size);
    live += block != NULL;
    return block;
}

void *__wrap_calloc(size_t count, size_t size)
{
    void *block = fails() ? NULL : __real_calloc(count, size);
    live += block != NULL;
    return block;
}

void *__wrap_realloc(void *old, size_t size)
{
    void *block = fails() ? NULL : __real_realloc(old, size);
    live += block != NULL && old == NULL;
    return block;
}

void __wrap_free(void *block)
{
    live -= block != NULL;
    __real_free(block);
}

/* A step whose allocation number `n` fails. False: it has fewer. */
static bool one_failure(struct session *s, size_t step, long n)
{
    failed = false;
    allocations = 0;
    fail_at = n;
    counting = true;
    const clattn_status status = step_run(s, step);
    counting = false;
    if (!failed) {
        assert_ok(status, &stage.error);
        return false;
    }
    if (status != CLATTN_SUCCESS && status != CLATTN_OUT_OF_HOST_MEMORY) {
        fail_msg("step %zu, allocation %ld failed: %s \"%s\"", step, n, clattn_status_name(status), stage.error.message);
    }
    if (status != CLATTN_SUCCESS) {
        assert_true(stage.error.status == status && stage.error.message[0] != '\0');
        assert_ok(step_run(s, step), &stage.error);
    }
    return true;
}

static long all_failures(size_t step, bool warm, bool own_cl)
{
    long n = 1;
    for (bool more = true; more; n++) {
        struct session s = {.own_cl = own_cl};
        if (!warm) {
            stage_forget();
        }
        buffers_poison(&stage.buffers, stage.queue);
        const long before = live;
        steps_run(&s, 0, step);
        more = one_failure(&s, step, n);
        if (!own_cl) {
            steps_run(&s, step + 1, STEPS);
            assert_true(buffers_all_one(&stage.buffers, stage.queue));
        }
        session_close(&s);
        if (live != before) {
            fail_msg("step %zu, allocation %ld failed: %ld blocks leaked", step, n, live - before);
        }
    }
    return n - 2;
}

static void every_failed_allocation_is_handled(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        size_t step;
        bool warm, own_cl;
        long at_least;
    } rows[] = {
        {"context of the caller's", STEP_CONTEXT, true, false, 3},
        {"context of its own", STEP_CONTEXT, true, true, 5},
        {"plan, cold", STEP_PLAN, false, false, 15},
        {"plan, warm", STEP_PLAN, true, false, 15},
        {"call", STEP_ENQUEUE, true, false, 0},
        {"merge, cold", STEP_MERGE, false, false, 10},
        {"merge, warm", STEP_MERGE, true, false, 10},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const long count = all_failures(rows[i].step, rows[i].warm, rows[i].own_cl);
        print_message("%s: each of %ld allocations failed once\n", rows[i].what, count);
        assert_true(count >= rows[i].at_least);
    }
}

static int open_all(void **state)
{
    (void)state;
    stage_open();
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    stage_close();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_failed_allocation_is_handled)};
    return cmocka_run_group_tests(tests, open_all, close_all);
}
