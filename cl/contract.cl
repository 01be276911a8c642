/* SPDX-License-Identifier: Apache-2.0
 * Included after an engine. A name that the engine does not define becomes a clear error. docs/adding-an-engine.md explains
 * each name.
 */
#ifndef LANES
#error "engine: LANES (rows in one elem) is not defined"
#endif
#ifndef BLOCK_M
#error "engine: BLOCK_M (rows of a tile) is not defined"
#endif
#ifndef BLOCK_N
#error "engine: BLOCK_N (keys of a tile) is not defined"
#endif
#ifndef WORK_GROUP
#error "engine: WORK_GROUP (work-items of a group) is not defined"
#endif
#ifndef TEAM
#error "engine: TEAM (work-items that share a tile) is not defined"
#endif
#ifndef S_ROWS
#error "engine: S_ROWS (elems of rows a work-item holds) is not defined"
#endif
#ifndef S_COLS
#error "engine: S_COLS (score columns a work-item holds in each of its rows) is not defined"
#endif
#ifndef O_COLS
#error "engine: O_COLS (output columns a work-item holds in each of its rows) is not defined"
#endif
#if !defined(FOR_ROWS) || !defined(FOR_S_COLS) || !defined(FOR_O_COLS)
#error "engine: FOR_ROWS(r), FOR_S_COLS(c) and FOR_O_COLS(c) must be defined"
#endif
#if !defined(S_GET) || !defined(S_SET) || !defined(O_GET) || !defined(O_SET)
#error "engine: S_GET, S_SET, O_GET and O_SET must be defined"
#endif
#if !defined(ENGINE_ROW) || !defined(ENGINE_S_COL) || !defined(ENGINE_O_COL)
#error "engine: ENGINE_ROW(e, r), ENGINE_S_COL(e, c) and ENGINE_O_COL(e, c) must be defined"
#endif
#ifndef ENGINE_OWNS_ROWS
#error "engine: ENGINE_OWNS_ROWS(e) (true in one work-item of those that share a row) is not defined"
#endif
#ifndef ENGINE_LOCAL
#error "engine: ENGINE_LOCAL(e) (declares local memory at kernel scope) is not defined"
#endif
#ifndef EXP2
#error "engine: EXP2(x) (0 for -inf, NaN for NaN) is not defined"
#endif
#if defined(ENGINE_OPEN_END) && (!defined(ENGINE_SLACK) || !defined(ENGINE_ANY) || LANES != 1)
#error "engine: ENGINE_OPEN_END wants ENGINE_SLACK(e), ENGINE_ANY(c) and LANES 1"
#endif
#if defined(ENGINE_BIAS) && (!defined(ENGINE_SEEN) || LANES != 1)
#error "engine: ENGINE_BIAS wants ENGINE_SEEN(e, r) and LANES 1"
#endif
#if defined(ENGINE_POWER) != defined(ENGINE_BASE_TWO)
#error "engine: ENGINE_POWER(e, x, y) and ENGINE_BASE_TWO(e, x) go together"
#endif
#if defined(ENGINE_IS_LARGE) && (!defined(ENGINE_POWER) || !defined(ENGINE_ANY) || LANES != 1)
#error "engine: ENGINE_IS_LARGE(y) wants ENGINE_POWER(e, x, y), ENGINE_ANY(c) and LANES 1"
#endif
