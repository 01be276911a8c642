/* SPDX-License-Identifier: Apache-2.0
 * Barriers in NVIDIA's local memory (mbarrier), at an address in bytes. A phase completes after as many arrivals as the
 * barrier was initialized for. Arriving does not wait. Waiting names the phase by its number; only the lowest bit counts, so
 * no work-item may be two phases away from another.
 */
FN void barrier_init(uint at, uint count)
{
    __asm__ volatile("mbarrier.init.shared.b64 [%0], %1;" : : "r"(at), "r"(count) : "memory");
}
FN void barrier_arrive(uint at)
{
    __asm__ volatile("{ .reg .b64 s; mbarrier.arrive.shared.b64 s, [%0]; }" : : "r"(at) : "memory");
}
/* Arrives when all copies of this work-item (cp.async) have arrived. */
FN void barrier_arrive_copied(uint at)
{
    __asm__ volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" : : "r"(at) : "memory");
}
#if defined(NVIDIA_PTX) && NVIDIA_PTX < 90
#define BARRIER_TEST "mbarrier.test_wait.parity"
#else
#define BARRIER_TEST "mbarrier.try_wait.parity" /* sleeps for a limited time */
#endif
/* Waits until phase number `turn` is complete. The phase before the first counts as complete. */
FN void barrier_wait(uint at, int turn)
{
    uint done;
    do {
        __asm__ volatile("{ .reg .pred p; " BARRIER_TEST ".shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                         : "=r"(done)
                         : "r"(at), "r"(turn & 1)
                         : "memory");
    } while (!done);
}
