/* SPDX-License-Identifier: Apache-2.0
 * The contract's macros for engines in which a lane is a query. Elem r of a tile's rows is LANES queries, and softmax never
 * crosses lanes. Included before the engine's struct, which has `columns` and `largest`. The engine itself defines S_GET,
 * S_SET and O_AT.
 */
#define EXP2(x) cpu_exp2(x)
#define EXP_DIFFERENCE(x) cpu_exp(x)
#define NATURAL_SCORES
#define TANH(x) cpu_tanh(x)
#include "cl/elem.cl"

#define S_ROWS VECTORS
#define S_COLS BLOCK_N
#define O_COLS HEAD_DIM_V
#define FOR_ROWS(r) for (int r = 0; r < VECTORS; r++)
#define FOR_S_COLS(c) for (int c = 0; c < e->columns; c++)
#define FOR_O_COLS(c) for (int c = 0; c < HEAD_DIM_V; c++)
#define O_GET(e, r, c) (e)->o[O_AT(c, r)]
#define O_SET(e, r, c, x) (e)->o[O_AT(c, r)] = (x)
#define ENGINE_ROW(e, r) (LANE_NUMBERS + (r)*LANES)
#define ENGINE_S_COL(e, c) (c)
#define ENGINE_O_COL(e, c) (c)
#define ENGINE_OWNS_ROWS(e) 1
#define ENGINE_LOCAL(e)
#define ENGINE_APART
#define ENGINE_ROW_MAX(e, r) (e)->largest[r]
#define ENGINE_STORE_ROW(e, t, a, r, o_data) cpu_store_rows(e, t, a, r, o_data)
