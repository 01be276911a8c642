/* SPDX-License-Identifier: Apache-2.0
 * The element type of softmax, mask and epilogue: one row (LANES 1), or a vector of rows (LANES 4, 8 or 16: one row a lane).
 * Included by an engine after it defined LANES.
 *
 * A condition on rows is used only through PICK and any_row, never through `if`, ` `, `!` or `== 1`. A scalar comparison gives
 * 1 and a vector comparison gives -1; select() and any() read the top bit of a vector.
 */
#if LANES == 1
typedef float elem;
typedef int index;
#define any_row(c) ((c) != 0)
#define LANE(x, lane) (x)
#define LANE_INDEX(x, lane) (x)
#define as_index(x) as_int(x)
#define as_elem(x) as_float(x)
#define convert_elem(x) convert_float(x)
#define LANE_NUMBERS 0
#elif LANES == 4
typedef float4 elem;
typedef int4 index;
#define as_index(x) as_int4(x)
#define as_elem(x) as_float4(x)
#define convert_elem(x) convert_float4(x)
#define LANE_NUMBERS ((int4)(0, 1, 2, 3))
#elif LANES == 8
typedef float8 elem;
typedef int8 index;
#define as_index(x) as_int8(x)
#define as_elem(x) as_float8(x)
#define convert_elem(x) convert_float8(x)
#define LANE_NUMBERS ((int8)(0, 1, 2, 3, 4, 5, 6, 7))
#elif LANES == 16
typedef float16 elem;
typedef int16 index;
#define as_index(x) as_int16(x)
#define as_elem(x) as_float16(x)
#define convert_elem(x) convert_float16(x)
#define LANE_NUMBERS ((int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15))
#else
#error "LANES must be 1, 4, 8 or 16"
#endif
#if LANES > 1
#define any_row(c) any((c) != 0)
#define LANE(x, lane) (((float *)&(x))[lane])
#define LANE_INDEX(x, lane) (((int *)&(x))[lane])
#endif

/* Work lane by lane runs once a tile and stays a loop. Unrolled into 16 copies for each elem, it took a CPU's compiler longer
 * than the products. */
#if LANES > 1 && defined(__clang__)
#define FOR_LANES(lane)                                                                                                        \
    _Pragma("clang loop vectorize(disable) interleave(disable) unroll(disable)") for (int lane = 0; lane < LANES; lane++)
#else
#define FOR_LANES(lane) for (int lane = 0; lane < LANES; lane++)
#endif

#define PICK(c, a, b) select((elem)(b), (elem)(a), (index)((c) != 0))

/* A maximum that ignores a NaN in `b`: one instruction on x86, where fmax takes three. A NaN score still reaches the output,
 * through its exponential. */
#ifndef LARGER
#define LARGER(a, b) PICK((b) > (a), b, a)
#endif

/* The unit of scores. In base two, an exponential costs only the subtraction of the maximum, but the factor rounds each score
 * once more. NATURAL_SCORES is for engines where natural units cost no more. There the maximum is subtracted first, so
 * differences of scores of any size are exact. */
#ifdef NATURAL_SCORES
#define SCORE_UNIT 1.0f
#define SCORE_LIMIT (LARGEST * LN_2)
#define IN_BASE_TWO(x) ((x)*LOG2_E)
#define IN_NATURAL_UNITS(x) (x)
#else
#define SCORE_UNIT LOG2_E
#define SCORE_LIMIT LARGEST
#define IN_BASE_TWO(x) (x)
#define IN_NATURAL_UNITS(x) ((x)*LN_2)
#endif
/* e^x, where x is the difference of two scores. */
#ifndef EXP_DIFFERENCE
#define EXP_DIFFERENCE(x) EXP2(IN_BASE_TWO(x))
#endif

/* Keeps a finite score finite after the base-two factor. It compares, since fmin and fmax drop NaN. */
FN elem clamp_score(elem x)
{
#ifdef CLAMP
    return CLAMP(x, SCORE_LIMIT);
#else
    const elem y = PICK(x > (elem)(SCORE_LIMIT), (elem)(SCORE_LIMIT), x);
    return PICK(y < (elem)(-SCORE_LIMIT), (elem)(-SCORE_LIMIT), y);
#endif
}
/* Its two halves. */
FN elem clamp_score_above(elem x) { return PICK(x > (elem)(SCORE_LIMIT), (elem)(SCORE_LIMIT), x); }
FN elem clamp_score_below(elem x)
{
#ifdef CLAMP_BELOW
    return CLAMP_BELOW(x, SCORE_LIMIT);
#else
    return PICK(x < (elem)(-SCORE_LIMIT), (elem)(-SCORE_LIMIT), x);
#endif
}
