/* SPDX-License-Identifier: Apache-2.0
 * Attention without fusion, in three kernels around a matrix of batch x heads_q x seq_q x seq_kv floats in the workspace:
 * scores, softmax along its rows, weights times V. It is what the fused engines are measured against, and a second witness of
 * what they compute: it shares the lengths and the diagonal with them, and neither tiling nor softmax.
 */

/* Rows of one head that a group works on. Query i sees keys i + low ... i + high, of the first `keys`. */
typedef struct {
    int batch, head, row0, rows;
    int low, high, keys;
} block;

FN void block_decode(block *b, const launch_args *a, const option_data *options, long head_of_batch, int row0, int max_rows)
{
    tile t;
    b->batch = (int)(head_of_batch / a->heads_q);
    b->head = (int)(head_of_batch % a->heads_q);
    b->row0 = row0;
    b->rows = min(max_rows, a->seq_q - row0);
    tile_sequence(&t, a, options, b->batch);
    b->low = t.diagonal_low;
    b->high = t.diagonal_high;
    b->keys = t.kv_length;
}

FN long head_offset(const tensor_view v, const block *b, int head) { return v.base + b->batch * v.batch + head * v.head; }

/* Where a row of the matrix begins in the workspace. */
FN long matrix_row(const launch_args *a, const block *b, int row)
{
    return a->workspace + (((long)b->batch * a->heads_q + b->head) * a->seq_q + b->row0 + row) * a->seq_kv;
}

/* Part of a matrix row, of which `count` columns are left: what is beyond them reads as -inf and is not written. */
FN elem load_elem(__global const float *p, int count)
{
    if (count >= LANES) {
        return LOAD_ELEM(p);
    }
    float part[LANES];
    for (int lane = 0; lane < LANES; lane++) {
        part[lane] = lane < count ? p[lane] : -INFINITY;
    }
    return LOAD_ELEM(part);
}

FN void store_elem(elem x, __global float *p, int count)
{
    if (count >= LANES) {
        STORE_ELEM(x, p);
    } else {
        for (int lane = 0; lane < count; lane++) {
            p[lane] = LANE(x, lane);
        }
    }
}

/* S = scale * Q * K^T, -inf where a key is hidden. A group a tile of the matrix. */
__kernel __attribute__((reqd_work_group_size(WORK_GROUP, 1, 1))) void unfused_scores(KERNEL_PARAMETERS)
{
    const option_data options = OPTION_DATA;
    DECLARE_PANELS(left, right)
    elem acc[ACC_SIZE], sums[ACC_SIZE];
    const int item = (int)get_local_id(0);
    const long group = (long)get_group_id(0);
    const int tiles_n = max(1, (args.seq_kv + BLOCK_N - 1) / BLOCK_N), tiles_m = (args.seq_q + BLOCK_M - 1) / BLOCK_M;
    const int key0 = (int)(group % tiles_n) * BLOCK_N;
    block b;
    block_decode(&b, &args, &options, group / tiles_n / tiles_m, (int)(group / tiles_n % tiles_m) * BLOCK_M, BLOCK_M);
    const int rows = ROUND_UP(b.rows, ROWS * ITEMS);
    const long q_at = head_offset(args.q, &b, b.head) + b.row0 * args.q.seq;
    const long k_at = head_offset(args.k, &b, b.head / args.group) + key0 * args.k.seq;
    FOR_ACC(i) { acc[i] = (elem)(0.0f); }
    for (int d = 0; d < HEAD_DIM; d += DEPTH) {
        const int depth = min(DEPTH, HEAD_DIM - d);
        const matrix q = {q_at + d * args.q.dim, args.q.seq, args.q.dim, b.rows, depth};
        const matrix k = {k_at + d * args.k.dim, args.k.seq, args.k.dim, args.seq_kv - key0, depth};
        stage_q(AS_FLOATS(left), LEFT_PITCH, 1, rows, ROUND_UP(depth, 4), ALONG(DEPTH), q_data, q, item);
        stage_k(AS_FLOATS(right), 1, RIGHT_PITCH * LANES, BLOCK_N, ROUND_UP(depth, 4), ALONG(DEPTH), k_data, k, item);
        GROUP_BARRIER();
        multiply_panels(AS_FLOATS(left), right, acc, rows, depth, item);
        GROUP_BARRIER();
    }
    FOR_ACC(i) { sums[i] = acc[i]; }
    for (int i = 0; i < ACC_SIZE; i++) {
        const int row = ACC_ROW(i, item), key = key0 + ACC_COL(i, item);
        if (row < b.rows && key < args.seq_kv) {
            const index keys = (index)(key) + LANE_NUMBERS;
            const index first = (index)(b.row0 + row + b.low), last = (index)(b.row0 + row + b.high);
            const index seen = (keys >= first) & (keys <= last) & (keys < (index)(b.keys));
            const elem s = PICK(seen, clamp_score(sums[i] * args.scale), (elem)(-INFINITY));
            store_elem(s, workspace + matrix_row(&args, &b, row) + key, args.seq_kv - key);
        }
    }
}

/* Folds x over its lanes and over the work-items of the group; each gets the result. A maximum passes over NaN. */
#define MAX_OF(a, b) ((b) > (a) ? (b) : (a))
#define SUM_OF(a, b) ((a) + (b))
#define DEFINE_FOLD(name, fold)                                                                                                \
    FN float name(const elem x, PANEL float *shared, int item)                                                                 \
    {                                                                                                                          \
        float y = LANE(x, 0);                                                                                                  \
        for (int lane = 1; lane < LANES; lane++) {                                                                             \
            y = fold(y, LANE(x, lane));                                                                                        \
        }                                                                                                                      \
        shared[item] = y;                                                                                                      \
        for (int half_group = WORK_GROUP / 2; half_group > 0; half_group /= 2) {                                               \
            GROUP_BARRIER();                                                                                                   \
            if (item < half_group) {                                                                                           \
                shared[item] = fold(shared[item], shared[item + half_group]);                                                  \
            }                                                                                                                  \
        }                                                                                                                      \
        GROUP_BARRIER();                                                                                                       \
        y = shared[0];                                                                                                         \
        GROUP_BARRIER();                                                                                                       \
        return y;                                                                                                              \
    }
DEFINE_FOLD(fold_max, MAX_OF)
DEFINE_FOLD(fold_sum, SUM_OF)

/* Turns row `row` of the block into weights that sum to 1 (0 everywhere in a row that sees nothing), in place. Natural
 * exponentials: the factor of a fused engine's base two is no part of this witness. */
FN void softmax_row(const launch_args *a, const block *b, int row, __global float *matrix_data, __global float *lse_data,
                    __global float *scores_data, PANEL float *shared, int item)
{
    __global float *const s = matrix_data + matrix_row(a, b, row);
    elem largest = (elem)(-INFINITY), sum = (elem)(0.0f);
    for (int j = item * LANES; j < a->seq_kv; j += WORK_GROUP * LANES) {
        const elem x = load_elem(s + j, a->seq_kv - j);
        largest = LARGER(largest, x);
    }
    const float m = fold_max(largest, shared, item);
    const float base = m == -INFINITY ? 0.0f : m;
    for (int j = item * LANES; j < a->seq_kv; j += WORK_GROUP * LANES) {
        const elem p = exp(load_elem(s + j, a->seq_kv - j) - base);
        store_elem(p, s + j, a->seq_kv - j);
        sum += p;
    }
    const float l = fold_sum(sum, shared, item);
    const float inverse = 1.0f / (l == 0.0f ? 1.0f : l);
    const long out = head_offset(a->scores, b, b->head) + (b->row0 + row) * a->scores.seq;
    for (int j = item * LANES; j < a->seq_kv; j += WORK_GROUP * LANES) {
        const elem weight = load_elem(s + j, a->seq_kv - j) * inverse;
        store_elem(weight, s + j, a->seq_kv - j);
        if (a->has_scores) {
            for (int lane = 0; lane < min(LANES, a->seq_kv - j); lane++) {
                scores_data[out + (j + lane) * a->scores.dim] = LANE(weight, lane);
            }
        }
    }
    if (a->has_lse && item == 0) {
        lse_data[head_offset(a->lse, b, b->head) + (b->row0 + row) * a->lse.seq] = l == 0.0f ? -INFINITY : m + log(l);
    }
}

/* A group a block of rows, one after another. */
__kernel __attribute__((reqd_work_group_size(WORK_GROUP, 1, 1))) void unfused_softmax(KERNEL_PARAMETERS)
{
    const option_data options = OPTION_DATA;
    PANEL float shared[WORK_GROUP];
    const int blocks = (args.seq_q + SOFTMAX_ROWS - 1) / SOFTMAX_ROWS;
    const long group = (long)get_group_id(0);
    block b;
    block_decode(&b, &args, &options, group / blocks, (int)(group % blocks) * SOFTMAX_ROWS, SOFTMAX_ROWS);
    for (int row = 0; row < b.rows; row++) {
        softmax_row(&args, &b, row, workspace, lse_data, scores_data, shared, (int)get_local_id(0));
    }
}

/* One element of the product over the keys that the row sees, so that NaN or infinity in V of a hidden key leaves no trace. */
FN float seen_product(const launch_args *a, __global const float *p, __global const void *v_data, long v_at)
{
    float sum = 0.0f;
    for (int j = 0; j < a->seq_kv; j++) {
        if (p[j] != 0.0f) {
            sum = MULTIPLY_ADD(p[j], LOAD_V(v_data, v_at + j * a->v.seq), sum);
        }
    }
    return sum;
}

FN void store_output(const launch_args *a, const block *b, int col0, const elem *sums, __global const float *matrix_data,
                     __global const void *v_data, __global void *o_data, int item)
{
    const long v_at = head_offset(a->v, b, b->head / a->group);
    for (int i = 0; i < ACC_SIZE; i++) {
        const int row = ACC_ROW(i, item), col = col0 + ACC_COL(i, item);
        if (row < b->rows) {
            const long at = head_offset(a->o, b, b->head) + (b->row0 + row) * a->o.seq;
            for (int lane = 0; lane < min(LANES, HEAD_DIM_V - col); lane++) {
                float x = LANE(sums[i], lane);
                /* 0 * NaN is NaN: whether this one is a hidden key's is seen key by key. */
                if (isnan(x)) {
                    x = seen_product(a, matrix_data + matrix_row(a, b, row), v_data, v_at + (col + lane) * a->v.dim);
                }
                STORE_O(x, o_data, at + (col + lane) * a->o.dim);
            }
        }
    }
}

/* O = P * V. A group a block of rows, with all columns. */
__kernel __attribute__((reqd_work_group_size(WORK_GROUP, 1, 1))) void unfused_output(KERNEL_PARAMETERS)
{
    const option_data options = OPTION_DATA;
    DECLARE_PANELS(left, right)
    elem acc[ACC_SIZE], sums[ACC_SIZE];
    const int item = (int)get_local_id(0);
    const long group = (long)get_group_id(0);
    const int tiles_m = (args.seq_q + BLOCK_M - 1) / BLOCK_M;
    block b;
    block_decode(&b, &args, &options, group / tiles_m, (int)(group % tiles_m) * BLOCK_M, BLOCK_M);
    const int rows = ROUND_UP(b.rows, ROWS * ITEMS);
    const long v_at = head_offset(args.v, &b, b.head / args.group);
    for (int col0 = 0; col0 < HEAD_DIM_V; col0 += BLOCK_N) {
        FOR_ACC(i) { acc[i] = (elem)(0.0f); }
        for (int j = 0; j < args.seq_kv; j += DEPTH) {
            const int depth = min(DEPTH, args.seq_kv - j);
            const matrix p = {matrix_row(&args, &b, 0) + j, args.seq_kv, 1, b.rows, depth};
            const matrix v = {v_at + j * args.v.seq + col0 * args.v.dim, args.v.seq, args.v.dim, depth, HEAD_DIM_V - col0};
            stage_p(AS_FLOATS(left), LEFT_PITCH, 1, rows, ROUND_UP(depth, 4), ALONG(DEPTH), workspace, p, item);
            stage_v(AS_FLOATS(right), RIGHT_PITCH * LANES, 1, ROUND_UP(depth, 4), BLOCK_N, ALONG(BLOCK_N), v_data, v, item);
            GROUP_BARRIER();
            multiply_panels(AS_FLOATS(left), right, acc, rows, depth, item);
            GROUP_BARRIER();
        }
        FOR_ACC(i) { sums[i] = acc[i]; }
        store_output(&args, &b, col0, sums, workspace, v_data, o_data, item);
    }
}
