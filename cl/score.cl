/* SPDX-License-Identifier: Apache-2.0
 * Turns products into the scores that softmax takes: applies softcap, bias and ALiBi, then masks. Masked scores become -inf
 * after the product, along the key axis only; K and V never change. All scores are in the unit of cl/elem.cl, base two or
 * natural.
 *
 * SCORE_OPTIONS has a bit for each option that the kernel source supports: softcap, bias, mask and ALiBi. At run time the
 * kernel tests which of them a call uses.
 */
#ifndef TANH
#define TANH(x) tanh(x)
#endif

/* The factor of the product. It is clamped: a scale near the largest float would become infinite in base two. With a softcap,
 * the unit's factor follows after tanh. */
FN float score_factor(const launch_args *a)
{
    if (has_softcap(a)) {
        return clamp(a->scale / a->softcap, -LARGEST, LARGEST);
    }
    return clamp(a->scale * SCORE_UNIT, -LARGEST, LARGEST);
}

#if SCORE_OPTIONS
/* The options of one elem of rows. */
typedef struct {
    long mask[LANES], bias[LANES]; /* element offsets of key 0 */
    elem slope, factor;            /* includes the unit of scores */
} row_options;

FN void row_options_find(row_options *o, const tile *t, const launch_args *a, const option_data *b, index rows)
{
    FOR_LANES(lane)
    {
        /* Rows past the last one are computed but not stored. They use the options of the last row. */
        const int row = min(LANE_INDEX(rows, lane), t->rows - 1);
        const int query = tile_query(t, row), head = tile_head(t, row);
        o->mask[lane] = a->mask.base + t->batch * a->mask.batch + head * a->mask.head + query * a->mask.seq;
        o->bias[lane] = a->bias.base + t->batch * a->bias.batch + head * a->bias.head + query * a->bias.seq;
        LANE(o->slope, lane) =
            has_slopes(a) ? b->slopes[a->slopes.base + t->batch * a->slopes.batch + head * a->slopes.head] * SCORE_UNIT : 0.0f;
        LANE(o->factor, lane) = a->has_factors ? b->factors[a->factors + head] * SCORE_UNIT : SCORE_UNIT;
    }
}

FN elem bias_of(const launch_args *a, const option_data *b, const row_options *o, int key)
{
    elem x;
    for (int lane = 0; lane < LANES; lane++) {
        const long at = o->bias[lane] + key * a->bias.dim;
        LANE(x, lane) = load_any(a->bias_type, b->bias, at);
    }
    return x;
}

FN index mask_of(const launch_args *a, const option_data *b, const row_options *o, int key)
{
    index x;
    for (int lane = 0; lane < LANES; lane++) {
        /* -1 or 0: select() of vectors reads the top bit, select() of scalars tests for nonzero. */
        LANE_INDEX(x, lane) = -(int)(b->mask[o->mask[lane] + key * a->mask.dim] != 0);
    }
    return x;
}

/* The score of one elem, with all options. Clears lanes of `seen` that mask or bias masks. */
FN elem score_with_options(elem s, const tile *t, const launch_args *a, const option_data *b, const row_options *o, index query,
                           int key, int class, index *seen)
{
    if (has_softcap(a)) {
        s = TANH(s) * (elem)(a->softcap * SCORE_UNIT);
    }
    if (has_bias(a) && (class & CLASS_BIASED)) {
        if (key < min(a->bias_columns, t->kv_length)) {
            const elem bias = bias_of(a, b, o, key);
            /* A bias of -inf masks. A finite bias stays finite in base two, like the score itself. */
            *seen &= (index)((bias != (elem)(-INFINITY)) != 0);
            s = s + clamp_score(bias * o->factor);
        } else {
            *seen = (index)(0);
        }
    }
    if (has_slopes(a)) {
        s = s - o->slope * fabs(convert_elem(query + t->offset - key) + (elem)(t->offset_rest));
    }
    if (has_mask(a) && (class & CLASS_MASKED)) {
        if (key < min(a->mask_columns, t->kv_length)) {
            *seen &= mask_of(a, b, o, key);
        } else {
            *seen = (index)(0);
        }
    }
    return s;
}
#endif

#if SCORE_OPTIONS
/* options_hide: whether options can mask keys of a block of this class. options_change: whether they can mask keys or change
 * scores. */
FN int options_hide(const launch_args *a, int class)
{
    return (has_mask(a) && (class & CLASS_MASKED)) || (has_bias(a) && (class & CLASS_LARGE));
}
FN int options_change(const launch_args *a, int class)
{
    return has_softcap(a) || has_slopes(a) || (has_mask(a) && (class & CLASS_MASKED)) ||
           (has_bias(a) && (class & CLASS_BIASED));
}
#endif

/* Whether scores of this block differ from the product, or are masked. */
FN int scores_change(const tile *t, const launch_args *a, int key0, int class)
{
#if SCORE_OPTIONS
    if (options_change(a, class)) {
        return 1;
    }
#endif
    return !tile_block_is_open(t, key0);
}

#ifdef ENGINE_RUN
/* Whether c holds for all rows that share a branch. An engine that knows which work-items branch together defines it as a
 * vote. */
#ifndef ENGINE_ALL
#define ENGINE_ALL(c) (c)
#endif
/* Masks the keys that row r does not see. An engine with ENGINE_RUN holds its columns in runs of ENGINE_RUN, ordered by key,
 * with the same distances from column 0 in every work-item. On the diagonal most runs are fully visible or fully masked.
 * `first` and `last` are relative to the key of column 0. */
FN void score_row_by_runs(engine *e, int r, int first, int last)
{
    UNROLL for (int run = 0; run < S_COLS; run += ENGINE_RUN)
    {
        const int from = ENGINE_S_COL(e, run) - ENGINE_S_COL(e, 0),
                  to = ENGINE_S_COL(e, run + ENGINE_RUN - 1) - ENGINE_S_COL(e, 0);
        if (ENGINE_ALL(to < first || from > last)) {
            UNROLL for (int c = run; c < run + ENGINE_RUN; c++) { S_SET(e, r, c, -INFINITY); }
        } else if (!ENGINE_ALL(from >= first && to <= last)) {
            UNROLL for (int c = run; c < run + ENGINE_RUN; c++)
            {
                const int key = ENGINE_S_COL(e, c) - ENGINE_S_COL(e, 0);
                S_SET(e, r, c, PICK((key >= first) & (key <= last), S_GET(e, r, c), -INFINITY));
            }
        }
    }
}
#endif

FN index queries_of(const tile *t, index rows)
{
    index queries = rows;
    if (t->pack > 1) {
        FOR_LANES(lane) { LANE_INDEX(queries, lane) = LANE_INDEX(rows, lane) / t->pack; }
    }
    return queries;
}

#if SCORE_OPTIONS && defined(ENGINE_BIAS)
#define SCORE_BY_PAIRS
#include "cl/score_pairs.cl"
#endif

/* Clamps first, so that a finite score stays finite, then masks. */
FN void score_tile(engine *e, const tile *t, const launch_args *a, const option_data *b, int key0, int class)
{
    FOR_ROWS(r)
    {
        const index row = ENGINE_ROW(e, r) + t->row0;
        const index query = queries_of(t, row);
        const index first = FIRST_KEY(t, query), last = LAST_KEY(t, query);
#if defined(SCORE_BY_PAIRS)
        score_row_by_pairs(e, r, t, a, b, key0, class);
#elif defined(ENGINE_RUN) && !SCORE_OPTIONS
        FOR_S_COLS(c) { S_SET(e, r, c, clamp_score_below(S_GET(e, r, c))); }
        score_row_by_runs(e, r, first - (key0 + ENGINE_S_COL(e, 0)), last - (key0 + ENGINE_S_COL(e, 0)));
#else
#if SCORE_OPTIONS
        row_options options;
        row_options_find(&options, t, a, b, row);
#endif
        FOR_S_COLS(c)
        {
            const int key = key0 + ENGINE_S_COL(e, c);
            elem s = S_GET(e, r, c);
            index seen = ((index)(key) >= first) & ((index)(key) <= last);
#if SCORE_OPTIONS
            s = score_with_options(s, t, a, b, &options, query, key, class, &seen);
#endif
            S_SET(e, r, c, PICK(seen, clamp_score(s), (elem)(-INFINITY)));
        }
#endif
    }
}
