/* SPDX-License-Identifier: Apache-2.0
 * What cl/score.cl does with options, a row at a time and one option after the other: what a call has is asked once a row and
 * not at each score. For engines of LANES 1, with S_COLS of 32 at most, that hold neighbouring keys in pairs, columns 2i and
 * 2i + 1, at the same distances from column 0 in all work-items, and have mask and bias of a block at hand:
 *
 *        ENGINE_KEPT(e, r)           bit c: the mask keeps column c of row r
 *        ENGINE_BIAS(e, r, c, x)     the biases of columns c and c + 1 as floats x[0] and x[1]
 *        ENGINE_HIDDEN(e, r, bits)   takes the columns that row r does not see, where options may hide some
 *
 * Scores are clamped only where some are hidden; in other blocks softmax does it where it must (its `masked` is 0 there).
 */
/* Column c, counted from the key of column 0. */
#define COLUMN(e, c) (ENGINE_S_COL(e, c) - ENGINE_S_COL(e, 0))

/* Neither a product nor a sum of these is infinite where the score is not. */
FN void add_small_bias(engine *e, int r, elem factor)
{
    UNROLL for (int c = 0; c < S_COLS; c += 2)
    {
        float x[2];
        ENGINE_BIAS(e, r, c, x);
        S_SET(e, r, c, MULTIPLY_ADD(x[0], factor, S_GET(e, r, c)));
        S_SET(e, r, c + 1, MULTIPLY_ADD(x[1], factor, S_GET(e, r, c + 1)));
    }
}

/* Returns which columns it hides: they are -inf, and no other is. */
FN uint add_any_bias(engine *e, int r, elem factor)
{
    uint hidden = 0;
    UNROLL for (int c = 0; c < S_COLS; c += 2)
    {
        float x[2];
        ENGINE_BIAS(e, r, c, x);
        UNROLL for (int i = 0; i < 2; i++)
        {
            const int hides = x[i] == -INFINITY;
            const elem sum = clamp_score_below(S_GET(e, r, c + i) + clamp_score(x[i] * factor));
            S_SET(e, r, c + i, PICK(hides, -INFINITY, sum));
            hidden |= hides ? 1u << (c + i) : 0u;
        }
    }
    return hidden;
}

/* Keys that lengths, diagonal and window hide, counted from column 0. */
FN void apply_range(engine *e, int r, int first, int last)
{
#ifdef ENGINE_RUN
    score_row_by_runs(e, r, first, last);
#else
    FOR_S_COLS(c) { S_SET(e, r, c, PICK((COLUMN(e, c) >= first) & (COLUMN(e, c) <= last), S_GET(e, r, c), -INFINITY)); }
#endif
}
FN uint outside_range(const engine *e, int first, int last)
{
    uint hidden = 0;
    FOR_S_COLS(c) { hidden |= (COLUMN(e, c) < first) | (COLUMN(e, c) > last) ? 1u << c : 0u; }
    return hidden;
}

FN void score_row_by_pairs(engine *e, int r, const tile *t, const launch_args *a, const option_data *b, int key0, int class)
{
    const int row = ENGINE_ROW(e, r) + t->row0, key = key0 + ENGINE_S_COL(e, 0);
    const int query = tile_query(t, row), open = tile_block_is_open(t, key0), hides = options_hide(a, class);
    const int biased = HAS_BIAS(a) && (class & CLASS_BIASED);
    row_options o;
    uint hidden = 0;
    row_options_find(&o, t, a, b, row);
    if (HAS_SOFTCAP(a)) {
        FOR_S_COLS(c) { S_SET(e, r, c, TANH(S_GET(e, r, c)) * (elem)(a->softcap * LOG2_E)); }
    }
    if (HAS_SLOPES(a)) {
        const elem distance = convert_elem(query + t->offset - key);
        FOR_S_COLS(c) { S_SET(e, r, c, S_GET(e, r, c) - o.slope * fabs(distance - (float)COLUMN(e, c))); }
    }
    if (biased && ((class & CLASS_LARGE) || fabs(o.factor) >= 1e7f)) {
        hidden |= add_any_bias(e, r, o.factor);
    } else {
        if (biased) {
            add_small_bias(e, r, o.factor);
        }
        if (hides || !open) {
            FOR_S_COLS(c) { S_SET(e, r, c, clamp_score_below(S_GET(e, r, c))); }
        }
    }
    if (HAS_MASK(a) && (class & CLASS_MASKED)) {
        FOR_S_COLS(c) { S_SET(e, r, c, PICK(ENGINE_KEPT(e, r) & (1u << c), S_GET(e, r, c), -INFINITY)); }
        hidden |= ~ENGINE_KEPT(e, r);
    }
    if (!open) {
        const int first = FIRST_KEY(t, query) - key, last = LAST_KEY(t, query) - key;
        apply_range(e, r, first, last);
        hidden |= hides ? outside_range(e, first, last) : 0u;
    }
    ENGINE_HIDDEN(e, r, hidden);
}
