/* SPDX-License-Identifier: Apache-2.0
 * Copies a piece of a matrix in global memory to local memory as float4 rows. Included by cl/engines/simt.cl only.
 *
 * How the work-items walk over the piece follows from strides and addresses, which are numbers of the call: a uniform branch.
 * STAGE_WALKS says which ways the text holds: 0 elements only, 1 elements and float4 along a row, 2 all.
 */
#define WALK_ROWS 0         /* neighbours in a row, one element each: any strides */
#define WALK_COLS 1         /* neighbours in a column: the sequence axis is the contiguous one */
#define WALK_ROWS_BY_FOUR 2 /* four elements of a row at a time, aligned */
#define WALK_COLS_BY_FOUR 3

#ifdef COPY_ASM
FN void copy_quad(__local float4 *to, __global const void *from, int there)
{
    __asm__ volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                     :
                     : "r"((uint)(size_t)to), "l"((ulong)from), "r"(there ? 16 : 0)
                     : "memory");
}
#define STAGED_WAIT() __asm__ volatile("cp.async.wait_all;" : : : "memory")
#else
#define STAGED_WAIT()
#endif

/* `type` is a constant where this is inlined. */
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

FN int matrix_walk(const matrix *m, int type)
{
    const size_t size = type == FP32 ? 4 : 2;
    /* The address is taken as a number: a call may start at any element of its buffer. */
    const int aligned = (((size_t)m->data + (size_t)m->at * size) & (4 * size - 1)) == 0;
    const int by_four = STAGE_WALKS > 0 && aligned && (m->head_step & 3) == 0;
    if (STAGE_WALKS != 1 && m->row_step == 1 && m->col_step != 1 && m->pack == 1) {
        return by_four && (m->col_step & 3) == 0 ? WALK_COLS_BY_FOUR : WALK_COLS;
    }
    return by_four && m->col_step == 1 && (m->row_step & 3) == 0 ? WALK_ROWS_BY_FOUR : WALK_ROWS;
}

FN void matrix_set(matrix *m, __global const void *data, long at, const tensor_view view, int pack, int type)
{
    m->data = data;
    m->at = at;
    m->row_step = view.seq;
    m->col_step = view.dim;
    m->head_step = pack == 1 ? 0 : view.head;
    m->pack = pack;
    m->walk = matrix_walk(m, type);
}

/* Row r of a piece lies at place r % deal * (rows / deal) + r / deal: dealt out, so that the `deal` neighbours that one
 * work-item of the product reads are far apart and what neighbouring work-items read at once is near. */
#define PLACE(r) ((r) % deal * (rows / deal) + (r) / deal)

FN void stage_by_one(__local float *to, const matrix *m, int type, int deal, int rows, int cols, int stride, int width,
                     int row0, int first, int last, int col0)
{
    /* Along a column eight at a time: a whole sector of memory, at most eight ways in conflict in local memory. */
    const int along_cols = STAGE_WALKS != 1 && m->walk == WALK_COLS;
    const int together = rows % 8 == 0 ? 8 : 4;
    for (int i = (int)get_local_id(0); i < rows * cols; i += WORK_GROUP) {
        const int r = along_cols ? i % together + i / (together * cols) * together : i / cols;
        const int c = along_cols ? i / together % cols : i % cols;
        const int row = row0 + r, col = col0 + c;
        float x = 0.0f;
        if (row >= first && row < last && col < width) {
            x = load_any(type, m->data, matrix_row(m, row) + col * m->col_step);
        }
        to[PLACE(r) * stride * 4 + c] = x;
    }
}

/* Four elements of a row, fewer at the end of a row whose length is no multiple of four. */
FN float4 load_tail(int type, int width, __global const void *p, long i)
{
    float4 x = (float4)(0.0f);
    x.x = load_any(type, p, i);
    x.y = width % 4 > 1 ? load_any(type, p, i + 1) : 0.0f;
    x.z = width % 4 > 2 ? load_any(type, p, i + 2) : 0.0f;
    return x;
}

/* One quad of a row: `col` is its first column, `at` its element in the matrix. */
FN void stage_quad(__local float4 *place, const matrix *m, int type, int width, long at, int col, int there)
{
    const int tail = width % 4 != 0 && there && col + 4 > width;
#ifdef COPY_ASM
    if (type == FP32 && !tail) {
        copy_quad(place, (__global const float *)m->data + at, there);
    } else
#endif
    {
        float4 x = (float4)(0.0f);
        if (tail) {
            x = load_tail(type, width, m->data, at);
        } else if (there) {
            x = load_four(type, m->data, at);
        }
        *place = x;
    }
}

/* Where a step of all work-items covers whole rows, a work-item stays in its column and goes down by as many rows: nothing is
 * multiplied or divided on the way. Addresses may lie outside the matrix where nothing is read. */
FN void stage_rows_in_steps(__local float4 *to, const matrix *m, int type, int deal, int rows, int cols, int stride, int width,
                            int row0, int first, int last, int col0)
{
    const int quads = cols / 4, down = WORK_GROUP / quads, steps = (rows + down - 1) / down;
    const int r0 = (int)get_local_id(0) / quads, c = (int)get_local_id(0) % quads, col = col0 + c * 4;
    const long at0 = m->at + (row0 + r0) * m->row_step + col, at_step = down * m->row_step;
    const uint before = (uint)(row0 + r0 - first), seen = col < width ? (uint)(last - first) : 0;
    __local float4 *const place = to + PLACE(r0) * stride + c;
    UNROLL_LOADS
    for (int step = 0; step < steps; step++) {
        if (rows % down == 0 || r0 + step * down < rows) {
            const int there = before + (uint)(step * down) < seen;
            stage_quad(place + step * (down / deal) * stride, m, type, width, at0 + step * at_step, col, there);
        }
    }
}

FN void stage_rows_by_four(__local float4 *to, const matrix *m, int type, int deal, int rows, int cols, int stride, int width,
                           int row0, int first, int last, int col0)
{
    const int quads = cols / 4, count = rows * quads;
    if (m->pack == 1 && WORK_GROUP % quads == 0 && WORK_GROUP / quads % deal == 0) {
        stage_rows_in_steps(to, m, type, deal, rows, cols, stride, width, row0, first, last, col0);
        return;
    }
    UNROLL_LOADS
    for (int step = 0; step < (count + WORK_GROUP - 1) / WORK_GROUP; step++) {
        const int i = (int)get_local_id(0) + step * WORK_GROUP;
        if (count % WORK_GROUP == 0 || i < count) {
            const int r = i / quads, c = i % quads;
            const int row = row0 + r, col = col0 + c * 4;
            const int there = row >= first && row < last && col < width;
            const long at = matrix_row(m, there ? row : first) + (there ? col : 0);
            stage_quad(to + PLACE(r) * stride + c, m, type, width, at, col, there);
        }
    }
}

FN void stage_cols_by_four(__local float *to, const matrix *m, int type, int deal, int rows, int cols, int stride, int width,
                           int row0, int first, int last, int col0)
{
    /* Groups of up to four quads (64 bytes of fp32) along a column, then the next column. */
    const int together = rows % 16 == 0 ? 4 : 1, count = rows / 4 * cols;
    UNROLL_LOADS
    for (int step = 0; step < (count + WORK_GROUP - 1) / WORK_GROUP; step++) {
        const int i = (int)get_local_id(0) + step * WORK_GROUP;
        if (count % WORK_GROUP == 0 || i < count) {
            const int r = (i % together + i / (together * cols) * together) * 4, c = i / together % cols;
            const int row = row0 + r, col = col0 + c;
            float x[4] = {0.0f, 0.0f, 0.0f, 0.0f};
            if (col < width) {
                const long at = m->at + row + col * m->col_step;
                if (row >= first && row + 4 <= last) {
                    const float4 y = load_four(type, m->data, at);
                    x[0] = y.x, x[1] = y.y, x[2] = y.z, x[3] = y.w;
                } else {
                    UNROLL_REGISTERS
                    for (int j = 0; j < 4; j++) {
                        x[j] = row + j >= first && row + j < last ? load_any(type, m->data, at + j) : 0.0f;
                    }
                }
            }
            UNROLL_REGISTERS
            for (int j = 0; j < 4; j++) {
                to[PLACE(r + j) * stride * 4 + c] = x[j];
            }
        }
    }
}

/* Rows [row0, row0 + rows) and columns [col0, col0 + cols) of the matrix; rows outside [first, last) and columns past `width`
 * are 0. rows, cols, stride (in float4), deal, type and width are constants where this is inlined. */
FN void stage(__local float4 *to, const matrix *m, int type, int deal, int rows, int cols, int stride, int width, int row0,
              int first, int last, int col0)
{
    if (STAGE_WALKS >= 2 && m->walk == WALK_COLS_BY_FOUR) {
        stage_cols_by_four((__local float *)to, m, type, deal, rows, cols, stride, width, row0, first, last, col0);
    } else if (STAGE_WALKS >= 1 && m->walk == WALK_ROWS_BY_FOUR) {
        stage_rows_by_four(to, m, type, deal, rows, cols, stride, width, row0, first, last, col0);
    } else {
        stage_by_one((__local float *)to, m, type, deal, rows, cols, stride, width, row0, first, last, col0);
    }
}
