/* SPDX-License-Identifier: Apache-2.0
 * What a case of the self-check comes to, computed on the host. */
#ifndef CLATTN_SELFCHECK_WITNESS_H
#define CLATTN_SELFCHECK_WITNESS_H

#include "selfcheck_data.h"

/* O and LSE of data->problem, contiguous. It knows what cla_check_problem asks for: grouped heads, lengths, the diagonal of the
 * bottom right corner, softcap and a mask of rows and keys. False when memory is lacking. */
bool cla_check_witness(const struct check_data *data, float *o, float *lse);

#endif
