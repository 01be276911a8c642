/* SPDX-License-Identifier: Apache-2.0 */
#include "layered.h"

#include <dlfcn.h>

#ifndef CLATTN_LAYER
#error "the build defines CLATTN_LAYER, the layer's path"
#endif

void layer_request(void) { setenv("OPENCL_LAYERS", CLATTN_LAYER, 1); }

struct layer_state *layer_open(void)
{
    cl_uint count = 0;
    clGetPlatformIDs(0, NULL, &count); /* loaders load layers at the first call */
    void *library = dlopen(CLATTN_LAYER, RTLD_NOLOAD | RTLD_NOW);
    if (library == NULL) {
        fail_msg("the OpenCL loader did not load the layer %s", CLATTN_LAYER);
    }
    struct layer_state *layer = dlsym(library, LAYER_STATE_NAME);
    assert_non_null(layer);
    layer->counting = true;
    clGetPlatformIDs(0, NULL, &count);
    layer->counting = false;
    assert_int_equal(layer->calls, 1);
    layer->calls = 0;
    return layer;
}

long layer_live(const struct layer_state *layer)
{
    long sum = 0;
    for (int i = 0; i < LAYER_KINDS; i++) {
        sum += layer->live[i];
    }
    return sum;
}
