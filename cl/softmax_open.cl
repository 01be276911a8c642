/* SPDX-License-Identifier: Apache-2.0
 * The softmax step for fully visible blocks, in engines with a separate loop for them (ENGINE_OPEN_END). Included after
 * cl/softmax.cl, whose functions it uses.
 */

/* Moves the reference of each row whose largest score exceeds it by more than ENGINE_SLACK. Returns whether any moved. */
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

/* As find_references in cl/softmax.cl. Every score is visible, so that no maximum stays -inf. */
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

/* The reference moves only when a score exceeds it by ENGINE_SLACK. Weights may then reach 2^ENGINE_SLACK instead of 1 and are
 * as exact as before. After the first few blocks O rarely needs rescaling. Each row decides for itself. O is not rescaled where
 * no row that shares the branch has moved. */
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
    /* Column by column, in the order of the product: its first columns overlap with the last exponentials. */
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
