/* SPDX-License-Identifier: Apache-2.0
 * Blocks of nv_wgmma that the diagonal or an end cuts, where HIDES_BY_BITS. The columns visible to a row are a word, which the
 * compiler turns into predicates, seven at a time. Runs (cl/score.cl) would need one vote and one branch each, in sequence.
 */
#if HIDES_BY_BITS
/* Masks keys. Bit c of a word is column c, so a row costs one select a column and no branch. */
FN void hide_unseen(engine *e, __local const tile *t, int key0)
{
    FOR_ROWS(r)
    {
        const int query = ENGINE_ROW(e, r) + t->row0, column0 = key0 + ENGINE_S_COL(e, 0);
        const int first = FIRST_KEY(t, query), last = LAST_KEY(t, query);
        e->seen[r] = columns_within(first - column0, last - column0);
        FOR_S_COLS(c) { S_SET(e, r, c, e->seen[r] >> c & 1u ? S_GET(e, r, c) : -INFINITY); }
    }
}
#endif
