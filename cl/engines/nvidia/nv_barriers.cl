/* SPDX-License-Identifier: Apache-2.0
 * Barriers in NVIDIA's local memory, at an address in bytes. One turns over when as many have arrived as it was made for. Who
 * arrives need not wait; who waits names the turn by its number, of which the lowest bit counts, so nobody may be two turns
 * apart.
 */
FN void barrier_init(uint at, uint count)
{
    __asm__ volatile("mbarrier.init.shared.b64 [%0], %1;" : : "r"(at), "r"(count) : "memory");
}
FN void barrier_arrive(uint at)
{
    __asm__ volatile("{ .reg .b64 s; mbarrier.arrive.shared.b64 s, [%0]; }" : : "r"(at) : "memory");
}
/* Once all that this work-item copies by itself (cp.async) is there. */
FN void barrier_arrive_copied(uint at)
{
    __asm__ volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" : : "r"(at) : "memory");
}
#if defined(NVIDIA_PTX) && NVIDIA_PTX < 90
#define BARRIER_TEST "mbarrier.test_wait.parity"
#else
#define BARRIER_TEST "mbarrier.try_wait.parity" /* sleeps a while */
#endif
/* Until turn number `turn` is over; the one before the first is. */
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
