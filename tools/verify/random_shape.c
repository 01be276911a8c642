/* SPDX-License-Identifier: Apache-2.0 */
#include "random_shape.h"

#include "random.h"

#include <stdio.h>
#include <string.h>

static const char *const few_types[] = {"fp32 d64", "fp16 d64", NULL};
static const char *const many_types[] = {"fp16 d64", "bf16 d128", "fp16 d128 dv64", "bf16 d80", "bf16 d64 o=fp32",
                                         "fp32 d64", NULL};

/* One word of each list. */
static const char *const lists[][8] = {
    {"hq1", "b2 hq4 hkv2", "b3 hq2", "b2 hq6 hkv1", "b0 hq2", "b5 hq3"},
    {"q1", "q2", "q5", "q33", "q70", "q130", "q300", "q0"},
    {"k0", "k1", "k17", "k64", "k65", "k129", "k300", "k1100"},
    {"", "", "causal", "causal=bottom-right", "causal=5", "causal=-7", "corner=bottom-right"},
    {"", "", "window=0,0", "window=20,-1", "window=-1,9", "window=64,64"},
    {"", "", "", "mask=qk", "mask=bhqk", "mask=bk", "mask=hqk mask-columns=9"},
    {"", "", "", "bias=qk", "bias=hqk bias-type=fp16", "bias=bk bias-type=bf16 bias-factors", "bias=bhqk bias-columns=40"},
    {"", "", "", "alibi", "softcap=4", "alibi softcap=20"},
    {"", "", "sinks"},
    {"", "", "", "kv-lengths", "q-lengths=int64 kv-lengths", "packed", "packed=int64 kv-lengths", "offsets"},
    {"", "", "layout=bshd", "layout=padded", "layout=v-transposed", "layout=reversed-seq"},
    {"", "", "", "chunk=-1", "chunk=64", "chunk=500", "slice=0.01"},
    {"", "lse", "lse", "scores=softmax", "scores=bias lse", "scores=raw"},
    {"", "", "", "inputs=nan-rows", "inputs=outliers", "inputs=ones"},
    {"", "", "scale=0", "scale=-0.3"},
};

enum { LISTS = sizeof lists / sizeof *lists, WORDS = sizeof *lists / sizeof **lists };

static const char *draw(uint64_t *state, const char *const *words, size_t most)
{
    size_t count = 0;
    while (count < most && words[count])
        count++;
    return words[random_below(state, count)];
}

static void draw_all(uint64_t *state, bool many, char *text, size_t size)
{
    const char *const *const types = many ? many_types : few_types;
    size_t used = (size_t)snprintf(text, size, "%s ", draw(state, types, (size_t)-1));
    for (size_t i = 0; i < LISTS; i++)
        used += (size_t)snprintf(text + used, size - used, "%s ", draw(state, lists[i], WORDS));
    snprintf(text + used, size - used, "seed=%d", (int)random_below(state, 100000));
}

/* Packed tensors have one sequence axis, which the layouts of trials know nothing of. */
static bool is_sensible(const char *text) { return !strstr(text, "packed") || !strstr(text, "layout="); }

void random_shape(uint64_t *state, bool many, char *text, size_t size)
{
    do
        draw_all(state, many, text, size);
    while (!is_sensible(text));
}
