/* SPDX-License-Identifier: Apache-2.0 */
#include "matrix.h"

#include "random.h"
#include "trial.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIST(...)                                                                                                              \
    (const char *const[]) { __VA_ARGS__, NULL }

/* Lengths around the borders of blocks of 16, 32, 64 and 128, whichever an engine has: one less, the same, one more, twice and
 * one. */
#define Q_LENGTHS LIST("q1", "q2", "q3", "q17", "q31", "q32", "q33", "q63", "q64", "q65", "q127", "q128", "q129", "q257")
#define KV_LENGTHS LIST("k1", "k2", "k31", "k32", "k33", "k63", "k64", "k65", "k127", "k128", "k129", "k257", "k513")
#define HEAD_DIMS LIST("d1", "d2", "d3", "d8", "d40", "d64", "d72", "d80", "d96", "d128", "d160", "d256", "d512")
#define MASKS LIST("", "causal=top-left", "causal=bottom-right", "causal=7", "causal=-3")
#define SOME_HEADS LIST("hq1", "b2 hq2", "hq4 hkv2", "b2 hq3 hkv1")

/* Options, each alone and combined with related ones. The words for no option come first. */
#define WINDOWS                                                                                                                \
    LIST("", "window=0,0", "window=5,0", "window=16,-1", "window=-1,3", "window=40,70", "window=128,0 causal",                 \
         "window=3,2 corner=bottom-right", "window=64,0 causal=bottom-right", "window=31,32 corner=-20",                       \
         "window=-1,0 corner=40", "window=1000000000000,0", "window=9,1000000000000 corner=bottom-right",                      \
         "window=200,100 corner=bottom-right")
#define CORNERS LIST("", "causal", "causal=bottom-right", "causal=9", "window=60,20 corner=bottom-right")
#define EXPLICIT_MASKS                                                                                                         \
    LIST("mask=qk", "mask=bhqk", "mask=bk", "mask=k", "mask=q", "mask=hqk", "mask=bqk", "mask=1", "mask=qk mask-columns=20",   \
         "mask=bk mask-columns=1", "mask=bhqk mask-columns=0")
#define BIASES                                                                                                                 \
    LIST("bias=qk", "bias=bhqk bias-type=fp16", "bias=hqk bias-type=bf16", "bias=k", "bias=bk bias-type=fp16", "bias=q",       \
         "bias=1", "bias=hqk bias-factors", "bias=qk bias-factors bias-type=fp16", "bias=qk bias-columns=20",                  \
         "bias=bhqk bias-columns=1 bias-factors")
#define SCORES                                                                                                                 \
    LIST("alibi", "softcap=3", "softcap=30", "sinks", "alibi sinks", "softcap=2 sinks", "softcap=20 alibi sinks scale=1")
#define SEQUENCES                                                                                                              \
    LIST("kv-lengths", "kv-lengths=int64", "q-lengths", "q-lengths kv-lengths", "q-lengths=int64 kv-lengths=int64", "offsets", \
         "offsets=int64 kv-lengths", "offsets q-lengths=int64")
#define PACKED LIST("packed", "packed=int64", "packed kv-lengths", "packed=int64 q-lengths", "packed offsets")
#define SOME_OPTIONS                                                                                                           \
    LIST("", "", "mask=qk", "mask=bhqk", "bias=hqk", "bias=qk bias-type=fp16 bias-factors", "mask=bk bias=hqk",                \
         "mask=hqk bias=bqk bias-type=bf16 mask-columns=30")
#define SOME_SCORES LIST("", "", "alibi", "softcap=5", "sinks", "softcap=30 sinks", "alibi sinks softcap=10")
#define SOME_SEQUENCES LIST("", "", "kv-lengths", "q-lengths kv-lengths=int64", "offsets kv-lengths", "packed", "packed=int64")

/* Products of queries and keys up to the largest float (fp16 reaches 7e10), of either sign, and which keys win. */
#define LEVELS                                                                                                                 \
    LIST("level=1e4 winner=rise", "level=-1e4 winner=rise", "level=1e4 winner=all", "level=65504 winner=first",                \
         "level=-65504 winner=all", "level=1e9 winner=middle", "level=-1e9 winner=thirds", "level=1e20 winner=last",           \
         "level=1e30 winner=all", "level=-1e30 winner=middle", "level=1e37 winner=first", "level=-1e37 winner=all",            \
         "level=-1e37 winner=last", "level=3.4e38 winner=middle", "level=-3.4e38 winner=thirds", "level=65504 winner=rise")

#define BIT(list) (1u << MATRIX_##list)
#define QUICK(cells, trials, pool) .quick_cells = cells, .quick_trials = trials, .quick_pool = pool

#define SIZES(types)                                                                                                           \
    {LIST(types), HEAD_DIMS, NULL, SOME_HEADS, Q_LENGTHS, KV_LENGTHS, MASKS, NULL}, .rotate = BIT(HEADS) | BIT(MASK)

const struct matrix_group matrix_groups[] = {
    {"sizes-fp32", "lengths at block borders, all head sizes", SIZES("fp32"), QUICK(2, 15, 0)},
    {"sizes-fp16", "lengths at block borders, all head sizes", SIZES("fp16"), QUICK(1, 15, 0)},
    {"sizes-bf16", "lengths at block borders, all head sizes", SIZES("bf16"), QUICK(1, 15, 0)},
    {"sizes-mixed",
     "the same, Q and O fp32 with K and V fp16 or bf16",
     {LIST("q=fp32 kv=fp16 o=fp32", "q=fp32 kv=bf16 o=fp32"), HEAD_DIMS, NULL, SOME_HEADS, Q_LENGTHS, KV_LENGTHS, MASKS, NULL},
     .rotate = BIT(HEADS) | BIT(MASK),
     QUICK(1, 15, 0)},
    {"widths",
     "values wider or narrower than keys, odd and extreme head sizes",
     {LIST("fp32", "fp16"),
      LIST("d64 dv128", "d128 dv64", "d192 dv128", "d576 dv512", "d32 dv24", "d4 dv2", "d1 dv1024", "d1024 dv1", "d1024",
           "d257 dv255", "d20", "d33", "d65", "d88", "d112", "d192", "d224"),
      NULL, SOME_HEADS, LIST("q1", "q17", "q65"), LIST("k1", "k33", "k129"), MASKS, NULL},
     .rotate = BIT(HEADS) | BIT(MASK),
     QUICK(1, 8, 0)},
    {"types",
     "storage types mixed at will",
     {LIST("q=fp16 k=bf16 v=fp32 o=bf16", "q=bf16 k=fp16 v=fp16 o=fp32", "fp32 o=fp16", "q=fp16 kv=fp32 o=fp16", "fp16 o=fp32",
           "k=fp16 v=bf16", "bf16 q=fp16"),
      LIST("d40", "d64"), NULL, SOME_HEADS, LIST("q1", "q33", "q65"), LIST("k1", "k33", "k129"), MASKS, NULL},
     .rotate = BIT(HEADS) | BIT(MASK),
     QUICK(1, 8, 0)},
    {"causal",
     "the diagonal at either corner or anywhere, rows that see nothing",
     {LIST("fp32", "fp16"), LIST("d64", "d40"), NULL, SOME_HEADS,
      LIST("q1", "q2", "q31", "q32", "q33", "q64", "q65", "q129", "q130", "q257"),
      LIST("k1", "k2", "k31", "k33", "k64", "k65", "k128", "k129", "k513"),
      LIST("causal=top-left", "causal=bottom-right", "causal=0", "causal=1", "causal=-1", "causal=7", "causal=64", "causal=-64",
           "causal=1000", "causal=-1000", "causal=1000000000000", "causal=-1000000000000"),
      NULL},
     .rotate = BIT(HEADS),
     QUICK(1, 40, 1)},
    {"heads",
     "query heads that share key/value heads",
     {LIST("fp32", "fp16"), LIST("d64"), NULL,
      LIST("hq8 hkv8", "hq8 hkv2", "hq8 hkv1", "b2 hq28 hkv4", "b3 hq32 hkv2", "b3 hq3 hkv1", "b2 hq6 hkv3", "b5 hq1"),
      LIST("q1", "q5", "q33", "q130"), LIST("k1", "k33", "k130"), LIST("", "causal=bottom-right", "causal"), NULL},
     QUICK(1, 12, 1)},
    {"layouts",
     "axes in any order, gaps, mirrored axes, shared heads, keys or values transposed",
     {LIST("fp32", "fp16", "bf16"), LIST("d64", "d40"),
      LIST("layout=bhsd", "layout=bshd", "layout=sbhd", "layout=mixed", "layout=padded", "layout=padded4", "layout=packed-qkv",
           "layout=inner2", "layout=inner2-q", "layout=inner2-k", "layout=inner2-v", "layout=inner2-o", "layout=reversed-seq",
           "layout=reversed-k", "layout=reversed-head", "layout=reversed-dim", "layout=shared-heads", "layout=shared-batch",
           "layout=k-transposed", "layout=v-transposed", "layout=kv-transposed", "layout=all-transposed",
           "layout=heads-innermost"),
      LIST("b2 hq4 hkv2", "b3 hq2", "b2 hq3 hkv1"), LIST("q1", "q33", "q129"), LIST("k1", "k65", "k130"), MASKS, NULL},
     .rotate = BIT(HEADS) | BIT(MASK),
     QUICK(2, 8, 0)},
    {"calls",
     "a plan's bounds used in part",
     {LIST("fp32", "fp16"), LIST("d64"), LIST("layout=bhsd", "layout=bshd", "layout=sbhd"), LIST("b3 hq4 hkv2"), LIST("q200"),
      LIST("k600"), MASKS,
      LIST("call=1,1,1", "call=3,1,599", "call=2,200,600", "call=1,33,77", "call=3,64,64", "call=2,199,3", "call=1,1,512",
           "call=0,5,5", "call=2,0,5", "call=2,5,0")},
     QUICK(1, 10, 1)},
    {"scales",
     "any scale, 0 and negative ones included",
     {LIST("fp32", "fp16"), LIST("d64", "d1"), NULL, SOME_HEADS, LIST("q3", "q65"), LIST("k33", "k130"), MASKS,
      LIST("scale=0", "scale=-1", "scale=-0.125", "scale=0.001", "scale=1", "scale=3")},
     .rotate = BIT(HEADS),
     QUICK(1, 10, 1)},
    {"inputs",
     "equal scores, V = 1, NaN rows, scores past fp16, outliers, subnormal weights",
     {LIST("fp16", "fp32", "bf16", "q=fp32 kv=fp16 o=fp32", "q=fp32 kv=bf16 o=fp32"), LIST("d128", "d64"), NULL, SOME_HEADS,
      LIST("q3", "q65"), LIST("k33", "k257"), MASKS,
      LIST("inputs=ones", "inputs=equal", "inputs=nan-rows", "inputs=large", "inputs=outliers", "inputs=steep")},
     .rotate = BIT(HEADS),
     QUICK(1, 20, 1)},
    {"large-scores",
     "scores from 1e4 to the largest float, either sign, one key or many that win",
     {LIST("fp32", "bf16", "fp16", "q=fp32 kv=fp16 o=fp32"), LIST("d64", "d128"), NULL,
      LIST("hq1", "b2 hq4 hkv2", "hq16 hkv1", "hq8 hkv1"), LIST("q1", "q7", "q65", "q130"),
      LIST("k1", "k64", "k65", "k300", "k1100"), MASKS, LEVELS, LIST("", "", "", "mask=qk", "bias=hqk", "mask=bk bias=k"),
      LIST("", "", "", "alibi", "softcap=30", "sinks", "scale=1", "scale=-0.5")},
     .rotate = BIT(HEADS) | BIT(MASK) | BIT(HIDE) | BIT(SCORE),
     QUICK(1, 16, 3)},
    {"sinks",
     "sinks of any size, -inf, infinite and NaN, rows that see nothing",
     {LIST("fp32", "fp16"), LIST("d64"), NULL, LIST("hq4 hkv2", "b2 hq8 hkv2"), LIST("q1", "q3", "q33", "q129"),
      LIST("k0", "k1", "k77", "k513", "k1100"), LIST("", "causal=bottom-right", "causal=-3"),
      LIST("sinks sink=-inf", "sinks sink=0", "sinks sink=100", "sinks sink=-100", "sinks sink=1e9", "sinks sink=-1e9",
           "sinks sink=2e38", "sinks sink=3e38", "sinks sink=-3e38", "sinks sink=inf", "sinks sink=nan"),
      LIST("", "", "mask=qk", "bias=hqk"), LIST("", "", "alibi", "level=1e9 winner=middle"),
      LIST("", "", "", "q-lengths kv-lengths")},
     .rotate = BIT(HEADS) | BIT(MASK) | BIT(HIDE) | BIT(SCORE) | BIT(SEQUENCES),
     QUICK(1, 16, 1)},
    {"small",
     "every pair of lengths up to 17",
     {LIST("fp32"), LIST("d5", "d128"), NULL, NULL,
      LIST("q1", "q2", "q3", "q4", "q5", "q6", "q7", "q8", "q9", "q10", "q11", "q12", "q13", "q14", "q15", "q16", "q17"),
      LIST("k1", "k2", "k3", "k4", "k5", "k6", "k7", "k8", "k9", "k10", "k11", "k12", "k13", "k14", "k15", "k16", "k17"), MASKS,
      NULL},
     .rotate = BIT(MASK),
     QUICK(0, 0, 0)},
    {"decode",
     "few queries, many keys",
     {LIST("fp16", "fp32"), LIST("d128", "d96", "d64"), NULL, LIST("hq32 hkv2", "b2 hq8 hkv8"),
      LIST("q1", "q2", "q3", "q5", "q8"), LIST("k1", "k31", "k33", "k38", "k39", "k70", "k1023", "k1024", "k1025", "k5000"),
      LIST("causal=bottom-right", ""), NULL},
     .rotate = BIT(MASK),
     QUICK(1, 8, 1)},
    {"long",
     "several hundred of both",
     {LIST("fp32", "fp16"), LIST("d1", "d33", "d65"), NULL, LIST("hq1", "hq2 hkv1"), LIST("q113", "q1024"),
      LIST("k123", "k1019", "k1024"), MASKS, NULL},
     .rotate = BIT(HEADS) | BIT(MASK),
     QUICK(0, 0, 0)},
    {"many",
     "more batch entries or heads than 16 bits count",
     {LIST("fp32"), LIST("d8"), NULL, LIST("hq65536", "b70000", "b300 hq300 hkv3"), LIST("q2"), LIST("k3"), LIST("causal", ""),
      NULL},
     QUICK(0, 0, 0)},
    {"empty",
     "dimensions of no element",
     {LIST("fp32"), LIST("d64"), NULL, LIST("b2 hq4 hkv2", "b0 hq4", "b2 hq0 hkv0", "hq0 hkv2"), LIST("q0", "q3"),
      LIST("k0", "k5"), LIST("", "causal=bottom-right"), NULL},
     QUICK(1, 10, 1)},
    {"empty-packed",
     "packed tensors of no rows, or sequences of none",
     {LIST("fp32"), LIST("d64"), NULL, LIST("b3 hq4 hkv2", "b1 hq1"), LIST("q1", "q5"), LIST("k1", "k7"),
      LIST("", "causal=bottom-right"), LIST("packed", "packed=int64"),
      LIST("totals=0,0", "totals=0,7", "totals=5,0", "totals=1,1"), LIST("", "sinks")},
     QUICK(1, 10, 1)},
    {"windows",
     "sliding windows at either corner or anywhere, with and without causal",
     {LIST("fp32", "fp16"), LIST("d64"), NULL, SOME_HEADS, LIST("q1", "q17", "q65", "q129", "q257"),
      LIST("k1", "k16", "k65", "k130", "k513"), WINDOWS, NULL},
     .rotate = BIT(HEADS),
     QUICK(1, 16, 1)},
    {"masks",
     "byte masks of every broadcast, rows without keys, and keys that no row sees",
     {LIST("fp32", "fp16"), LIST("d64"), NULL, LIST("b2 hq4 hkv2", "b2 hq8 hkv2", "hq1", "b3 hq5"),
      LIST("q1", "q33", "q129", "q300", "q450"), LIST("k1", "k77", "k130", "k513"), CORNERS, NULL, EXPLICIT_MASKS},
     .rotate = BIT(HEADS) | BIT(MASK),
     QUICK(1, 20, 1)},
    {"biases",
     "additive masks of every type and broadcast, -inf and large negative numbers",
     {LIST("fp32", "fp16"), LIST("d64"), NULL, LIST("b2 hq4 hkv2", "b2 hq8 hkv2", "hq1", "b3 hq5"),
      LIST("q1", "q33", "q129", "q300"), LIST("k1", "k77", "k130", "k513"), CORNERS, NULL, BIASES},
     .rotate = BIT(HEADS) | BIT(MASK),
     QUICK(1, 20, 1)},
    {"scores",
     "ALiBi, softcap, sinks",
     {LIST("fp32", "fp16"), LIST("d64"), NULL, SOME_HEADS, LIST("q1", "q33", "q129"), LIST("k0", "k1", "k77", "k130", "k513"),
      CORNERS, NULL, NULL, SCORES},
     .rotate = BIT(HEADS) | BIT(MASK),
     QUICK(1, 12, 1)},
    {"lengths",
     "real lengths and offsets of each sequence of a batch, senseless ones too",
     {LIST("fp32", "fp16"), LIST("d64"), LIST("", "layout=bshd", "layout=sbhd"), LIST("b7 hq2", "b5 hq4 hkv2"),
      LIST("q1", "q33", "q129"), LIST("k1", "k77", "k300"), CORNERS, NULL, NULL, NULL, SEQUENCES},
     .rotate = BIT(HEADS),
     QUICK(1, 16, 1)},
    {"packed",
     "sequences after each other, empty ones too",
     {LIST("fp32", "fp16"), LIST("d64"), NULL, LIST("b7 hq2", "b5 hq4 hkv2", "b12 hq1"), LIST("q1", "q33", "q129"),
      LIST("k1", "k77", "k300"), CORNERS, NULL, NULL, NULL, PACKED},
     .rotate = BIT(HEADS),
     QUICK(1, 14, 1)},
    {"options",
     "options in any company",
     {LIST("fp16", "fp32", "bf16", "q=fp32 kv=fp16 o=fp32"), LIST("d64", "d40", "d128"), NULL,
      LIST("b2 hq4 hkv2", "b3 hq8 hkv2", "b4 hq2"), LIST("q1", "q7", "q64", "q129", "q320"), LIST("k1", "k33", "k130", "k333"),
      CORNERS, LIST("", "inputs=nan-rows", "inputs=outliers", "inputs=ones"), SOME_OPTIONS, SOME_SCORES, SOME_SEQUENCES},
     .rotate = BIT(HEADS) | BIT(MASK) | BIT(EXTRA) | BIT(HIDE) | BIT(SCORE),
     QUICK(1, 40, 1)},
    {"split",
     "few queries, keys in chunks of any length",
     {LIST("fp32", "fp16"), LIST("d64", "d128"), NULL, LIST("hq32 hkv2", "b2 hq4 hkv2", "b3 hq1"),
      LIST("q1", "q2", "q7", "q16"), LIST("k0", "k1", "k31", "k129", "k300", "k1025", "k5000"), CORNERS,
      LIST("chunk=0", "chunk=-1", "chunk=1", "chunk=64", "chunk=200"), SOME_OPTIONS, SOME_SCORES, SOME_SEQUENCES},
     .rotate = BIT(HEADS) | BIT(MASK) | BIT(HIDE) | BIT(SCORE) | BIT(SEQUENCES),
     QUICK(1, 24, 1)},
    {"slices",
     "long work in several launches: the bits of a single one",
     {LIST("fp32", "fp16"), LIST("d64"), NULL, LIST("b2 hq4 hkv2", "hq8 hkv2"), LIST("q1", "q129", "q300"),
      LIST("k130", "k513"), CORNERS, LIST("slice=0.001", "slice=0.05", "slice=0.001 chunk=64"), SOME_OPTIONS, SOME_SCORES,
      SOME_SEQUENCES},
     .rotate = BIT(MASK) | BIT(HIDE) | BIT(SCORE) | BIT(SEQUENCES),
     QUICK(1, 8, 1)},
    {"limits",
     "emulated small devices",
     {LIST("fp32", "fp16"), LIST("d64", "d128", "d256"),
      LIST("override=local_mem=1K", "override=local_mem=16K", "override=local_mem=32K", "override=max_work_group=1",
           "override=max_work_group=17", "override=max_work_group=64", "override=local_mem=16K,max_work_group=64",
           "override=local_mem=1K,max_work_group=1"),
      SOME_HEADS, LIST("q1", "q33", "q129"), LIST("k1", "k31", "k130"), MASKS, NULL},
     .rotate = BIT(HEADS) | BIT(MASK),
     QUICK(2, 6, 0)},
    {"repeats",
     "the same bits in every run",
     {LIST("fp32", "fp16", "bf16"), LIST("d64", "d128"), NULL, LIST("b2 hq4 hkv2"), LIST("q1", "q129"), LIST("k129", "k513"),
      MASKS, LIST("repeats=5")},
     QUICK(1, 3, 1)},
    {"weights",
     "scores and weights as a second output",
     {LIST("fp32", "fp16"), LIST("d64", "d40"), NULL, SOME_HEADS, LIST("q1", "q33", "q129"), LIST("k0", "k1", "k65", "k513"),
      CORNERS,
      LIST("scores=softmax", "scores=softmax inputs=nan-rows", "scores=raw", "scores=softcap", "scores=bias",
           "scores=bias score-heads=0,1"),
      SOME_OPTIONS, SOME_SCORES, SOME_SEQUENCES},
     .rotate = BIT(HEADS) | BIT(MASK) | BIT(HIDE) | BIT(SCORE) | BIT(SEQUENCES),
     QUICK(1, 20, 1)},
};
const size_t matrix_group_count = sizeof matrix_groups / sizeof *matrix_groups;

const struct matrix_group *matrix_find(const char *name)
{
    for (size_t i = 0; i < matrix_group_count; i++)
        if (strcmp(matrix_groups[i].name, name) == 0)
            return &matrix_groups[i];
    return NULL;
}

static size_t length_of(const struct matrix_group *group, int list)
{
    size_t n = 0;
    while (group->lists[list] && group->lists[list][n])
        n++;
    return n > 0 ? n : 1;
}

static bool is_rotated(const struct matrix_group *group, int list) { return group->rotate >> list & 1u; }

/* Combinations of lists first ... last - 1, without rotated ones. */
static size_t combinations(const struct matrix_group *group, int first, int last)
{
    size_t n = 1;
    for (int list = first; list < last; list++)
        n *= is_rotated(group, list) ? 1 : length_of(group, list);
    return n;
}

static size_t cells_of(const struct matrix_group *group) { return combinations(group, 0, MATRIX_HEADS); }

static size_t trials_of(const struct matrix_group *group) { return combinations(group, MATRIX_HEADS, MATRIX_LISTS); }

static size_t at_most(size_t a, size_t b) { return a < b ? a : b; }

size_t matrix_count(const struct matrix_group *group, bool full)
{
    if (full)
        return cells_of(group) * trials_of(group);
    return at_most(group->quick_cells, cells_of(group)) * group->quick_trials;
}

/* The text of trial number `trial` in cell number `cell`; random choices come from `hash`. */
static void compose(const struct matrix_group *group, size_t cell, size_t trial, uint64_t hash, char *text, size_t size)
{
    size_t used = 0;
    uint64_t state = hash;
    for (int list = 0; list < MATRIX_LISTS; list++) {
        const size_t n = length_of(group, list);
        size_t *const number = list < MATRIX_HEADS ? &cell : &trial;
        const uint64_t draw = random_next(&state);
        const size_t at = is_rotated(group, list) ? (size_t)(draw % n) : *number % n;
        if (!is_rotated(group, list))
            *number /= n;
        if (group->lists[list] && group->lists[list][at][0])
            used += (size_t)snprintf(text + used, size - used, "%s ", group->lists[list][at]);
    }
    /* Three of four trials ask for the LSE. */
    snprintf(text + used, size - used, "%sseed=%" PRIu64, random_next(&state) % 4 ? "lse " : "", random_next(&state) % 100000);
}

/* The quick sample skips trials that take a CPU more than about a tenth of a second. */
static bool is_quick(const char *text)
{
    struct trial t;
    if (trial_parse(text, &t, NULL) != CLATTN_SUCCESS)
        return true; /* running it will report what is wrong */
    return trial_work(&t) < 3e7;
}

static void compose_quick(const struct matrix_group *group, size_t cell, uint64_t *state, char *text, size_t size)
{
    for (int attempt = 0; attempt < 20; attempt++) {
        const size_t trial = (size_t)random_below(state, trials_of(group));
        compose(group, cell, trial, random_next(state), text, size);
        if (is_quick(text))
            return;
    }
}

static void walk_quick(const struct matrix_group *group, uint64_t seed, matrix_visitor visit, void *user)
{
    const size_t pool = group->quick_pool > 0 ? group->quick_pool : cells_of(group);
    const size_t cells = at_most(pool, cells_of(group)), wanted = at_most(group->quick_cells, cells);
    size_t *order = malloc(cells * sizeof *order);
    uint64_t state = random_mix(seed) ^ random_mix((uint64_t)(group - matrix_groups) + 1);
    char text[512];
    for (size_t i = 0; order && i < cells; i++)
        order[i] = i;
    for (size_t i = 0; order && i < wanted; i++) {
        const size_t other = i + (size_t)random_below(&state, cells - i), cell = order[other];
        order[other] = order[i];
        for (unsigned n = 0; n < group->quick_trials; n++) {
            compose_quick(group, cell, &state, text, sizeof text);
            if (!visit(user, group, text)) {
                free(order);
                return;
            }
        }
    }
    free(order);
}

static void walk_full(const struct matrix_group *group, uint64_t seed, matrix_visitor visit, void *user)
{
    const uint64_t base = random_mix(seed) ^ random_mix((uint64_t)(group - matrix_groups) + 1);
    char text[512];
    for (size_t cell = 0; cell < cells_of(group); cell++) {
        for (size_t trial = 0; trial < trials_of(group); trial++) {
            compose(group, cell, trial, random_mix(base + cell * trials_of(group) + trial), text, sizeof text);
            if (!visit(user, group, text))
                return;
        }
    }
}

void matrix_walk(const struct matrix_group *group, bool full, uint64_t seed, matrix_visitor visit, void *user)
{
    if (full)
        walk_full(group, seed, visit, user);
    else
        walk_quick(group, seed, visit, user);
}
