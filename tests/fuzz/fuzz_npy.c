/* SPDX-License-Identifier: Apache-2.0
 * The .npy reader, from memory and from a stream: both accept and refuse the same, with the same numbers. */
#include "fuzz.h"

#include "npy.h"

static void read_stream(const uint8_t *data, size_t size, struct npy *array, bool *right, char why[NPY_WHY_SIZE])
{
    FILE *file = fmemopen((void *)(uintptr_t)data, size, "rb");
    fuzz_require(file != NULL);
    *right = npy_read_stream(file, array, why);
    fclose(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct npy parsed, streamed;
    char why[NPY_WHY_SIZE] = "", text[256];
    bool right;
    if (size == 0)
        return 0;
    const bool is_array = npy_parse(data, size, &parsed, why);
    fuzz_require(is_array || why[0] != '\0');
    read_stream(data, size, &streamed, &right, why);
    fuzz_require(right == is_array);
    if (!is_array)
        return 0;
    fuzz_require(parsed.count == streamed.count && parsed.rank == streamed.rank && parsed.type == streamed.type);
    fuzz_require(memcmp(parsed.shape, streamed.shape, sizeof parsed.shape) == 0);
    fuzz_require(memcmp(parsed.data, streamed.data, parsed.count * npy_item_size(parsed.type)) == 0);
    npy_shape_text(&parsed, text, sizeof text);
    npy_shape_text(&parsed, text, 3);
    npy_free(&parsed);
    npy_free(&streamed);
    return 0;
}
