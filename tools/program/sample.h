/* SPDX-License-Identifier: Apache-2.0
 * The project's sample input, tests/data/minilm: queries, keys and values of one layer of a sentence encoder. */
#ifndef CLATTN_TOOLS_SAMPLE_H
#define CLATTN_TOOLS_SAMPLE_H

#include "npy.h"

enum { SAMPLE_MAX_SENTENCES = 16, SAMPLE_MAX_TOKENS = 64 };

struct sample {
    char folder[1024];
    struct npy q, k, v, expected; /* (sentences, heads, longest, head_dim) */
    int sentences, heads, longest, head_dim;
    int lengths[SAMPLE_MAX_SENTENCES];
    char *text; /* of tokens.txt, cut into the words below */
    const char *tokens[SAMPLE_MAX_SENTENCES][SAMPLE_MAX_TOKENS];
};

/* folder NULL: the one next to the program, where the build puts it, then the installed one. Returns CLI_OK or
 * the exit code after the message. */
int sample_load(struct sample *sample, const char *folder);
void sample_free(struct sample *sample);

#endif
