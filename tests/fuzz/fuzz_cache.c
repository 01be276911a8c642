/* SPDX-License-Identifier: Apache-2.0
 * What comes from a cache folder or a driver: entries, names of files, logs of compilers, PTX. The first byte says which, the
 * next 16 are a key. */
#include "fuzz.h"

#include "cache_file.h"
#include "ptx.h"
#include "source.h"

static void decode(const struct cache_key *key, char *bytes, size_t size)
{
    const struct text file = {.data = bytes, .length = size};
    const char *content = NULL;
    size_t length = 0;
    if (cla_cache_decode(key, &file, &content, &length))
        fuzz_require(content >= bytes && content + length <= bytes + size);
}

static bool is_entry(const struct cache_key *key, const struct text *file)
{
    const char *content;
    size_t length;
    return cla_cache_decode(key, file, &content, &length);
}

/* An entry comes back; with one bit changed anywhere, or a byte less, it does not. */
static void encode(const struct cache_key *key, const char *bytes, size_t size, size_t at)
{
    struct text file = {0};
    const char *content = NULL;
    size_t length = 0;
    fuzz_require(cla_cache_encode(key, bytes, size, &file) == (size > 0));
    if (size == 0)
        return;
    fuzz_require(cla_cache_decode(key, &file, &content, &length) && length == size && memcmp(content, bytes, size) == 0);
    char *const changed = &file.data[at % file.length];
    *changed = (char)(*changed ^ (1 << at % 8));
    fuzz_require(!is_entry(key, &file));
    *changed = (char)(*changed ^ (1 << at % 8));
    file.length--;
    fuzz_require(!is_entry(key, &file));
    cla_text_free(&file);
}

static void translate(const char *log)
{
    static const char *const files[] = {"cl/base.cl"};
    struct source source;
    struct text out = {0};
    memset(&source, 0, sizeof source);
    if (cla_source_compose(&source, "#define A 1\n#define B 2\n", files, 1, NULL, NULL) == CLATTN_SUCCESS)
        cla_source_translate(&source, log, &out);
    cla_text_free(&out);
    cla_source_free(&source);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cache_key key;
    struct text out = {0};
    char why[64];
    bool temporary;
    if (size < 1 + sizeof key.bytes)
        return 0;
    memcpy(key.bytes, data + 1, sizeof key.bytes);
    const size_t rest = size - 1 - sizeof key.bytes;
    char *const text = fuzz_text(data + 1 + sizeof key.bytes, rest);
    switch (data[0] % 4) {
    case 0:
        decode(&key, text, rest);
        break;
    case 1:
        encode(&key, text, rest, data[0] * (size_t)131);
        break;
    case 2:
        (void)cla_cache_owns(text, &temporary);
        translate(text);
        break;
    default:
        (void)cla_ptx_retarget(text, rest, "sm_90a", &out, why, sizeof why);
        cla_text_free(&out);
        break;
    }
    free(text);
    return 0;
}
