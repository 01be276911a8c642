/* SPDX-License-Identifier: Apache-2.0
 * Bugs planted in the engines for NVIDIA's GPUs and in the algorithm files that only they use: softmax_open, score_pairs,
 * last_chunk. */
#include "plants.h"

#define ATTENTION "cl/engines/nvidia/wgmma/nv_wgmma_attention.cl"
#define WGMMA "cl/engines/nvidia/wgmma/nv_wgmma.cl"
#define MMA "cl/engines/nvidia/mma/nv_mma.cl"
#define PRODUCTS "cl/engines/nvidia/mma/nv_mma_products.cl"
#define FEW "cl/engines/nvidia/mma/nv_mma_few.cl"
#define TF32 "cl/engines/nvidia/mma/nv_tf32x3.cl"
#define OPEN "cl/softmax_open.cl"
#define PAIRS "cl/score_pairs.cl"
#define LAST "cl/split/last_chunk.cl"

#define ROWS "hq2 hkv2 q300 k700 d64 lse "
/* More tiles than the chip has compute units: groups take several. */
#define MANY_TILES "hq16 hkv16 q2100 k300 d64 lse "
#define FEW_ROWS "hq8 hkv1 q1 k3000 d64 lse "

#define S_COLUMN "#define ENGINE_S_COL(e, c) ((e)->col + (c) / 2 * 8 + (c) % 2)"

static const struct plant plants[] = {
    {"rescale of the output deleted", "nv_wgmma", ROWS "fp16", {{ATTENTION, "O_GET(e, r, c) *= alpha[r];", ";"}}},
    {"the head's last 16 columns left out", "nv_wgmma", ROWS "fp16", {{WGMMA, "d < DIM / 16; d++", "d < DIM / 16 - 1; d++"}}},
    {"weights of neighbouring keys swapped",
     "nv_wgmma",
     ROWS "bf16",
     {{WGMMA, "ptx_pack(e->s[2 * i], e->s[2 * i + 1])", "ptx_pack(e->s[2 * i + 1], e->s[2 * i])"}}},
    {"columns of the scores mirrored in pairs",
     "nv_wgmma",
     ROWS "fp16 causal",
     {{WGMMA, S_COLUMN, "#define ENGINE_S_COL(e, c) ((e)->col + (c) / 2 * 8 + 1 - (c) % 2)"}}},
    {"rows eight apart swapped", "nv_wgmma", ROWS "fp16", {{WGMMA, "+ (r)*8)", "+ (1 - (r)) * 8)"}}},
    {"V past the last key not cleared",
     "nv_wgmma",
     "b3 hq2 hkv2 q300 k700 d64 lse fp16 kv-lengths",
     {{ATTENTION, "clear_unseen(e, keys, key0, SLOT(block));", ";"}}},
    {"a tile's output begins with that of the tile before",
     "nv_wgmma",
     MANY_TILES "fp16",
     {{ATTENTION, "wgmma_pv(e, SLOT(last), !first);", "wgmma_pv(e, SLOT(last), 1);"}}},

    {"rescale of the output deleted", "nv_mma", ROWS "fp16 causal", {{PRODUCTS, "O_GET(e, r, c) *= alpha[r];", ";"}}},
    {"halves of an operand of K swapped",
     "nv_mma",
     ROWS "fp16",
     {{PRODUCTS, "ptx_mma(e->s[m][j + 1], a[m], b[2], b[3]);", "ptx_mma(e->s[m][j + 1], a[m], b[3], b[2]);"}}},
    {"weights of neighbouring keys swapped",
     "nv_mma",
     ROWS "bf16",
     {{PRODUCTS, "ptx_pack(e->s[m][2 * n + i / 2][i % 2 * 2], e->s[m][2 * n + i / 2][i % 2 * 2 + 1])",
       "ptx_pack(e->s[m][2 * n + i / 2][i % 2 * 2 + 1], e->s[m][2 * n + i / 2][i % 2 * 2])"}}},
    {"rows of another warp", "nv_mma", ROWS "fp16", {{MMA, "e->row = row0 + item / 4;", "e->row = (row0 ^ 16) + item / 4;"}}},
    {"warps weigh the same",
     "nv_mma",
     FEW_ROWS "fp16",
     {{FEW, "weight[w] = PART_WEIGHT(e, ml[w * PART_SIZE], base);", "weight[w] = 1.0f;"}}},

    {"row sum not rescaled", "nv_mma", ROWS "fp16", {{OPEN, "l[r] *= alpha[r];", ";"}}},
    {"output not rescaled", "nv_mma", ROWS "fp16", {{OPEN, "O_SET(e, r, c, O_GET(e, r, c) * alpha[r]);", ";"}}},
    {"reference not moved", "nv_mma", ROWS "fp16", {{OPEN, "m[r] = largest[r];", ";"}}},
    {"row sum of the last block alone", "nv_mma", ROWS "fp16", {{OPEN, "l[r] += sum[r];", "l[r] = sum[r];"}}},
    {"slack past the range of weights",
     "nv_mma",
     ROWS "fp16 inputs=steep",
     {{OPEN, "(elem)(ENGINE_SLACK(e))", "(elem)(1e6f)"}}},

    {"bias of the key before",
     "nv_mma",
     ROWS "fp16 bias=qk",
     {{PAIRS, "S_SET(e, r, c + 1, MULTIPLY_ADD(x[1], factor,", "S_SET(e, r, c + 1, MULTIPLY_ADD(x[0], factor,"},
      {PAIRS, "clamp_score(x[i] * factor)", "clamp_score(x[0] * factor)"}}},
    {"masked keys keep their scores",
     "nv_mma",
     ROWS "fp16 mask=qk",
     {{PAIRS, "ENGINE_SEEN(e, r) >> c & 1u ? S_GET(e, r, c) : -INFINITY", "S_GET(e, r, c)"}}},
    {"ALiBi with a sign",
     "nv_mma",
     ROWS "fp16 alibi",
     {{PAIRS, "fabs(distance - (float)COLUMN(e, c))", "(distance - (float)COLUMN(e, c))"}}},
    {"softcap in base e", "nv_mma", ROWS "fp16 softcap=2", {{PAIRS, "(elem)(a->softcap * SCORE_UNIT)", "(elem)(a->softcap)"}}},
    {"a bias of -inf masks nothing",
     "nv_wgmma",
     ROWS "fp16 bias=qk seed=4",
     {{"cl/engines/nvidia/wgmma/nv_wgmma_options.cl", "x[0] == -INFINITY ? 0u", "x[0] == -INFINITY ? 1u"}}},

    {"no group is the last", "nv_mma", FEW_ROWS "fp16", {{LAST, "return GROUP_ALL(seen);", "return 0;"}}},
    {"half of the call's number",
     "nv_mma",
     FEW_ROWS "fp16",
     {{LAST, "(uint)(a->call_number >> (i % 2 * 32))", "(uint)(a->call_number >> 32)"}}},
    {"one flag for all chunks", "nv_mma", FEW_ROWS "fp16", {{LAST, "flag_write(flags + 2 * t->chunk,", "flag_write(flags,"}}},
    {"flags of tiles overlap", "nv_mma", "hq16 hkv2 q1 k3000 d64 lse fp16", {{LAST, "+ 2 * place;", "+ place;"}}},
    {"flags where the partial results are",
     "nv_mma",
     FEW_ROWS "fp16",
     {{LAST, "(workspace + a->workspace + ", "(workspace + a->workspace + 0 * "}}},

    {"a product of three left out", "nv_tf32x3", ROWS, {{TF32, "multiply(p.small, a, 0, &b, 1);", ";"}}},
    {"the small products of the scores left out",
     "nv_tf32x3",
     ROWS,
     {{TF32, "e->s[m][j + i / 4][i % 4] += p.small[m][i / 4][i % 4];", ";"}}},
    {"rests of the right operand rounded away", "nv_tf32x3", ROWS, {{TF32, "rest_of_b ? b->rest : b->big", "b->big"}}},
    {"the rescaling of a neighbouring row",
     "nv_tf32x3",
     ROWS,
     {{TF32, "alpha[2 * m + i % 4 / 2]", "alpha[2 * m + 1 - i % 4 / 2]"}}},
    {"keys of V in the order of memory",
     "nv_tf32x3",
     ROWS,
     {{TF32, "#define VALUES_AT(item) ((uint)((item) % 4 * 2 * V_STRIDE",
       "#define VALUES_AT(item) ((uint)((item) % 4 * V_STRIDE"}}},
};

static void unaltered_gpu_kernels_pass(void **state)
{
    (void)state;
    plants_pass_unaltered(plants, COUNT_OF(plants), 0);
}

static void every_bug_planted_in_gpu_kernels_is_noticed(void **state)
{
    (void)state;
    plants_are_noticed(plants, COUNT_OF(plants));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unaltered_gpu_kernels_pass),
        cmocka_unit_test(every_bug_planted_in_gpu_kernels_is_noticed),
    };
    return cmocka_run_group_tests(tests, bench_open, bench_close);
}
