/* SPDX-License-Identifier: Apache-2.0
 * The demo: attention of a real sentence encoder on a device, checked and shown. */
#ifndef CLATTN_TOOLS_DEMO_H
#define CLATTN_TOOLS_DEMO_H

struct demo_options {
    const char *device, *engine; /* NULL: the library's choice */
    const char *data;            /* folder of the sample; NULL: the source tree's, then the installed one */
    const char *svg;             /* NULL: clattn-demo.svg */
};

/* Returns an exit code. */
int demo_run(const struct demo_options *options);

#endif
