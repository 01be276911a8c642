/* SPDX-License-Identifier: Apache-2.0
 * The options of cl/score.cl, one row at a time and one option after the other. So a row tests once which options a call uses,
 * and not at each score. For engines with LANES 1 and at most 32 S_COLS. Such an engine holds adjacent keys in pairs, columns
 * 2i and 2i + 1, at the same distances from column 0 in all work-items. It provides the mask and the bias of a block:
 *
 *         ENGINE_BIAS(e, r, c, x)     the biases of columns c and c + 1 as floats x[0] and x[1]
 *         ENGINE_SEEN(e, r)           bit c: column c is visible to row r
 *         ENGINE_BIAS_TAKEN           defined where ENGINE_SEEN already masks biases of -inf
 *
 * Nothing is clamped from below here: with ENGINE_SEEN, softmax does that where needed.
 */
/* Column c, relative to the key of column 0. */
#define COLUMN(e, c) (ENGINE_S_COL(e, c) - ENGINE_S_COL(e, 0))

/* For biases so small that neither a product nor a sum is infinite where the score is finite. */
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

/* Returns the columns that stay visible. The scores of masked columns are undefined. */
FN uint add_any_bias(engine *e, int r, elem factor)
{
    uint left = 0;
    UNROLL for (int c = 0; c < S_COLS; c += 2)
    {
        float x[2];
        ENGINE_BIAS(e, r, c, x);
        UNROLL for (int i = 0; i < 2; i++)
        {
            S_SET(e, r, c + i, S_GET(e, r, c + i) + clamp_score(x[i] * factor));
            left |= x[i] == -INFINITY ? 0u : 1u << (c + i);
        }
    }
    return left;
}

FN void score_row_by_pairs(engine *e, int r, const tile *t, const launch_args *a, const option_data *b, int key0, int class)
{
    const int row = ENGINE_ROW(e, r) + t->row0, key = key0 + ENGINE_S_COL(e, 0);
    row_options o;
    row_options_find(&o, t, a, b, row);
    if (has_softcap(a)) {
        FOR_S_COLS(c) { S_SET(e, r, c, TANH(S_GET(e, r, c)) * (elem)(a->softcap * SCORE_UNIT)); }
    }
    if (has_slopes(a)) {
        const elem distance = convert_elem(tile_query(t, row) + t->offset - key) + t->offset_rest;
        FOR_S_COLS(c) { S_SET(e, r, c, S_GET(e, r, c) - o.slope * fabs(distance - (float)COLUMN(e, c))); }
    }
    if (has_bias(a) && (class & CLASS_BIASED)) {
        if ((class & CLASS_LARGE) || fabs(o.factor) >= 1e7f) {
#ifdef ENGINE_BIAS_TAKEN
            (void)add_any_bias(e, r, o.factor);
#else
            ENGINE_SEEN(e, r) &= add_any_bias(e, r, o.factor);
#endif
        } else {
            add_small_bias(e, r, o.factor);
        }
    }
    if (options_hide(a, class) || !tile_block_is_open(t, key0)) {
        FOR_S_COLS(c) { S_SET(e, r, c, ENGINE_SEEN(e, r) >> c & 1u ? S_GET(e, r, c) : -INFINITY); }
    }
}
