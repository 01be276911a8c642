/* SPDX-License-Identifier: Apache-2.0
 * Copies rows of Q, K or V to local memory, 16 bytes at a time. Included by cl/engines/nvidia/mma/nv_mma.cl.
 */
#if ELEM_BYTES == 4
typedef uint nv_element;
#else
typedef ushort nv_element;
#endif

/* Which work-items copy a matrix: the whole group, or with few rows each warp the keys that only it reads. */
#if KEY_WARPS > 1
#define STAGE_ITEMS 32
#define STAGE_ITEM ((int)get_local_id(0) % 32)
#define STAGE_COPY(to, from, bytes) ptx_copy_once(to, from, bytes)
#else
#define STAGE_ITEMS WORK_GROUP
#define STAGE_ITEM ((int)get_local_id(0))
#define STAGE_COPY(to, from, bytes) ptx_copy(to, from, bytes)
#endif

/* Element (row, col) of one tile's matrix is at data + row * row_step + col * col_step. */
typedef struct {
    __global const nv_element *data;
    long row_step, col_step;
    long head_step; /* rows are queries of `pack` adjacent heads, as in cl/tile.cl */
    int pack;
    int whole; /* pieces of 16 bytes are contiguous and aligned; the same for the whole call, so the branch is uniform */
} nv_matrix;

FN void nv_matrix_set(nv_matrix *m, __global const void *data, long at, const tensor_view view, int pack)
{
    m->data = (__global const nv_element *)data + at;
    m->row_step = view.seq;
    m->col_step = view.dim;
    m->head_step = pack == 1 ? 0 : view.head;
    m->pack = pack;
    m->whole =
        view.dim == 1 && (((size_t)m->data | (size_t)(view.seq * ELEM_BYTES) | (size_t)(m->head_step * ELEM_BYTES)) & 15) == 0;
}

FN __global const nv_element *nv_matrix_row(const nv_matrix *m, int row)
{
    return m->data + (m->pack == 1 ? row * m->row_step : row / m->pack * m->row_step + row % m->pack * m->head_step);
}

/* 16 bytes of a row, for any strides. */
FN uint4 stage_scattered(const nv_matrix *m, int row, int col0, int width)
{
    __global const nv_element *from = nv_matrix_row(m, row);
    uint x[4];
    UNROLL for (int i = 0; i < 4; i++)
    {
        const int col = col0 + i * PIECE / 4;
        x[i] = col < width ? from[col * m->col_step] : 0u;
#if ELEM_BYTES == 2
        x[i] |= col + 1 < width ? (uint)from[(col + 1) * m->col_step] << 16 : 0u;
#endif
    }
    return (uint4)(x[0], x[1], x[2], x[3]);
}

/* Copies rows [row0, row0 + rows) and `cols` columns of the matrix, one row every `stride` bytes. Rows outside [first, last)
 * and columns past `width` become 0. rows, cols, stride and width are constants after inlining. */
FN void stage_any(uint to, const nv_matrix *m, int rows, int cols, int stride, int width, int row0, int first, int last)
{
    const int pieces = cols / PIECE;
    for (int i = ptx_here(STAGE_ITEM); i < rows * pieces; i += STAGE_ITEMS) {
        const int r = i / pieces, col = i % pieces * PIECE, row = row0 + r;
        const int bytes = row >= first && row < last ? clamp(ELEM_BYTES * (width - col), 0, 16) : 0;
        const uint at = to + (uint)(r * stride + col * ELEM_BYTES);
        if (m->whole) {
            STAGE_COPY(at, bytes ? nv_matrix_row(m, row) + col : m->data, (uint)bytes);
        } else {
            ptx_store(at, bytes ? stage_scattered(m, row, col, width) : (uint4)(0u));
        }
    }
}

/* The same for rows that exist and are aligned, and columns without padding: `lanes` work-items copy a row. A copy can be done
 * in STAGE_PIECES(rows, cols) pieces, overlapped with other instructions. */
#define STAGE_LANES(cols) ((cols) / PIECE & -((cols) / PIECE))
#define STAGE_DOWN(cols) (STAGE_ITEMS / STAGE_LANES(cols))
#define STAGE_ACROSS(cols) ((cols) / PIECE / STAGE_LANES(cols))
#define STAGE_PIECES(rows, cols) ((rows) / STAGE_DOWN(cols) * STAGE_ACROSS(cols))
typedef struct {
    uint to;
    __global const nv_element *from;
    long step;
} nv_copy;

FN void nv_copy_begin(nv_copy *c, uint to, const nv_matrix *m, int cols, int stride, int row0)
{
    const int r0 = STAGE_ITEM / STAGE_LANES(cols), col0 = STAGE_ITEM % STAGE_LANES(cols) * PIECE;
    c->to = to + (uint)(r0 * stride + col0 * ELEM_BYTES);
    c->from = m->data + (row0 + r0) * m->row_step + col0;
    c->step = STAGE_DOWN(cols) * m->row_step;
}
/* Pieces must be copied in order. */
FN void nv_copy_piece(nv_copy *c, int cols, int stride, int i)
{
    const int r = i / STAGE_ACROSS(cols), across = i % STAGE_ACROSS(cols);
    STAGE_COPY(c->to + (uint)(r * STAGE_DOWN(cols) * stride + across * STAGE_LANES(cols) * PIECE * ELEM_BYTES),
               c->from + across * STAGE_LANES(cols) * PIECE, 16);
    if (across == STAGE_ACROSS(cols) - 1) {
        c->from += c->step;
    }
}
/* Copies share number `share` of `shares` of all pieces. */
FN void nv_copy_share(nv_copy *c, int rows, int cols, int stride, int share, int shares)
{
    const int pieces = STAGE_PIECES(rows, cols);
    UNROLL for (int i = pieces * share / shares; i < pieces * (share + 1) / shares; i++) { nv_copy_piece(c, cols, stride, i); }
}
FN void stage_whole(uint to, const nv_matrix *m, int rows, int cols, int stride, int row0)
{
    nv_copy c;
    nv_copy_begin(&c, to, m, cols, stride, row0);
    UNROLL for (int i = 0; i < STAGE_PIECES(rows, cols); i++) { nv_copy_piece(&c, cols, stride, i); }
}
FN int stages_whole(const nv_matrix *m, int rows, int cols, int width)
{
    return m->whole && width == cols && rows % STAGE_DOWN(cols) == 0;
}

/* Copies the fast way where it applies, else the general way. */
FN void stage(uint to, const nv_matrix *m, int rows, int cols, int stride, int width, int row0, int first, int last)
{
    if (stages_whole(m, rows, cols, width) && row0 >= first && row0 + rows <= last) {
        stage_whole(to, m, rows, cols, stride, row0);
    } else {
        stage_any(to, m, rows, cols, stride, width, row0, first, last);
    }
}
