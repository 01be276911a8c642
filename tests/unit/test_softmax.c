/* SPDX-License-Identifier: Apache-2.0
 * cl/softmax.cl and cl/softmax_open.cl compiled for the host, with the late factor of NVIDIA's engines and scores of any size.
 */
#include "support.h"

#include <float.h>
#include <math.h>
#include <stdint.h>

typedef float elem;
typedef int index;
typedef unsigned uint;

enum { ROWS = 2, COLS = 8 };
typedef struct {
    float s[ROWS][COLS];
    float o[ROWS]; /* V = 1, 2, ...: weighed by score column */
    float late;
} engine;

#define FN static inline
#define LANES 1
#define SCORE_OPTIONS 0
#define S_ROWS ROWS
#define FOR_ROWS(r) for (int r = 0; r < ROWS; r++)
#define FOR_S_COLS(c) for (int c = 0; c < COLS; c++)
#define FOR_O_COLS(c) for (int c = 0; c < 1; c++)
#define S_GET(e, r, c) (e)->s[r][c]
#define S_SET(e, r, c, x) S_GET(e, r, c) = (x)
#define O_GET(e, r, c) (e)->o[r + c]
#define O_SET(e, r, c, x) O_GET(e, r, c) = (x)
#define EXP2(x) exp2f(x)
#define EXP_DIFFERENCE(x) EXP2(x)
#define LARGER(a, b) fmaxf(a, b)
#define PICK(c, a, b) ((c) ? (a) : (b))
#define MULTIPLY_ADD(a, b, c) fmaf(a, b, c)
#define any_row(c) ((c) != 0)
#define ENGINE_SLACK(e) (8.0f / (e)->late)
#define ENGINE_ANY(c) (c)

static float ptx_product(float x, float y) { return x * y; }
static float clamp_score_above(float x) { return x > FLT_MAX ? FLT_MAX : x; }
static float clamp_score_below(float x) { return x < -FLT_MAX ? -FLT_MAX : x; }
static void engine_fold_max(engine *e, elem *x) { (void)e, (void)x; }

#include "../../cl/engines/nvidia/nv_late.cl"

#include "../../cl/softmax.cl"

#include "../../cl/softmax_open.cl"

#define FACTOR (0.125f * 1.44269504088896340736f)

/* One block of scores after the other, the same in both rows, as the kernels' loops take them; V is the number of the column.
 */
struct outcome {
    double o, lse; /* base two */
};
static struct outcome attend(const float *scores, int blocks, int open)
{
    engine e = {.late = 1.0f};
    elem m[ROWS] = {-INFINITY, -INFINITY}, l[ROWS] = {0.0f, 0.0f}, alpha[ROWS];
    assert_true(factor_is_late(&e, FACTOR));
    for (int block = 0; block < blocks; block++) {
        for (int i = 0; i < ROWS * COLS; i++) {
            e.s[i / COLS][i % COLS] = scores[block * COLS + i % COLS];
        }
        if (open) {
            softmax_step_open(&e, m, l);
        } else {
            softmax_step(&e, m, l, alpha, 0);
        }
        for (int r = 0; r < ROWS; r++) {
            e.o[r] *= open ? 1.0f : alpha[r];
            for (int c = 0; c < COLS; c++) {
                e.o[r] += e.s[r][c] * (float)(block * COLS + c);
            }
        }
    }
    assert_true(l[0] == l[1] && m[0] == m[1]);
    return (struct outcome){(double)(e.o[1] / l[1]), (double)BASE_TWO(&e, m[1]) + log2((double)l[1])};
}

static struct outcome in_double(const float *scores, int count)
{
    double top = -INFINITY, sum = 0.0, o = 0.0;
    for (int i = 0; i < count; i++) {
        top = fmax(top, (double)scores[i]);
    }
    for (int i = 0; i < count; i++) {
        const double weight = exp2(((double)scores[i] - top) * (double)FACTOR);
        sum += weight;
        o += weight * i;
    }
    return (struct outcome){o / sum, top * (double)FACTOR + log2(sum)};
}

static void compare(const float *scores, int blocks, double tolerance)
{
    const struct outcome want = in_double(scores, blocks * COLS);
    for (int open = 0; open < 2; open++) {
        const struct outcome got = attend(scores, blocks, open);
        if (!(fabs(got.o - want.o) <= tolerance * blocks * COLS)) {
            fail_msg("O is %.9g, expected %.9g (scores %g ..., open %d)", got.o, want.o, (double)scores[0], open);
        }
        if (!(fabs(got.lse - want.lse) <= 2e-7 * fabs(want.lse) + tolerance)) {
            fail_msg("LSE is %.9g, expected %.9g (scores %g ..., open %d)", got.lse, want.lse, (double)scores[0], open);
        }
    }
}

static const float levels[] = {1e4f, 65504.0f, 65536.0f, 1e9f, 1.7e30f, 1e37f, 3.4e38f};

static void the_largest_score_weighs_1_whatever_its_size(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2 * COUNT_OF(levels); i++) {
        const float level = i % 2 ? -levels[i / 2] : levels[i / 2];
        for (int winner = 0; winner < 4 * COLS; winner++) {
            float scores[4 * COLS];
            for (int j = 0; j < 4 * COLS; j++) {
                scores[j] = (j == winner) == (level > 0.0f) ? level : level * 0.9f;
            }
            compare(scores, 4, 1e-6);
        }
    }
}

static void equal_scores_weigh_the_same_whatever_their_size(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2 * COUNT_OF(levels); i++) {
        float scores[4 * COLS];
        for (int j = 0; j < 4 * COLS; j++) {
            scores[j] = (i % 2 ? -levels[i / 2] : levels[i / 2]) * (i / 2 % 2 ? 1.0f : 0.99999f);
        }
        compare(scores, 4, 1e-6);
    }
}

/* From block to block over the size at which the maximum is subtracted first, both ways. */
static void weights_stay_right_where_the_way_changes(void **state)
{
    (void)state;
    for (int sign = -1; sign <= 1; sign += 2) {
        float scores[8 * COLS];
        for (int j = 0; j < 8 * COLS; j++) {
            scores[j] = (float)sign * 65536.0f + (float)j - 32.0f;
        }
        compare(scores, 8, 1e-3); /* fp32 leaves the product of 65536 and the factor 2^-11 */
    }
}

static void scores_that_overflowed_count_as_the_largest_float(void **state)
{
    float scores[2 * COLS];
    (void)state;
    for (int sign = -1; sign <= 1; sign += 2) {
        for (int j = 0; j < 2 * COLS; j++) {
            scores[j] = (float)sign * INFINITY;
        }
        for (int open = 0; open < 2; open++) {
            const struct outcome got = attend(scores, 2, open);
            assert_true(fabs(got.o - (2 * COLS - 1) / 2.0) < 1e-5);
            assert_true(fabs(got.lse - sign * (double)FLT_MAX * (double)FACTOR) < 1e31);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_largest_score_weighs_1_whatever_its_size),
        cmocka_unit_test(equal_scores_weigh_the_same_whatever_their_size),
        cmocka_unit_test(weights_stay_right_where_the_way_changes),
        cmocka_unit_test(scores_that_overflowed_count_as_the_largest_float),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
