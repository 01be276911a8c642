/* SPDX-License-Identifier: Apache-2.0
 * Computes the results of a self-check case on the host. */
#ifndef CLATTN_SELFCHECK_WITNESS_H
#define CLATTN_SELFCHECK_WITNESS_H

#include "selfcheck_data.h"

/* O and LSE of data->problem, contiguous. It supports what cla_check_problem uses: grouped heads, lengths, the diagonal of the
 * bottom right corner, softcap and a mask of rows and keys. False if memory runs out. */
bool cla_check_witness(const struct check_data *data, float *o, float *lse);

#endif
