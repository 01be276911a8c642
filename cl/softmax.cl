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
#define POWER(e, x, y) EXP2((x) - (y))
#endif
/* A score in base two, as the epilogue wants it. */
#ifdef ENGINE_BASE_TWO
#define BASE_TWO(e, x) ENGINE_BASE_TWO(e, x)
#else
#define BASE_TWO(e, x) (x)
#endif

/* The scores of elem r clamped, of a masked tile from above only; the largest. */
FN elem clamp_row(engine *e, int r, int masked)
{
    elem x = (elem)(-INFINITY);
    FOR_S_COLS(c) { S_SET(e, r, c, clamp_score_above(S_GET(e, r, c))); }
    if (!masked) {
        FOR_S_COLS(c) { S_SET(e, r, c, clamp_score_below(S_GET(e, r, c))); }
    }
    FOR_S_COLS(c) { x = LARGER(x, S_GET(e, r, c)); }
    return x;
}

FN void softmax_step(engine *e, elem *m, elem *l, elem *alpha, int masked)
{
    elem largest[S_ROWS];
    FOR_ROWS(r)
    {
        elem x = (elem)(-INFINITY);
#ifdef ENGINE_ROW_MAX
        if (!masked) {
            x = ENGINE_ROW_MAX(e, r); /* taken along by engine_qk, before the mask */
        } else
#endif
        {
            FOR_S_COLS(c) { x = LARGER(x, S_GET(e, r, c)); }
        }
        /* A score that overflowed: clamping can change a weight only where the largest one is itself out of the ordinary
         * (below, an infinite score weighs 0 either way), so a tile pays for one test a row. A masked tile is clamped from
         * below already, and its hidden scores stay hidden. */
        const index low = masked ? (index)(0) : (index)(x <= (elem)(-1e38f));
        if (any_row((index)(x >= (elem)(1e38f)) | low)) {
            x = clamp_row(e, r, masked);
        }
        largest[r] = x;
    }
    engine_fold_max(e, largest);
    FOR_ROWS(r)
    {
        const elem now = LARGER(m[r], largest[r]);
        /* A row that has seen nothing yet: its maximum is -inf, and -inf - -inf would be NaN. */
        const elem base = PICK(now == (elem)(-INFINITY), (elem)(0.0f), now);
        alpha[r] = POWER(e, m[r], base);
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

#ifdef ENGINE_SLACK
/* The largest scores of a block that hides none, tested and clamped as above, once for all rows. */
FN void largest_of_open(engine *e, elem *largest)
{
    index odd = (index)(0);
    FOR_ROWS(r)
    {
        elem x = (elem)(-INFINITY);
        FOR_S_COLS(c) { x = LARGER(x, S_GET(e, r, c)); }
        odd |= (index)(x >= (elem)(1e38f)) | (index)(x <= (elem)(-1e38f));
        largest[r] = x;
    }
    if (any_row(odd)) {
        FOR_ROWS(r) { largest[r] = clamp_row(e, r, 0); }
    }
}

/* The step for a block that every row sees, by engines with ENGINE_SLACK: what a row's exponents count from stays where it is
 * until a score is over it by ENGINE_SLACK, 8 in base two. Weights are then up to 256 instead of 1, as exact as before, and
 * after the first few blocks nothing is left to be rescaled. Each row decides for itself; the product of O and the factors is
 * left out where no row of the warp has one. */
FN void softmax_step_open(engine *e, elem *m, elem *l)
{
    elem largest[S_ROWS], alpha[S_ROWS], sum[S_ROWS];
    int moved = 0;
    largest_of_open(e, largest);
    engine_fold_max(e, largest);
    FOR_ROWS(r)
    {
        const int moves = largest[r] > m[r] + (elem)(ENGINE_SLACK(e));
        const elem now = moves ? largest[r] : m[r];
        alpha[r] = POWER(e, m[r], now);
        m[r] = now;
        sum[r] = (elem)(0.0f);
        moved |= moves;
    }
    if (ENGINE_ANY(moved)) {
        FOR_ROWS(r)
        {
            l[r] *= alpha[r];
            FOR_O_COLS(c) { O_SET(e, r, c, O_GET(e, r, c) * alpha[r]); }
        }
    }
    /* Column by column, as the product takes them: its first ones begin beside the last exponentials. */
    FOR_S_COLS(c)
    {
        FOR_ROWS(r)
        {
            const elem p = POWER(e, S_GET(e, r, c), m[r]);
            S_SET(e, r, c, p);
            sum[r] += p;
        }
    }
    FOR_ROWS(r) { l[r] += sum[r]; }
}
#endif
