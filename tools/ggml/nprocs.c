/* SPDX-License-Identifier: Apache-2.0
 * test-backend-ops gives ggml's CPU code half of the processors that it counts. Preloaded, this gives it all of them. */
#include <unistd.h>

int get_nprocs(void);

int get_nprocs(void) { return 2 * (int)sysconf(_SC_NPROCESSORS_ONLN); }
