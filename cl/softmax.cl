/* SPDX-License-Identifier: Apache-2.0
 * One step of the online softmax (FlashAttention-2, arXiv:2307.08691, Algorithm 1, with the factor exp(m_old - m_new) where the
 * paper prints its inverse), in base two. Turns the tile's scores into weights and hands back the factor for what was summed
 * before; the engine applies that to O when it likes. `l` is summed over this work-item's columns only and folded over the row
 * at the end.
 */

/* 2^(x - y) of two scores. An engine that leaves S without its factor brings that in here. */
#ifdef ENGINE_POWER
#define POWER(e, x, y) ENGINE_POWER(e, x, y)
#else
#define POWER(e, x, y) EXP_DIFFERENCE((x) - (y))
#endif
/* A score with all its factors, as the epilogue wants it. */
#ifdef ENGINE_BASE_TWO
#define BASE_TWO(e, x) ENGINE_BASE_TWO(e, x)
#else
#define BASE_TWO(e, x) (x)
#endif

/* The factor for what was weighed against maximum x, once it counts from y: from the same rounded numbers as the weights, and 1
 * where both are the same. A multiply-add would leave the rounding of one product in it, and that again in every block. */
#define RESCALE(e, x, y) EXP_DIFFERENCE(BASE_TWO(e, x) - BASE_TWO(e, y))

#ifdef ENGINE_IS_LARGE
/* Rows with a large reference: it is subtracted from what counts from it, scores and the maximum so far, before the factor
 * comes in, and is 0 from then on. */
FN void subtract_large(engine *e, elem *m, elem *reference)
{
    FOR_ROWS(r)
    {
        const elem y = ENGINE_IS_LARGE(reference[r]) ? reference[r] : (elem)(0.0f);
        FOR_S_COLS(c) { S_SET(e, r, c, S_GET(e, r, c) - y); }
        m[r] -= y;
        reference[r] -= y;
    }
}
#endif

/* The scores of elem r clamped, of a masked tile from above only; the largest. */
FN elem clamp_row(engine *e, int r, int masked)
{
    elem x = (elem)(-INFINITY);
    FOR_S_COLS(c) { S_SET(e, r, c, clamp_score_above(S_GET(e, r, c))); }
#ifdef ENGINE_SEEN
    FOR_S_COLS(c) { S_SET(e, r, c, ENGINE_SEEN(e, r) >> c & 1u ? clamp_score_below(S_GET(e, r, c)) : S_GET(e, r, c)); }
#else
    if (!masked) {
        FOR_S_COLS(c) { S_SET(e, r, c, clamp_score_below(S_GET(e, r, c))); }
    }
#endif
    FOR_S_COLS(c) { x = LARGER(x, S_GET(e, r, c)); }
    return x;
}

/* The largest of this work-item's scores of elem r. */
FN elem row_maximum(engine *e, int r, int masked)
{
    elem x = (elem)(-INFINITY);
#ifdef ENGINE_ROW_MAX
    if (!masked) {
        return ENGINE_ROW_MAX(e, r); /* taken along by engine_qk, before the mask */
    }
#endif
    (void)masked;
    FOR_S_COLS(c) { x = LARGER(x, S_GET(e, r, c)); }
    return x;
}

/* What the exponents of each row count from. A row that has seen nothing yet has the maximum -inf, and -inf - -inf would be
 * NaN. */
FN void take_references(const elem *largest, elem *reference)
{
    FOR_ROWS(r) { reference[r] = PICK(largest[r] == (elem)(-INFINITY), (elem)(0.0f), largest[r]); }
}

#ifdef ENGINE_IS_LARGE
/* The largest score of each row so far, and its reference. One test for all rows whether one of those who go the same way is
 * large or overflowed: then scores are clamped and references subtracted. */
FN void find_references(engine *e, elem *m, elem *largest, elem *reference, int masked)
{
    int odd = 0;
    FOR_ROWS(r)
    {
        largest[r] = LARGER(m[r], row_maximum(e, r, masked));
#ifdef ENGINE_SEEN
        const int visible = ENGINE_SEEN(e, r) != 0u;
#else
        const int visible = !masked | (largest[r] > -INFINITY);
#endif
        odd |= ENGINE_IS_LARGE(largest[r]) & ((largest[r] > 0.0f) | visible);
    }
    if (ENGINE_ANY(odd)) {
        FOR_ROWS(r) { largest[r] = LARGER(m[r], clamp_row(e, r, masked)); }
        engine_fold_max(e, largest);
        take_references(largest, reference);
        subtract_large(e, m, reference);
    } else {
        engine_fold_max(e, largest);
        take_references(largest, reference);
    }
}
#else
FN void find_references(engine *e, elem *m, elem *largest, elem *reference, int masked)
{
    FOR_ROWS(r)
    {
        elem x = row_maximum(e, r, masked);
        /* A score that overflowed: clamping can change a weight only where the largest one is itself out of the ordinary
         * (below, an infinite score weighs 0 either way), so a tile pays for one test a row. A masked tile is clamped from
         * below already, and its masked scores stay masked. */
#ifdef ENGINE_SEEN /* an engine that masks without clamping first says which columns it left */
        const index low = (index)(x <= (elem)(-1e38f)) & (index)(ENGINE_SEEN(e, r) != 0u);
#else
        const index low = masked ? (index)(0) : (index)(x <= (elem)(-1e38f));
#endif
        if (any_row((index)(x >= (elem)(1e38f)) | low)) {
            x = clamp_row(e, r, masked);
        }
        largest[r] = x;
    }
    engine_fold_max(e, largest);
    FOR_ROWS(r) { largest[r] = LARGER(m[r], largest[r]); }
    take_references(largest, reference);
}
#endif

FN void softmax_step(engine *e, elem *m, elem *l, elem *alpha, int masked)
{
    elem largest[S_ROWS], reference[S_ROWS];
    find_references(e, m, largest, reference, masked);
    FOR_ROWS(r)
    {
        const elem base = reference[r];
        alpha[r] = RESCALE(e, m[r], base);
        m[r] = largest[r];
        elem sum = (elem)(0.0f);
        FOR_S_COLS(c)
        {
            const elem p = POWER(e, S_GET(e, r, c), base);
            S_SET(e, r, c, p);
            sum += p;
        }
        l[r] = MULTIPLY_ADD(l[r], alpha[r], sum);
    }
}
