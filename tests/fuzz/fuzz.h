/* SPDX-License-Identifier: Apache-2.0
 * What the fuzzers share. Each is a program of its own, in two forms: with libFuzzer, which looks for inputs that reach new
 * code (tools/scripts/fuzz.sh), and with corpus.c, which runs the inputs of NAME.corpus and some thousand changes of them in
 * the suite. What must hold is stated with fuzz_require; sanitizers watch the rest. */
#ifndef CLATTN_TESTS_FUZZ_H
#define CLATTN_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One input. Returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define fuzz_require(condition)                                                                                                \
    do {                                                                                                                       \
        if (!(condition)) {                                                                                                    \
            fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition);                                     \
            abort();                                                                                                           \
        }                                                                                                                      \
    } while (0)

/* The input as a text, whose closing zero is the last byte of an allocation. */
static inline char *fuzz_text(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    fuzz_require(text != NULL);
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    return text;
}

#endif
