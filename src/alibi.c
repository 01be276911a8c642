/* SPDX-License-Identifier: Apache-2.0 */
#include "status.h"

#include <math.h>

void clattn_alibi_slopes(int64_t heads, float *slopes)
{
    int64_t power = 1;
    if (!slopes)
        return;
    while (power <= heads / 2)
        power *= 2;
    for (int64_t i = 0; i < heads; i++) {
        const double exponent =
            i < power ? 8.0 * (double)(i + 1) / (double)power : 4.0 * (double)(2 * (i - power) + 1) / (double)power;
        slopes[i] = (float)exp2(-exponent);
    }
}
