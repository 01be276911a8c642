/* SPDX-License-Identifier: Apache-2.0
 * What the host's own processor can do beyond what OpenCL says, for CPU devices that are this host. */
#ifndef CLATTN_PROCESSOR_H
#define CLATTN_PROCESSOR_H

#include <stdbool.h>

/* Features that the processor has and whose registers the system keeps for a thread. */
enum { CLA_AVX512_BF16 = 1, CLA_AMX_BF16 = 2 };
unsigned cla_processor_features(void);

/* Asks the system to let this process use AMX tiles, for good; false where it refuses. */
bool cla_processor_allow_tiles(void);

#endif
