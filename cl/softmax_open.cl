/* SPDX-License-Identifier: Apache-2.0
 * The softmax step of blocks that every row sees, for engines with a loop of their own for these (ENGINE_OPEN_END). Included
 * behind cl/softmax.cl, whose words it uses.
 */

/* Moves the references of rows whose largest score passes them by ENGINE_SLACK; returns whether there is one. */
FN int move_references(engine *e, const elem *m, elem *largest, elem *reference)
{
    int moved = 0;
    FOR_ROWS(r)
    {
        const int moves = largest[r] > m[r] + (elem)(ENGINE_SLACK(e));
        largest[r] = moves ? largest[r] : m[r];
        reference[r] = largest[r];
        moved |= moves;
    }
    return moved;
}

/* As find_references of cl/softmax.cl. Every score counts, so that no maximum stays -inf. */
FN int find_references_open(engine *e, elem *m, elem *largest, elem *reference)
{
    int odd = 0, moved;
    FOR_ROWS(r)
    {
        elem x = (elem)(-INFINITY);
        FOR_S_COLS(c) { x = LARGER(x, S_GET(e, r, c)); }
        largest[r] = x;
        x = LARGER(x, m[r]);
#ifdef ENGINE_IS_LARGE
        odd |= ENGINE_IS_LARGE(x);
#else
        odd |= fabs(x) >= 1e38f;
#endif
    }
    if (ENGINE_ANY(odd)) {
        FOR_ROWS(r) { largest[r] = clamp_row(e, r, 0); }
        engine_fold_max(e, largest);
        moved = move_references(e, m, largest, reference);
#ifdef ENGINE_IS_LARGE
        subtract_large(e, m, reference);
#endif
    } else {
        engine_fold_max(e, largest);
        moved = move_references(e, m, largest, reference);
    }
    return moved;
}

/* What a row's exponents count from stays where it is until a score is over it by ENGINE_SLACK: weights are then up to two to
 * that instead of 1, as exact as before, and after the first few blocks nothing is left to be rescaled. Each row decides for
 * itself; the product of O and the factors is left out where none of those who go the same way has one. */
FN void softmax_step_open(engine *e, elem *m, elem *l)
{
    elem largest[S_ROWS], reference[S_ROWS], alpha[S_ROWS], sum[S_ROWS];
    const int moved = find_references_open(e, m, largest, reference);
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
