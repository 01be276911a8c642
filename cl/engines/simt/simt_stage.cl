/* SPDX-License-Identifier: Apache-2.0
 * Copies a piece of a matrix in global memory to local memory. Included by cl/engines/simt/simt.cl only.
 *
 * The element at (row, col) of the piece goes to row * row_place + col * col_place; one of these two factors is 1. There are
 * three methods. The kernel source includes those that the plan's strides can need (K_BY_FOUR, V_BY_FOUR, K_ALONG_KEYS,
 * V_ALONG_KEYS). Whether a call's addresses are aligned is a uniform branch.
 *
 *         stage_quads      four elements adjacent in memory stay adjacent: copies of 16 bytes
 *         stage_crosswise  four elements adjacent in memory are read at once and stored apart
 *         stage_elements   any strides; NVIDIA's copies of 4 bytes need no registers and store apart at no cost
 *
 * Work-items form bands along the axis that is contiguous in memory, and step by whole bands. So the loops contain no division
 * and few multiplications. Rows outside [first, last) and columns past `width` become 0.
 */
#ifdef COPY_ASM
FN void copy_quad(__local float *to, __global const void *from, int there)
{
    __asm__ volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                     :
                     : "r"((uint)(size_t)to), "l"((ulong)from), "r"(there ? 16 : 0)
                     : "memory");
}
FN void copy_element(__local float *to, __global const void *from, int there)
{
    __asm__ volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;"
                     :
                     : "r"((uint)(size_t)to), "l"((ulong)from), "r"(there ? 4 : 0)
                     : "memory");
}
#define STAGED_WAIT() __asm__ volatile("cp.async.wait_all;" : : : "memory")
#define COPIES(type) ((type) == FP32)
#else
#define STAGED_WAIT()
#define COPIES(type) 0
#endif

/* `type` is a constant after inlining. */
FN float4 load_four(int type, __global const void *p, long i)
{
    if (type == FP32) {
        return *(__global const float4 *)((__global const float *)p + i);
    }
    if (type == FP16) {
        return vloada_half4(0, (__global const half *)p + i);
    }
    return as_float4(convert_uint4(*(__global const ushort4 *)((__global const ushort *)p + i)) << 16);
}

FN void stage_one(__local float *to, const matrix *m, int type, long at, int there)
{
#ifdef COPY_ASM
    if (COPIES(type)) {
        copy_element(to, (__global const float *)m->data + at, there);
        return;
    }
#endif
    *to = there ? load_any(type, m->data, at) : 0.0f;
}

/* The parameters of a piece: its position in the matrix and in local memory. All but row0, first, last and col0 are
 * constants. */
#define PIECE_PARAMETERS                                                                                                       \
    __local float *to, const matrix *m, int type, int rows, int cols, int row_place, int col_place, int width, int row0,       \
        int first, int last, int col0
#define PIECE to, m, type, rows, cols, row_place, col_place, width, row0, first, last, col0

/* Bands of 8 along a row and WORK_GROUP / 8 down. */
FN void stage_elements_by_rows(PIECE_PARAMETERS, long col_step)
{
    const int down = WORK_GROUP / 8, c0 = (int)get_local_id(0) % 8;
    ROLLED
    for (int r = (int)get_local_id(0) / 8; r < rows; r += down) {
        const int row = row0 + r, there = row >= first && row < last;
        const long at = matrix_row(m, there ? row : first) + (col0 + c0) * col_step;
        __local float *const place = to + r * row_place + c0 * col_place;
        UNROLL_LOADS
        for (int c = 0; c < cols; c += 8) {
            if (cols % 8 == 0 || c0 + c < cols) {
                stage_one(place + c * col_place, m, type, at + c * col_step, there && col0 + c0 + c < width);
            }
        }
    }
}
/* Bands of 8 down and WORK_GROUP / 8 along a row, where adjacent rows are contiguous in memory. */
FN void stage_elements_by_cols(PIECE_PARAMETERS)
{
    const int along = WORK_GROUP / 8, r0 = (int)get_local_id(0) % 8;
    ROLLED
    for (int c = (int)get_local_id(0) / 8; c < cols; c += along) {
        const long at = m->at + row0 + r0 + (col0 + c) * m->col_step;
        __local float *const place = to + r0 * row_place + c * col_place;
        UNROLL_LOADS
        for (int r = 0; r < rows; r += 8) {
            const int row = row0 + r0 + r;
            if (rows % 8 == 0 || r0 + r < rows) {
                stage_one(place + r * row_place, m, type, at + r, row >= first && row < last && col0 + c < width);
            }
        }
    }
}
FN void stage_elements(PIECE_PARAMETERS, int along_rows)
{
    if (along_rows) {
        stage_elements_by_cols(PIECE);
    } else if (m->col_step == 1) {
        stage_elements_by_rows(PIECE, 1);
    } else {
        stage_elements_by_rows(PIECE, m->col_step);
    }
}

/* Copies four elements along the contiguous axis, of which the first `count` exist. */
FN void stage_quad(__local float *to, const matrix *m, int type, long at, int count)
{
#ifdef COPY_ASM
    if (COPIES(type) && (count >= 4 || count <= 0)) {
        copy_quad(to, (__global const float *)m->data + at, count > 0);
        return;
    }
#endif
    if (count >= 4) {
        *(__local float4 *)to = load_four(type, m->data, at);
        return;
    }
    UNROLL_REGISTERS
    for (int i = 0; i < 4; i++) {
        to[i] = i < count ? load_any(type, m->data, at + i) : 0.0f;
    }
}

/* Along rows: bands of 8 quads and WORK_GROUP / 8 rows. */
FN void stage_quads_of_rows(PIECE_PARAMETERS)
{
    const int down = WORK_GROUP / 8, c0 = (int)get_local_id(0) % 8 * 4;
    UNROLL_BANDS
    for (int r = (int)get_local_id(0) / 8; r < rows; r += down) {
        const int row = row0 + r, there = row >= first && row < last;
        const long at = m->at + (there ? row : first) * m->row_step + col0 + c0;
        UNROLL_LOADS
        for (int c = 0; c < cols; c += 32) {
            if (cols % 32 == 0 || c0 + c < cols) {
                stage_quad(to + r * row_place + c0 + c, m, type, at + c, there ? width - (col0 + c0 + c) : 0);
            }
        }
    }
}
/* Down columns: bands of 8 quads and WORK_GROUP / 8 columns. A quad that starts before `first` is copied element by element. */
FN void stage_quads_of_cols(PIECE_PARAMETERS)
{
    const int along = WORK_GROUP / 8, r0 = (int)get_local_id(0) % 8 * 4;
    UNROLL_BANDS
    for (int c = (int)get_local_id(0) / 8; c < cols; c += along) {
        const int there = col0 + c < width;
        const long at = m->at + row0 + r0 + (there ? col0 + c : 0) * m->col_step;
        UNROLL_LOADS
        for (int r = 0; r < rows; r += 32) {
            const int row = row0 + r0 + r;
            __local float *const place = to + r0 + r + c * col_place;
            if (rows % 32 == 0 || r0 + r < rows) {
                if (row >= first || row + 4 <= first) {
                    stage_quad(place, m, type, at + r, there && row >= first ? last - row : 0);
                } else {
                    UNROLL_REGISTERS
                    for (int i = 0; i < 4; i++) {
                        place[i] = there && row + i >= first && row + i < last ? load_any(type, m->data, at + r + i) : 0.0f;
                    }
                }
            }
        }
    }
}

/* Quads of rows, stored apart: bands of 4 quads and WORK_GROUP / 4 rows. */
FN void stage_crosswise_rows(PIECE_PARAMETERS)
{
    const int down = WORK_GROUP / 4, c0 = (int)get_local_id(0) % 4 * 4;
    for (int r = (int)get_local_id(0) / 4; r < rows; r += down) {
        const int row = row0 + r, there = row >= first && row < last;
        const long at = m->at + (there ? row : first) * m->row_step + col0 + c0;
        UNROLL_LOADS
        for (int c = 0; c < cols; c += 16) {
            const int left = there ? width - (col0 + c0 + c) : 0;
            float x[4] = {0.0f, 0.0f, 0.0f, 0.0f};
            if (left >= 4) {
                const float4 y = load_four(type, m->data, at + c);
                x[0] = y.x, x[1] = y.y, x[2] = y.z, x[3] = y.w;
            } else {
                UNROLL_REGISTERS
                for (int i = 0; i < 3; i++) {
                    x[i] = i < left ? load_any(type, m->data, at + c + i) : 0.0f;
                }
            }
            if (cols % 16 == 0 || c0 + c < cols) {
                UNROLL_REGISTERS
                for (int i = 0; i < 4; i++) {
                    to[r * row_place + (c0 + c + i) * col_place] = x[i];
                }
            }
        }
    }
}
/* Quads of columns, stored apart: bands of 4 quads and WORK_GROUP / 4 columns. */
FN void stage_crosswise_cols(PIECE_PARAMETERS)
{
    const int along = WORK_GROUP / 4, r0 = (int)get_local_id(0) % 4 * 4;
    for (int c = (int)get_local_id(0) / 4; c < cols; c += along) {
        const int there = col0 + c < width;
        const long at = m->at + row0 + r0 + (there ? col0 + c : 0) * m->col_step;
        UNROLL_LOADS
        for (int r = 0; r < rows; r += 16) {
            const int row = row0 + r0 + r;
            float x[4] = {0.0f, 0.0f, 0.0f, 0.0f};
            if (there && row >= first && row + 4 <= last) {
                const float4 y = load_four(type, m->data, at + r);
                x[0] = y.x, x[1] = y.y, x[2] = y.z, x[3] = y.w;
            } else {
                UNROLL_REGISTERS
                for (int i = 0; i < 4; i++) {
                    x[i] = there && row + i >= first && row + i < last ? load_any(type, m->data, at + r + i) : 0.0f;
                }
            }
            if (rows % 16 == 0 || r0 + r < rows) {
                UNROLL_REGISTERS
                for (int i = 0; i < 4; i++) {
                    to[(r0 + r + i) * row_place + c * col_place] = x[i];
                }
            }
        }
    }
}

/* Local memory holds K and Q column by column, and V (with K_BY_ROWS also K) row by row. Q is copied once a tile, so any method
 * is fast enough. */
FN void stage_k(PIECE_PARAMETERS)
{
#if K_BY_FOUR && (K_BY_ROWS || K_ALONG_KEYS || !COPIES(K_TYPE))
    if (m->aligned) {
#if K_BY_ROWS
        stage_quads_of_rows(PIECE);
#elif K_ALONG_KEYS
        stage_quads_of_cols(PIECE);
#else
        stage_crosswise_rows(PIECE);
#endif
        return;
    }
#endif
    stage_elements(PIECE, K_ALONG_KEYS);
}
FN void stage_v(PIECE_PARAMETERS)
{
#if V_BY_FOUR && !(V_ALONG_KEYS && COPIES(V_TYPE))
    if (m->aligned) {
#if V_ALONG_KEYS
        stage_crosswise_cols(PIECE);
#else
        stage_quads_of_rows(PIECE);
#endif
        return;
    }
#endif
    stage_elements(PIECE, V_ALONG_KEYS);
}
