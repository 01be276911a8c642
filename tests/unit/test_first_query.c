/* SPDX-License-Identifier: Apache-2.0 */
/* ctest: posix threads */
/* The first query for platforms in a process, from many threads. The loader's function is replaced by one that counts. */
#include "support.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

enum { THREADS = 8 };

static atomic_int inside, most, calls;

/* Weak: a library that loads OpenCL at run time has this function itself, and then nothing is watched. */
__attribute__((weak)) CL_API_ENTRY cl_int CL_API_CALL clGetPlatformIDs(cl_uint entries, cl_platform_id *list, cl_uint *count)
{
    const struct timespec moment = {0, 20000000};
    const int here = atomic_fetch_add(&inside, 1) + 1;
    int seen = atomic_load(&most);
    (void)entries, (void)list;
    while (here > seen && !atomic_compare_exchange_weak(&most, &seen, here))
        ;
    atomic_fetch_add(&calls, 1);
    nanosleep(&moment, NULL);
    atomic_fetch_sub(&inside, 1);
    *count = 0;
    return CL_SUCCESS;
}

static void *ask(void *unused)
{
    cl_device_id device;
    (void)clattn_device_find(NULL, &device, NULL);
    return unused;
}

static void one_thread_at_a_time_asks_for_platforms(void **state)
{
    pthread_t threads[THREADS];
    (void)state;
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask, NULL), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    if (atomic_load(&calls) == 0)
        skip();
    assert_int_equal(atomic_load(&most), 1);
    assert_true(atomic_load(&calls) >= THREADS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_thread_at_a_time_asks_for_platforms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
