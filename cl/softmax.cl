/* SPDX-License-Identifier: Apache-2.0
 * One step of the online softmax (FlashAttention-2, arXiv:2307.08691, Algorithm 1; the factor here is exp(m_old - m_new),
 * where the paper prints its inverse). Turns the tile's scores into weights and returns `alpha`, the factor for earlier sums.
 * The engine applies `alpha` to O when it suits. `l` is summed over this work-item's columns only, and is folded over the row
 * at the end.
 */

/* 2^(x - y) of two scores. An engine that leaves the factor out of S applies it here. */
#ifdef ENGINE_POWER
#define POWER(e, x, y) ENGINE_POWER(e, x, y)
#else
#define POWER(e, x, y) EXP_DIFFERENCE((x) - (y))
#endif
/* A score with all its factors, for the epilogue. */
#ifdef ENGINE_BASE_TWO
#define BASE_TWO(e, x) ENGINE_BASE_TWO(e, x)
#else
#define BASE_TWO(e, x) (x)
#endif

/* Rescales sums taken relative to x to the new reference y. It uses the same rounded numbers as the weights, and is exactly 1
 * when x and y are equal. A multiply-add would keep the rounding error of one product, again in every block. */
#define RESCALE(e, x, y) EXP_DIFFERENCE(BASE_TWO(e, x) - BASE_TWO(e, y))

#ifdef ENGINE_IS_LARGE
/* For rows with a large reference. The reference is subtracted from the scores and from the maximum so far before the factor is
 * applied, and is 0 from then on. */
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

/* Clamps the scores of elem r, a masked tile from above only. Returns the largest score. */
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
        return ENGINE_ROW_MAX(e, r); /* found by engine_qk, before masking */
    }
#endif
    (void)masked;
    FOR_S_COLS(c) { x = LARGER(x, S_GET(e, r, c)); }
    return x;
}

/* The reference of the exponents. A row with no visible key so far has the maximum -inf, and -inf - -inf would be NaN; its
 * reference is 0. */
FN elem reference_of(elem largest) { return PICK(largest == (elem)(-INFINITY), (elem)(0.0f), largest); }

#ifdef ENGINE_IS_LARGE
/* Finds the largest score of each row so far and its reference. One vote covers all rows that share a branch: if any is large
 * or has overflowed, scores are clamped and large references subtracted. */
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
        FOR_ROWS(r) { reference[r] = reference_of(largest[r]); }
        subtract_large(e, m, reference);
    } else {
        engine_fold_max(e, largest);
        FOR_ROWS(r) { reference[r] = reference_of(largest[r]); }
    }
}
#else
/* The largest score of each row in this block. */
FN void find_maxima(engine *e, elem *largest, int masked)
{
    FOR_ROWS(r)
    {
        elem x = row_maximum(e, r, masked);
        /* A score has overflowed. Clamping can change a weight only where the largest score is itself extreme (an infinite
         * score below that weighs 0 either way), so one test a row is enough. A masked tile is already clamped from below, and
         * its masked scores stay -inf. */
#ifdef ENGINE_SEEN /* an engine that masks without clamping first tells which columns are visible */
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
}
#endif

FN void softmax_step(engine *e, elem *m, elem *l, elem *alpha, int masked)
{
    elem largest[S_ROWS];
#ifdef ENGINE_IS_LARGE
    elem reference[S_ROWS];
    find_references(e, m, largest, reference, masked);
#else
    find_maxima(e, largest, masked);
#endif
    FOR_ROWS(r)
    {
#ifdef ENGINE_IS_LARGE
        const elem now = largest[r], base = reference[r];
#else
        const elem now = LARGER(m[r], largest[r]), base = reference_of(now);
#endif
        alpha[r] = RESCALE(e, m[r], base);
        m[r] = now;
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
