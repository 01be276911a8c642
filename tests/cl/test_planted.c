/* SPDX-License-Identifier: Apache-2.0
 * Bugs that attention kernels had before, planted one by one in a copy of the kernel files. Each compiles, runs and gives
 * numbers; the tests' own verdict must notice every one, and must be content with the unaltered copy. */
#define _POSIX_C_SOURCE 200809L
#include "plants.h"

/* Several key blocks with a maximum that rises from one to the next, more keys than queries, head_dim_v other than head_dim_qk.
 */
#define RISING "hq2 hkv1 q9 k70 d8 dv12 lse"
/* The same for tiles of few rows and of many. */
#define FEW_ROWS "hq2 hkv1 q9 k300 d8 dv12 lse"
#define MANY_ROWS "hq2 hkv1 q40 k300 d8 dv12 lse"
#define CAUSAL "hq2 hkv1 q9 k70 d8 dv12 lse causal=bottom-right"
/* The first rows of a tile see no key, its other rows do. */
#define PARTLY_EMPTY "hq1 hkv1 q50 k20 d8 dv12 lse causal=bottom-right"
/* head_dim = keys = a whole block: a transposed tile stays inside the buffer. */
#define SQUARE "q9 k16 d16 dv12 lse"
#define SQUARE_ROWS "q40 k16 d16 dv12 lse"
/* More queries than keys and the reverse, without a diagonal. */
#define TALL "q70 k9 d8 dv12 lse"

/* Options: lengths of 0 and past the end, starts that are not 0, a mask and a bias that differ from row to row, few queries. */
#define OPTIONS "hq2 hkv1 q9 k70 d8 dv12 lse seed=7 "
#define LENGTHS "b8 hq1 hkv1 q9 k70 d8 dv12 lse q-lengths kv-lengths causal=bottom-right"
#define PACKED "b4 hq2 hkv1 q9 k70 d8 dv12 lse packed"
#define SPLIT "hq2 hkv1 q3 k700 d8 dv12 lse sinks chunk=64"
/* Few rows that share keys, and a head that is no whole number of vectors. */
#define DECODES "hq4 hkv1 q1 k300 d20 dv12 lse"
/* Pairs of bf16, for the engines that multiply them. */
#define BF16_ROWS "hq2 hkv1 q40 k300 d64 dv48 bf16 lse"
#define SHARED_MASK "b2 hq4 hkv4 q130 k300 d8 dv12 lse mask=qk seed=5"

#define SOFTMAX "cl/softmax.cl"
#define EPILOGUE "cl/epilogue.cl"
#define MERGE "cl/split/merge.cl"
#define CLASSIFY "cl/classify.cl"
#define SCORE "cl/score.cl"
#define TILE "cl/tile.cl"
#define REFERENCE "cl/engines/reference/reference.cl"
#define SIMT "cl/engines/simt/simt.cl"
#define SIMT_FEW "cl/engines/simt/simt_few.cl"
#define CPU "cl/engines/cpu/cpu.cl"
#define DECODE "cl/engines/cpu/cpu_decode.cl"
#define PAIRED "cl/engines/cpu/cpu_bf16.cl"
#define AMX "cl/engines/cpu/cpu_amx.cl"
#define AMX_LOAD "cl/engines/cpu/cpu_amx_load.cl"
#define WEIGHTS "cl/engines/cpu/cpu_pairs.cl"
#define UNFUSED "cl/engines/unfused/unfused_kernels.cl"

#define ALPHA "alpha[r] = RESCALE(e, m[r], base);"
#define SUM "l[r] = MULTIPLY_ADD(l[r], alpha[r], sum);"
#define SEEN "((index)(key) >= first) & ((index)(key) <= last)"

static const struct plant plants[] = {
    {"rescale deleted", "reference", RISING, {{SOFTMAX, ALPHA, "alpha[r] = (elem)(1.0f);"}}},
    {"rescale deleted", "simt", MANY_ROWS, {{SOFTMAX, ALPHA, "alpha[r] = (elem)(1.0f);"}}},
    {"rescale of the output alone deleted", "reference", RISING, {{REFERENCE, "e->o[d] *= alpha[0];", ";"}}},
    {"rescale of the output alone deleted", "simt", MANY_ROWS, {{SIMT, "e->o[r][c] *= alpha[r];", ";"}}},
    {"rescale of the output alone deleted", "simt", FEW_ROWS, {{SIMT_FEW, "e->sum[r][i] *= factor;", ";"}}},
    {"rescale inverted", "reference", RISING, {{SOFTMAX, ALPHA, "alpha[r] = m[r] == -INFINITY ? 0.0f : EXP2(base - m[r]);"}}},
    {"rescale missing on the row sum", "reference", RISING, {{SOFTMAX, SUM, "l[r] += sum;"}}},
    {"base two mixed with base e", "reference", RISING, {{SOFTMAX, ALPHA, "alpha[r] = EXP2(m[r] - base);"}}},
    {"base e mixed with base two", "simt", MANY_ROWS, {{SOFTMAX, ALPHA, "alpha[r] = exp(m[r] - base);"}}},
    {"probabilities in base two",
     "reference",
     RISING,
     {{SOFTMAX, "POWER(e, S_GET(e, r, c), base)", "EXP2(S_GET(e, r, c) - base)"}}},
    {"maximum not updated", "reference", RISING, {{SOFTMAX, "m[r] = now;", ";"}}},
    {"maximum of the block alone", "reference", RISING, {{SOFTMAX, "m[r] = now;", "m[r] = largest[r];"}}},
    {"LSE in base two", "reference", RISING, {{"cl/epilogue.cl", "(top) + log2(sum) * (elem)(LN_2)", "(top) + log2(sum)"}}},
    {"mask column against row", "reference", CAUSAL, {{SCORE, "key0 + ENGINE_S_COL(e, c)", "key0 + ENGINE_ROW(e, r)"}}},
    {"mask column against row", "simt", CAUSAL, {{SCORE, "key0 + ENGINE_S_COL(e, c)", "key0 + ENGINE_ROW(e, r)"}}},
    {"| for &", "reference", CAUSAL, {{SCORE, SEEN, "((index)(key) >= first) | ((index)(key) <= last)"}}},
    {"| for &", "simt", CAUSAL, {{SCORE, SEEN, "((index)(key) >= first) | ((index)(key) <= last)"}}},
    {"diagonal off by one", "reference", CAUSAL, {{TILE, "saturate(offset + a->right)", "saturate(offset + a->right - 1)"}}},
    {"finite sentinel in a masked tile",
     "simt",
     PARTLY_EMPTY,
     {{SCORE, "clamp_score(s), (elem)(-INFINITY)", "clamp_score(s), (elem)(-1e6f)"}}},
    {"no guard for a row that saw nothing",
     "simt",
     PARTLY_EMPTY,
     {{SOFTMAX, "PICK(largest == (elem)(-INFINITY), (elem)(0.0f), largest)", "largest"}}},
    {"-inf in padded K in place of the mask",
     "reference",
     RISING,
     {{TILE, "min((i) + (t)->diagonal_high, (t)->kv_length - 1)", "((i) + (t)->diagonal_high)"},
      {REFERENCE, "if (key0 + c < t->key_end) {", "{ const int inside = key0 + c < t->key_end;"},
      {REFERENCE, "LOAD_K(e->k, row + d * e->k_dim)", "(inside ? LOAD_K(e->k, row + d * e->k_dim) : -INFINITY)"}}},
    {"no mask past the last key",
     "reference",
     RISING,
     {{TILE, "min((i) + (t)->diagonal_high, (t)->kv_length - 1)", "((i) + (t)->diagonal_high)"}}},
    {"K tile transposed",
     "reference",
     SQUARE,
     {{REFERENCE, "e->k_row0 + (key0 + c) * e->k_seq", "e->k_row0 + (key0 + c) * e->k_dim"},
      {REFERENCE, "row + d * e->k_dim", "row + d * e->k_seq"}}},
    {"K tile transposed",
     "simt",
     SQUARE_ROWS,
     {{SIMT, "matrix_set(&e->v, v,",
       "e->k.row_step = a->k.dim, e->k.col_step = a->k.seq, e->k.aligned = 0;\n    matrix_set(&e->v, v,"}}},
    {"K piece transposed",
     "simt",
     SQUARE,
     {{SIMT_FEW, "matrix_set(&e->v, v,",
       "e->k.row_step = a->k.dim, e->k.col_step = a->k.seq, e->k.aligned = 0;\n    matrix_set(&e->v, v,"}}},
    {"K stride for V's", "reference", RISING, {{REFERENCE, "e->v_seq = a->v.seq;", "e->v_seq = a->k.seq;"}}},
    {"seq_q for the keys", "reference", RISING, {{TILE, "t->kv_length = a->seq_kv;", "t->kv_length = a->seq_q;"}}},
    {"seq_q for the keys", "simt", RISING, {{TILE, "t->kv_length = a->seq_kv;", "t->kv_length = a->seq_q;"}}},
    {"seq_kv for the queries", "reference", TALL, {{TILE, "t->q_length = a->seq_q;", "t->q_length = a->seq_kv;"}}},
    {"heads tiled, not repeated",
     "reference",
     "hq4 hkv2 q9 k20 d8 dv12",
     {{TILE, "t->head0 / a->group", "t->head0 % a->heads_kv"}}},
    {"scale applied twice", "reference", RISING, {{REFERENCE, "sum * factor", "sum * factor * factor"}}},
    {"flat offset against row length",
     "unfused",
     RISING,
     {{UNFUSED, "if (row < b.rows && key < args.seq_kv) {",
       "if (row < b.rows && (b.row0 + row) * args.seq_kv + key < args.seq_kv) {"}}},
    {"seq_q for the row length of the matrix",
     "unfused",
     RISING,
     {{UNFUSED, "b->row0 + row) * a->seq_kv;", "b->row0 + row) * a->seq_q;"}}},
    {"softmax without the maximum",
     "unfused",
     "hq2 hkv1 q9 k70 d8 dv12 lse inputs=large",
     {{UNFUSED, "const float base = m == -INFINITY ? 0.0f : m;", "const float base = 0.0f;"}}},
    {"window a key too short", "reference", OPTIONS "window=5,3", {{TILE, "offset - a->left)", "offset - a->left + 1)"}}},
    {"window clamped to the keys before the offset is added",
     "reference",
     OPTIONS "causal=40 window=90,0",
     {{TILE, "offset - a->left)", "offset - min(a->left, (long)a->seq_q))"}}},
    {"offset of the other sign", "reference", OPTIONS "causal=5", {{TILE, "offset = a->offset;", "offset = -a->offset;"}}},
    {"one offset for all", "reference", "b3 q9 k70 d8 causal offsets", {{TILE, "a->offsets + batch)", "a->offsets)"}}},
    {"mask of the key/value head",
     "reference",
     OPTIONS "mask=hqk",
     {{SCORE, "head * a->mask.head", "t->kv_head * a->mask.head"}}},
    {"one row of the mask for all", "reference", OPTIONS "mask=qk", {{SCORE, " + query * a->mask.seq;", ";"}}},
    {"mask upside down", "reference", OPTIONS "mask=qk", {{SCORE, "a->mask.dim] != 0)", "a->mask.dim] == 0)"}}},
    {"bias in another unit", "reference", OPTIONS "bias=qk", {{SCORE, "* SCORE_UNIT : SCORE_UNIT;", "* SCORE_UNIT : LOG2_E;"}}},
    {"one factor for all", "reference", OPTIONS "bias=qk bias-factors", {{SCORE, "a->factors + head]", "a->factors]"}}},
    {"-inf times a factor of 0",
     "reference",
     OPTIONS "bias=qk bias-factors seed=4",
     {{SCORE, "*seen &= (index)((bias != (elem)(-INFINITY)) != 0);", ";"}}},
    {"ALiBi of the other sign", "reference", OPTIONS "alibi", {{SCORE, "s = s - o->slope", "s = s + o->slope"}}},
    {"ALiBi without the offset",
     "reference",
     OPTIONS "alibi corner=bottom-right",
     {{SCORE, "query + t->offset - key", "query - key"}}},
    {"slope of the first of packed heads",
     "simt",
     "hq4 hkv1 q2 k70 d8 dv12 lse alibi",
     {{SCORE, "head * a->slopes.head", "t->head0 * a->slopes.head"}}},
    {"softcap after the bias",
     "reference",
     OPTIONS "softcap=2 bias=qk",
     {{SCORE, "s = TANH(s) * (elem)(a->softcap * SCORE_UNIT);", ";"},
      {SCORE, "s = s + clamp_score(bias * o->factor);", "s = TANH(s + bias / a->softcap) * (elem)(a->softcap * SCORE_UNIT);"}}},
    {"sink in the maximum alone",
     "reference",
     OPTIONS "sinks",
     {{EPILOGUE, "*l * lesser + (elem)(1.0f), *l + lesser", "*l * lesser, *l"}}},
    {"sink without a rescale",
     "reference",
     "b2 hq8 q9 k70 d8 dv12 lse sinks inputs=equal",
     {{EPILOGUE, "PICK(wins, lesser, (elem)(1.0f))", "(elem)(1.0f)"}}},
    {"no sequence is empty", "reference", LENGTHS, {{TILE, "(long)0, (long)t->kv_length)", "(long)1, (long)t->kv_length)"}}},
    {"corner from the capacity", "reference", LENGTHS, {{TILE, "offset = t->kv_length - ", "offset = a->seq_kv - "}}},
    {"keys of the first packed sequence", "reference", PACKED, {{TILE, " + t->kv_start * v.seq;", ";"}}},
    {"packed sequences end where the longest would",
     "reference",
     PACKED,
     {{TILE, "(int)clamp(kv_end - t->kv_start, (long)0, (long)a->seq_kv)",
       "(int)min((long)a->seq_kv, a->total_kv - t->kv_start)"}}},
    {"chunks weigh the same", "reference", SPLIT, {{MERGE, ": MERGE_EXP2(IN_BASE_TWO(x[i] - base))", ": 1.0f"}}},
    {"chunks weighed in base two", "reference", SPLIT, {{MERGE, "IN_BASE_TWO(x[i] - base)", "x[i] - base"}}},
    {"the last chunk forgotten",
     "reference",
     SPLIT,
     {{MERGE, "first_chunk + i >= a->chunks;", "first_chunk + i >= a->chunks - 1;"}}},
    {"merged LSE in base two", "reference", SPLIT, {{MERGE, "top + log2(sum) * LN_2", "top + log2(sum)"}}},
    {"sink in each chunk",
     "reference",
     SPLIT,
     {{EPILOGUE, "store_partial_row(e, t, a, r, workspace, BASE_TWO(e, m[r]), l[r]);",
       "store_partial_row(e, t, a, r, workspace, BASE_TWO(e, m[r]), l[r] + EXP_DIFFERENCE(row_sink(t, a, b, 0) - m[r]));"}}},
    {"sums of chunks forgotten", "reference", SPLIT, {{MERGE, "empty ? 0.0f : l[i]", "empty ? 0.0f : 1.0f"}}},
    {"masked keys in no class", "cpu", SHARED_MASK, {{CLASSIFY, "seen |= kept ? 0 : CLASS_MASKED;", ";"}}},
    {"16 bytes hold no hole", "cpu", SHARED_MASK, {{CLASSIFY, "~x & 0x80808080u;", "~x & 0u;"}}},
    {"16 bytes hold no key", "cpu", SHARED_MASK, {{CLASSIFY, "some |= x;", "some |= i ? 0u : x;"}}},
    {"classes from the first row alone",
     "cpu",
     SHARED_MASK,
     {{CLASSIFY, "seen |= kept ? CLASS_SEEN : 0;", "seen |= kept && row == row0 ? CLASS_SEEN : 0;"}}},
    {"rescale of the output alone deleted",
     "cpu",
     MANY_ROWS,
     {{CPU, "e->o[(d + i) * VECTORS + j] * alpha[j];", "e->o[(d + i) * VECTORS + j];"}}},
    {"scores of one key in all registers",
     "cpu",
     MANY_ROWS,
     {{CPU, "const elem z = (elem)(x[i][at]);", "const elem z = (elem)(x[0][at]);"}}},
    {"a maximum that no score has",
     "cpu",
     MANY_ROWS,
     {{CPU, "e->largest[j] = largest[j];", "e->largest[j] = largest[j] + (elem)(300.0f);"}}},
    {"the first key left out",
     "cpu",
     MANY_ROWS,
     {{CPU, "cpu_add_values(e, key0, max(t->key_begin - key0, 0), e->columns, alpha);",
       "cpu_add_values(e, key0, 1, e->columns, alpha);"}}},
    {"rescale of the output alone deleted",
     "cpu_decode",
     DECODES,
     {{DECODE, "e->o[r * O_VECTORS + n + i] * ((const float *)alpha)[r];", "e->o[r * O_VECTORS + n + i];"}}},
    {"neighbouring lanes of one vector alone",
     "cpu_decode",
     DECODES,
     {{DECODE, "(wide)(x[2 * i].odd, x[2 * i + 1].odd);", "(wide)(x[2 * i].odd, x[2 * i].odd);"}}},
    {"the head's last lanes counted twice",
     "cpu_decode",
     DECODES,
     {{DECODE, "LANES, WIDTH - HEAD_DIM % WIDTH);", "LANES, 0);"}}},
    {"the last row of K for those after it",
     "cpu_decode",
     DECODES,
     {{DECODE, "(key0 + min(c + i, e->columns - 1)) * e->k_seq;", "(key0 + min(c + i, e->columns - 2)) * e->k_seq;"}}},
    {"V one row too far",
     "cpu_decode",
     DECODES,
     {{DECODE, "at[i] = e->v_row0 + (key0 + begin) * e->v_seq +",
       "at[i] = e->v_row0 + (key0 + begin + (key0 > 0)) * e->v_seq +"}}},
    {"rescale of the output alone deleted",
     "cpu_bf16",
     BF16_ROWS,
     {{PAIRED, "e->o[O_AT(c + i, j)] * alpha[j];", "e->o[O_AT(c + i, j)];"}}},
    {"half of the head's pairs", "cpu_bf16", BF16_ROWS, {{PAIRED, "d < HEAD_DIM / 2; d++", "d < HEAD_DIM / 4; d++"}}},
    {"keys of a pair swapped",
     "cpu_bf16",
     BF16_ROWS,
     {{PAIRED, "pair_of_values(vload16(0, row + d), vload16(0, row + e->v_seq + d))",
       "pair_of_values(vload16(0, row + e->v_seq + d), vload16(0, row + d))"}}},
    {"the last pair left out",
     "cpu_bf16",
     BF16_ROWS,
     {{PAIRED, "const int pairs = (e->columns + 1) / 2;", "const int pairs = (e->columns - 1) / 2;"}}},
    {"weights cut, not rounded",
     "cpu_bf16",
     BF16_ROWS,
     {{WEIGHTS, "((as_uint16(s[c + 1]) + 0x8000u) & 0xffff0000u)", "((as_uint16(s[c + 1]) - 0x70000u) & 0xffff0000u)"}}},
    {"rescale of the output alone deleted", "cpu_amx", BF16_ROWS, {{AMX, "e->o[r * O_WIDTH + i] *= factor;", ";"}}},
    {"scores of the second vector of rows in the first",
     "cpu_amx",
     BF16_ROWS,
     {{AMX, "TILE_LOAD(\"tmm7\", (size_t)(e->q + (r + 1) * Q_PAIRS + d), 64L);",
       "TILE_LOAD(\"tmm7\", (size_t)(e->q + r * Q_PAIRS + d), 64L);"}}},
    {"columns of O 16 apart swapped",
     "cpu_amx",
     BF16_ROWS,
     {{AMX, "TILE_LOAD(\"tmm5\", (size_t)(e->v + b * O_WIDTH + c + 16), 64L);",
       "TILE_LOAD(\"tmm5\", (size_t)(e->v + b * O_WIDTH + c), 64L);"}}},
    {"the last 32 keys left out",
     "cpu_amx",
     BF16_ROWS,
     {{AMX, "const int blocks = (e->columns + 31) / 32;", "const int blocks = (e->columns - 1) / 32;"}}},
    {"V transposed once", "cpu_amx", BF16_ROWS, {{AMX_LOAD, "pass < 2; pass++", "pass < 1; pass++"}}},
    {"sink missing among the weights",
     "unfused",
     OPTIONS "sinks scores=softmax",
     {{UNFUSED, " + (a->has_sinks ? sink == base ? 1.0f : exp(sink - base) : 0.0f)", ""}}},
    {"mask column against row", "unfused", CAUSAL, {{UNFUSED, "(index)(query + b->high)", "(index)(key + b->high)"}}},
};

static void unaltered_copies_pass(void **state)
{
    (void)state;
    plants_pass_unaltered(plants, COUNT_OF(plants), 15);
}

/* The variable is heeded: a text that cannot compile makes the build fail, naming file and line. */
static void builds_read_the_copied_sources(void **state)
{
    (void)state;
    const struct plant plant = {.name = "syntax error", .engine = "reference", .shape = RISING};
    const struct edit edit = {SOFTMAX, "m[r] = now;", "m[r] = now now;"};
    struct trial_result result;
    plant_run(&plant, &edit, 1, &result);
    assert_int_equal(result.status, CLATTN_BUILD_FAILED);
    assert_contains(result.message, SOFTMAX);
}

static void every_planted_bug_is_noticed(void **state)
{
    (void)state;
    plants_are_noticed(plants, COUNT_OF(plants));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unaltered_copies_pass),
        cmocka_unit_test(builds_read_the_copied_sources),
        cmocka_unit_test(every_planted_bug_is_noticed),
    };
    return cmocka_run_group_tests(tests, bench_open, bench_close);
}
