/* SPDX-License-Identifier: Apache-2.0
 * The factor of the scores in NVIDIA's engines: it is applied late, in the exponent. Included by cl/engines/nvidia/nv_rows.cl.
 * tests/unit/test_softmax.c compiles it for the host.
 */
/* S stays as the product left it, and the factor goes into the exponent, which saves one multiplication a score. Not with a
 * factor that is 0 or negative (the maximum would differ) or above 1 (the largest float times the factor would be infinite).
 * With options, the scores are in base two before softmax. */
#ifndef NV_MAY_BE_LATE
#define NV_MAY_BE_LATE(e) (!SCORE_OPTIONS)
#endif
#if !SCORE_OPTIONS || defined(NV_LATE_OPTIONS)
#define ENGINE_POWER(e, x, y) EXP2(MULTIPLY_ADD(x, (e)->late, -((y) * (e)->late)))
#define ENGINE_BASE_TWO(e, x) ptx_product(x, (e)->late)
/* The product of x and the factor is exact in POWER, and that of y is rounded. Below this limit the error is under 2^-8 and the
 * same for all weights of a row. From the limit on, cl/softmax.cl takes the difference first: weights would overflow or
 * vanish. */
#define ENGINE_IS_LARGE(y) (fabs(y) >= 65536.0f)
#endif
FN int factor_is_late(engine *e, float factor)
{
    const int late = NV_MAY_BE_LATE(e) && factor > 1e-30f && factor <= 1.0f;
    e->late = late ? factor : 1.0f;
    return late;
}
FN void scale_scores(engine *e, float factor)
{
    if (!factor_is_late(e, factor)) {
        FOR_ROWS(r)
        {
            FOR_S_COLS(c) { S_SET(e, r, c, S_GET(e, r, c) * factor); }
        }
    }
}
