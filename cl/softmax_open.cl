/* SPDX-License-Identifier: Apache-2.0
 * The softmax step of blocks that every row sees, for engines with a loop of their own for these (ENGINE_OPEN_END). Included
 * behind cl/softmax.cl, whose words it uses.
 */

/* The largest scores of the block, tested and clamped as in cl/softmax.cl, but once for all rows. */
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

/* What a row's exponents count from stays where it is until a score is over it by ENGINE_SLACK: weights are then up to two to
 * that instead of 1, as exact as before, and after the first few blocks nothing is left to be rescaled. Each row decides for
 * itself; the product of O and the factors is left out where none of those who go the same way has one. */
FN void softmax_step_open(engine *e, elem *m, elem *l)
{
    elem largest[S_ROWS], reference[S_ROWS], alpha[S_ROWS], sum[S_ROWS];
    int moved = 0;
    largest_of_open(e, largest);
    engine_fold_max(e, largest);
    FOR_ROWS(r)
    {
        const int moves = largest[r] > m[r] + (elem)(ENGINE_SLACK(e));
        largest[r] = moves ? largest[r] : m[r];
        reference[r] = largest[r];
        moved |= moves;
    }
#ifdef ENGINE_IS_LARGE
    subtract_large(e, m, reference);
#endif
    FOR_ROWS(r)
    {
        alpha[r] = RESCALE(e, m[r], reference[r]);
        m[r] = largest[r];
        sum[r] = (elem)(0.0f);
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
            const elem p = POWER(e, S_GET(e, r, c), reference[r]);
            S_SET(e, r, c, p);
            sum[r] += p;
        }
    }
    FOR_ROWS(r) { l[r] += sum[r]; }
}
