/* SPDX-License-Identifier: Apache-2.0
 * The peak rates of a device, measured through OpenCL with a few small kernels; other rates are compared with them. */
#ifndef CLATTN_TOOLS_PEAK_H
#define CLATTN_TOOLS_PEAK_H

#include "session.h"

struct peak {
    double fma;  /* fp32 operations a second, a multiply-add being two; 0: could not be measured */
    double read; /* bytes a second, summing a buffer too large for caches */
    double copy; /* bytes read plus bytes written a second, the better of a kernel and of clEnqueueCopyBuffer */
    struct {
        cl_kernel kernel; /* of the multiply-adds; NULL: not measured */
        cl_mem sums;
        size_t groups, work_group;
        double operations; /* of a launch */
    } again;
};

/* The session's queue must have profiling on. Takes a few seconds. Returns CLI_OK or an exit code after the message. */
int peak_measure(struct session *session, struct peak *peak);

/* Operations a second of one more launch of the multiply-adds, some 20 ms: the device's rate at this moment. */
int peak_fma_now(struct session *session, const struct peak *peak, double *rate);

void peak_free(struct peak *peak);

#endif
