/* SPDX-License-Identifier: Apache-2.0
 * unfused: a tile of a plain matrix product, C[BLOCK_M][BLOCK_N] += left[BLOCK_M][depth] * right[depth][BLOCK_N], for Q*K^T
 * and for P*V. Both factors are staged DEPTH columns at a time, widened to fp32. A work-item multiplies micro-tiles of ROWS x
 * VECTORS.
 *
 *         left   BLOCK_M rows of DEPTH floats          right  DEPTH rows of BLOCK_N floats
 *
 * On GPUs an elem is one float, and a work-group shares the panels in local memory. The rows and columns of its work-items
 * interleave, so that adjacent work-items access adjacent words. On CPUs an elem is a vector of columns. A group is one
 * work-item with private panels, which visits STEPS_M x STEPS_N micro-tiles.
 *
 * Needs LANES, ITEMS (work-items along either axis), ROWS, VECTORS, STEPS_M, STEPS_N, DEPTH.
 */
#include "cl/elem.cl"

#define MICRO_N (VECTORS * ITEMS) /* elems of one step */
#if WORK_GROUP != ITEMS * ITEMS
#error "unfused: WORK_GROUP is not ITEMS * ITEMS"
#endif
#if BLOCK_M != STEPS_M * ROWS * ITEMS
#error "unfused: BLOCK_M is not STEPS_M * ROWS * ITEMS"
#endif
#if BLOCK_N != STEPS_N * VECTORS * ITEMS * LANES
#error "unfused: BLOCK_N is not STEPS_N * VECTORS * ITEMS * LANES"
#endif

/* A group of one work-item needs no local memory: its panels are private. */
#if WORK_GROUP == 1
#define PANEL __private
#define GROUP_BARRIER()
#else
#define PANEL __local
#define GROUP_BARRIER() barrier(CLK_LOCAL_MEM_FENCE)
#endif

/* Rows of `left` stay aligned to 16 bytes. An odd pitch of `right` spreads the transposed writes of K over the banks. */
#define LEFT_PITCH (DEPTH + 4)
#define RIGHT_PITCH (STEPS_N * MICRO_N + (LANES == 1))
#define DECLARE_PANELS(left, right)                                                                                            \
    PANEL float4 left[BLOCK_M * LEFT_PITCH / 4];                                                                               \
    PANEL elem right[DEPTH * RIGHT_PITCH];
#define AS_FLOATS(panel) ((PANEL float *)(panel))

/* Position in the tile of row r and elem n of micro-tile (step_m, step_n) of this work-item. */
#define TILE_ROW(step_m, r, item) (((step_m)*ROWS + (r)) * ITEMS + (item) / ITEMS)
#define TILE_ELEM(step_n, n, item) (((step_n)*VECTORS + (n)) * ITEMS + (item) % ITEMS)
#define ACC_SIZE (STEPS_M * STEPS_N * ROWS * VECTORS)
#define ALONG(n) (WORK_GROUP < (n) ? WORK_GROUP : (n))
#define ROUND_UP(x, n) (((x) + (n)-1) / (n) * (n))
/* Row and first column in the tile of accumulator i. Accumulator i is elem i % VECTORS of row i / VECTORS % ROWS of a
 * micro-tile; row steps are outermost. */
#define ACC_AT(step_m, step_n) (((step_m)*STEPS_N + (step_n)) * ROWS * VECTORS)
#define ACC_ROW(i, item) TILE_ROW((i) / (STEPS_N * ROWS * VECTORS), (i) / VECTORS % ROWS, item)
#define ACC_COL(i, item) (TILE_ELEM((i) / (ROWS * VECTORS) % STEPS_N, (i) % VECTORS, item) * LANES)

#if LANES == 1
#define STORE_ELEM(x, p) *(p) = (x)
#define LOAD_ELEM(p) (*(p))
#elif LANES == 4
#define STORE_ELEM(x, p) vstore4(x, 0, p)
#define LOAD_ELEM(p) vload4(0, p)
#elif LANES == 8
#define STORE_ELEM(x, p) vstore8(x, 0, p)
#define LOAD_ELEM(p) vload8(0, p)
#else
#define STORE_ELEM(x, p) vstore16(x, 0, p)
#define LOAD_ELEM(p) vload16(0, p)
#endif

/* A single micro-tile stays in registers as long as every index into it is a constant. Several are in memory in any case. */
#if STEPS_M * STEPS_N == 1
#define FOR_ACC(i) UNROLL for (int i = 0; i < ACC_SIZE; i++)
#else
#define FOR_ACC(i) for (int i = 0; i < ACC_SIZE; i++)
#endif

/* A matrix in memory: element (outer, inner) is at `at + outer * outer_stride + inner * inner_stride`. */
typedef struct {
    long at, outer_stride, inner_stride;
    int outers, inners; /* elements beyond these are staged as 0 */
} matrix;

/* Writes outers x inners elements of a matrix into a panel. Adjacent work-items take adjacent inner elements, `along` of them
 * at once. */
#define DEFINE_STAGE(name, load)                                                                                               \
    FN void name(PANEL float *panel, int outer_pitch, int inner_pitch, int outers, int inners, int along,                      \
                 __global const void *data, matrix m, int item)                                                                \
    {                                                                                                                          \
        for (int o = item / along; o < outers; o += WORK_GROUP / along) {                                                      \
            for (int i = item % along; i < inners; i += along) {                                                               \
                const int there = o < m.outers && i < m.inners;                                                                \
                panel[o * outer_pitch + i * inner_pitch] =                                                                     \
                    there ? load(data, m.at + o * m.outer_stride + i * m.inner_stride) : 0.0f;                                 \
            }                                                                                                                  \
        }                                                                                                                      \
    }
DEFINE_STAGE(stage_q, LOAD_Q)
DEFINE_STAGE(stage_k, LOAD_K)
DEFINE_STAGE(stage_v, LOAD_V)
DEFINE_STAGE(stage_p, load_fp32)

/* Four adjacent floats of a row of `left`: one vector load where an elem is a float. On a CPU each float is broadcast from
 * memory. */
#if LANES == 1
#define QUAD(x, p) const float4 x = *(PANEL const float4 *)(p)
#define QUAD_AT(x, i) x.s##i
#else
#define QUAD(x, p) PANEL const float *const x = (p)
#define QUAD_AT(x, i) x[i]
#endif

FN void multiply_micro_tile(PANEL const float *left, PANEL const elem *right, elem *acc, int depth)
{
    elem sum[ROWS * VECTORS];
    UNROLL for (int i = 0; i < ROWS * VECTORS; i++) { sum[i] = acc[i]; }
    for (int x = 0; x < depth; x += 4) {
        elem b[4 * VECTORS];
        UNROLL for (int i = 0; i < 4 * VECTORS; i++) { b[i] = right[(x + i / VECTORS) * RIGHT_PITCH + i % VECTORS * ITEMS]; }
        UNROLL for (int r = 0; r < ROWS; r++)
        {
            QUAD(a, left + r * ITEMS * LEFT_PITCH + x);
            UNROLL for (int n = 0; n < VECTORS; n++)
            {
                elem s = sum[r * VECTORS + n];
                s = MULTIPLY_ADD((elem)(QUAD_AT(a, 0)), b[n], s);
                s = MULTIPLY_ADD((elem)(QUAD_AT(a, 1)), b[VECTORS + n], s);
                s = MULTIPLY_ADD((elem)(QUAD_AT(a, 2)), b[2 * VECTORS + n], s);
                s = MULTIPLY_ADD((elem)(QUAD_AT(a, 3)), b[3 * VECTORS + n], s);
                sum[r * VECTORS + n] = s;
            }
        }
    }
    UNROLL for (int i = 0; i < ROWS * VECTORS; i++) { acc[i] = sum[i]; }
}

/* Adds the product of the panels to this work-item's part of the tile. Only the first `rows` rows and `depth` columns
 * matter. */
FN void multiply_panels(PANEL const float *left, PANEL const elem *right, elem *acc, int rows, int depth, int item)
{
    for (int n = 0; n < STEPS_N; n++) {
        for (int m = 0; m < STEPS_M && m * ROWS * ITEMS < rows; m++) {
            multiply_micro_tile(left + TILE_ROW(m, 0, item) * LEFT_PITCH, right + TILE_ELEM(n, 0, item), acc + ACC_AT(m, n),
                                depth);
        }
    }
}
