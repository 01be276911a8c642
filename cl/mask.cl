/* SPDX-License-Identifier: Apache-2.0
 * Which keys a row sees. Hidden scores become -inf after the product, along the key axis only; K and V are never changed.
 */

/* First and last key that query i sees, past the end of the keys cut off. `i` is an int or a vector of them. */
#define FIRST_KEY(t, i) ((i) + (t)->diagonal_low)
#define LAST_KEY(t, i) min((i) + (t)->diagonal_high, (t)->kv_length - 1)

/* Clamped first (a finite score stays a number), then hidden. */
FN void mask_tile(engine *e, const tile *t, int key0)
{
    FOR_ROWS(r)
    {
        const index row = ENGINE_ROW(e, r) + t->row0;
        const index query = t->pack == 1 ? row : row / t->pack;
        const index first = FIRST_KEY(t, query), last = LAST_KEY(t, query);
        FOR_S_COLS(c)
        {
            const index key = (index)(key0 + ENGINE_S_COL(e, c));
            S_SET(e, r, c, PICK((key >= first) & (key <= last), clamp_score(S_GET(e, r, c)), (elem)(-INFINITY)));
        }
    }
}
