/* SPDX-License-Identifier: Apache-2.0
 * Attention without fusion: three kernels around a matrix of batch x heads_q x seq_q x seq_kv floats in the workspace. They
 * compute the scores, softmax along rows, and weights times V. This engine is the baseline and an independent check of the
 * fused engines: it shares lengths and the diagonal with them, but neither tiling nor softmax.
 */

/* Rows of one head that a group computes. Query i, if below `queries`, sees keys i + low ... i + high among the first
 * `keys`. */
typedef struct {
    int batch, head, row0, rows;
    int low, high, offset;
    int queries, keys;
    int q_rows, kv_rows; /* rows of the sequence in memory, at least its lengths */
    float offset_rest;   /* the part of the offset beyond 2^30 */
    long q_start, kv_start;
} block;

/* Number of heads in the matrix, and the first of them. */
FN int matrix_heads(const launch_args *a) { return a->scores_only ? a->score_heads : a->heads_q; }
FN int matrix_head0(const launch_args *a) { return a->scores_only ? a->score_head : 0; }

FN void block_decode(block *b, const launch_args *a, const option_data *options, long head_of_batch, int row0, int max_rows)
{
    tile t;
    b->batch = (int)(head_of_batch / matrix_heads(a));
    b->head = matrix_head0(a) + (int)(head_of_batch % matrix_heads(a));
    b->row0 = row0;
    b->rows = min(max_rows, a->seq_q - row0);
    tile_sequence(&t, a, options, b->batch);
    b->low = t.diagonal_low;
    b->high = t.diagonal_high;
    b->offset = t.offset;
    b->offset_rest = t.offset_rest;
    b->queries = t.q_length;
    b->keys = t.kv_length;
    b->q_rows = t.q_rows;
    b->kv_rows = t.kv_rows;
    b->q_start = t.q_start;
    b->kv_start = t.kv_start;
}

FN long head_offset(const tensor_view v, const block *b, int head) { return v.base + b->batch * v.batch + head * v.head; }
/* Offset of row 0 of the sequence: in Q, O or LSE, and in K or V. */
FN long q_offset(const tensor_view v, const block *b) { return head_offset(v, b, b->head) + b->q_start * v.seq; }
FN long kv_offset(const tensor_view v, const launch_args *a, const block *b)
{
    return head_offset(v, b, b->head / a->group) + b->kv_start * v.seq;
}

/* Offset of a row of the matrix in the workspace. */
FN long matrix_row(const launch_args *a, const block *b, int row)
{
    const long head = (long)b->batch * matrix_heads(a) + b->head - matrix_head0(a);
    return a->workspace + (head * a->seq_q + b->row0 + row) * a->seq_kv;
}

/* Loads and stores one elem of a matrix row with `count` columns left. Columns past them read as -inf and are not written. */
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

/* Keeps a finite score finite, with the limit of the fused engines in base two. It compares, so that NaN passes through. */
#define HELD (LARGEST * LN_2)
FN elem hold(elem x)
{
    const elem y = PICK(x > (elem)(HELD), (elem)(HELD), x);
    return PICK(y < (elem)(-HELD), (elem)(-HELD), y);
}

/* Whether the caller wants scores of this block's head. */
FN int wants_scores(const launch_args *a, const block *b)
{
    return a->scores_kind && b->head >= a->score_head && b->head - a->score_head < a->score_heads;
}

FN void hand_out(elem x, const launch_args *a, const block *b, int row, int key, __global float *scores_data)
{
    const long at = head_offset(a->scores, b, b->head - a->score_head) + (b->row0 + row) * a->scores.seq;
    for (int lane = 0; lane < min(LANES, a->seq_kv - key); lane++) {
        scores_data[at + (key + lane) * a->scores.dim] = LANE(x, lane);
    }
}

#if SCORE_OPTIONS
/* Keys past bias_columns have a bias of -inf. A bias of -inf masks, whatever the factor is. */
FN elem add_bias(elem s, const launch_args *a, const option_data *o, const block *b, int query, int key, index *seen)
{
    const long at = head_offset(a->bias, b, b->head) + query * a->bias.seq;
    const float factor = a->has_factors ? o->factors[a->factors + b->head] : 1.0f;
    elem bias;
    for (int lane = 0; lane < LANES; lane++) {
        const int there = key + lane < min(a->bias_columns, b->keys);
        LANE(bias, lane) = there ? load_any(a->bias_type, o->bias, at + (key + lane) * a->bias.dim) : -INFINITY;
    }
    *seen &= (index)(bias != (elem)(-INFINITY));
    return s + hold(bias * factor);
}

FN index mask_keeps(const launch_args *a, const option_data *o, const block *b, int query, int key)
{
    const long at = head_offset(a->mask, b, b->head) + query * a->mask.seq;
    index keeps;
    for (int lane = 0; lane < LANES; lane++) {
        const int there = key + lane < min(a->mask_columns, b->keys);
        LANE_INDEX(keeps, lane) = there && o->mask[at + (key + lane) * a->mask.dim] ? -1 : 0;
    }
    return keeps;
}

FN elem subtract_alibi(elem s, const launch_args *a, const option_data *o, const block *b, int query, index keys)
{
    const float slope = o->slopes[a->slopes.base + b->batch * a->slopes.batch + b->head * a->slopes.head];
    return s - slope * fabs(convert_elem((index)(query + b->offset) - keys) + (elem)(b->offset_rest));
}
#endif

/* Turns a product into the score that softmax takes, in natural units. *out: the stage of it that the caller wants. */
FN elem score_of(elem product, const launch_args *a, const option_data *o, const block *b, int query, int key, elem *out)
{
    const index keys = (index)(key) + LANE_NUMBERS;
    const index first = (index)(query + b->low), last = (index)(query + b->high);
    index seen = (keys >= first) & (keys <= last) & (keys < (index)(b->keys)) & (index)(query < b->queries ? -1 : 0);
    elem s = hold(product * a->scale);
    *out = s;
#if SCORE_OPTIONS
    if (a->softcap != 0.0f) {
        s = tanh(s / a->softcap) * a->softcap;
    }
    if (a->scores_kind == SCORES_SOFTCAP) {
        *out = s;
    }
    if (a->bias_type) {
        s = add_bias(s, a, o, b, query, key, &seen);
    }
    if (a->has_slopes) {
        s = subtract_alibi(s, a, o, b, query, keys);
    }
    if (a->has_mask) {
        seen &= mask_keeps(a, o, b, query, key);
    }
#endif
    s = PICK(seen, hold(s), (elem)(-INFINITY));
    if (a->scores_kind == SCORES_BIAS) {
        *out = s;
    }
    if (a->starts_type) { /* past the end of a packed sequence there is no product */
        *out = PICK((keys < (index)(b->kv_rows)) & (index)(query < b->q_rows ? -1 : 0), *out, (elem)(-INFINITY));
    }
    return s;
}

/* S = scale * Q * K^T with all options, -inf where a key is masked. One group a tile of the matrix. */
__kernel __attribute__((reqd_work_group_size(WORK_GROUP, 1, 1))) void unfused_scores(KERNEL_PARAMETERS)
{
    const option_data options = OPTION_DATA;
    DECLARE_PANELS(left, right)
    elem acc[ACC_SIZE], sums[ACC_SIZE];
    const int item = (int)get_local_id(0);
    const long group = args.first_team + (long)get_group_id(0);
    const int tiles_n = max(1, (args.seq_kv + BLOCK_N - 1) / BLOCK_N), tiles_m = (args.seq_q + BLOCK_M - 1) / BLOCK_M;
    const int key0 = (int)(group % tiles_n) * BLOCK_N;
    block b;
    block_decode(&b, &args, &options, group / tiles_n / tiles_m, (int)(group / tiles_n % tiles_m) * BLOCK_M, BLOCK_M);
    const int rows = ROUND_UP(b.rows, ROWS * ITEMS);
    const int gives = wants_scores(&args, &b) && args.scores_kind != SCORES_SOFTMAX;
    const long q_at = q_offset(args.q, &b) + b.row0 * args.q.seq;
    const long k_at = kv_offset(args.k, &args, &b) + key0 * args.k.seq;
    FOR_ACC(i) { acc[i] = (elem)(0.0f); }
    for (int d = 0; d < HEAD_DIM; d += DEPTH) {
        const int depth = min(DEPTH, HEAD_DIM - d);
        const matrix q = {q_at + d * args.q.dim, args.q.seq, args.q.dim, min(b.rows, b.q_rows - b.row0), depth};
        const matrix k = {k_at + d * args.k.dim, args.k.seq, args.k.dim, b.kv_rows - key0, depth};
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
            elem out;
            const elem s = score_of(sums[i], &args, &options, &b, b.row0 + row, key, &out);
            if (gives) {
                hand_out(out, &args, &b, row, key, scores_data);
            }
            if (!args.scores_only || args.scores_kind == SCORES_SOFTMAX) { /* later kernels read them */
                store_elem(s, workspace + matrix_row(&args, &b, row) + key, args.seq_kv - key);
            }
        }
    }
}

/* Folds x over its lanes and over the work-items of the group. All get the result. A maximum ignores NaN. */
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

/* Turns row `row` of the block into weights that sum to 1, in place; all 0 in a row with no visible key. A sink takes part in
 * the maximum and in the sum. Exponentials are natural: the base-two factor of the fused engines is not part of this check. */
FN void softmax_row(const launch_args *a, const option_data *o, const block *b, int row, __global float *matrix_data,
                    __global float *lse_data, __global float *scores_data, PANEL float *shared, int item)
{
    /* A row past the queries of its sequence has no sink. */
    const float sink = a->has_sinks && b->row0 + row < b->queries ? o->sinks[a->sinks + b->head] : -INFINITY;
    __global float *const s = matrix_data + matrix_row(a, b, row);
    elem largest = (elem)(-INFINITY), sum = (elem)(0.0f);
    for (int j = item * LANES; j < a->seq_kv; j += WORK_GROUP * LANES) {
        const elem x = load_elem(s + j, a->seq_kv - j);
        largest = LARGER(largest, x);
    }
    const float m = MAX_OF(fold_max(largest, shared, item), sink);
    const float base = m == -INFINITY ? 0.0f : m;
    for (int j = item * LANES; j < a->seq_kv; j += WORK_GROUP * LANES) {
        const elem p = exp(load_elem(s + j, a->seq_kv - j) - base);
        store_elem(p, s + j, a->seq_kv - j);
        sum += p;
    }
    /* A row with a NaN score gives NaN, not 0. Where the sink outweighs all keys so far that the sum of keys is 0, all weights
     * are 0. */
    const float keys = fold_sum(sum, shared, item);
    const float l = keys + (a->has_sinks ? sink == base ? 1.0f : exp(sink - base) : 0.0f);
    const float inverse = keys == 0.0f ? 0.0f : 1.0f / l;
    const int gives = wants_scores(a, b) && a->scores_kind == SCORES_SOFTMAX;
    for (int j = item * LANES; j < a->seq_kv; j += WORK_GROUP * LANES) {
        const elem weight = load_elem(s + j, a->seq_kv - j) * inverse;
        store_elem(weight, s + j, a->seq_kv - j);
        if (gives) {
            hand_out(weight, a, b, row, j, scores_data);
        }
    }
    if (a->lse_floats && !a->scores_only && item == 0 && b->row0 + row < b->q_rows) {
        __global float *to = lse_data + a->lse_floats * (q_offset(a->lse, b) + (b->row0 + row) * a->lse.seq);
        to[0] = a->lse_floats == 2 ? m : l == 0.0f ? -INFINITY : m + log(l);
        if (a->lse_floats == 2) {
            to[1] = l;
        }
    }
}

/* One group a block of rows, one row after the other. */
__kernel __attribute__((reqd_work_group_size(WORK_GROUP, 1, 1))) void unfused_softmax(KERNEL_PARAMETERS)
{
    const option_data options = OPTION_DATA;
    PANEL float shared[WORK_GROUP];
    const int blocks = (args.seq_q + SOFTMAX_ROWS - 1) / SOFTMAX_ROWS;
    const long group = args.first_team + (long)get_group_id(0);
    block b;
    block_decode(&b, &args, &options, group / blocks, (int)(group % blocks) * SOFTMAX_ROWS, SOFTMAX_ROWS);
    for (int row = 0; row < b.rows; row++) {
        softmax_row(&args, &options, &b, row, workspace, lse_data, scores_data, shared, (int)get_local_id(0));
    }
}

/* One element of the product, over the keys visible to the row: NaN or infinity in V of a masked key has no effect. */
FN float seen_product(const launch_args *a, const block *b, __global const float *p, __global const void *v_data, long v_at)
{
    float sum = 0.0f;
    for (int j = 0; j < b->keys; j++) {
        if (p[j] != 0.0f) {
            sum = MULTIPLY_ADD(p[j], LOAD_V(v_data, v_at + j * a->v.seq), sum);
        }
    }
    return sum;
}

FN void store_output(const launch_args *a, const block *b, int col0, const elem *sums, __global const float *matrix_data,
                     __global const void *v_data, __global void *o_data, int item)
{
    const long v_at = kv_offset(a->v, a, b);
    for (int i = 0; i < ACC_SIZE; i++) {
        const int row = ACC_ROW(i, item), col = col0 + ACC_COL(i, item);
        if (row < b->rows && b->row0 + row < b->q_rows) {
            const long at = q_offset(a->o, b) + (b->row0 + row) * a->o.seq;
            for (int lane = 0; lane < min(LANES, HEAD_DIM_V - col); lane++) {
                float x = LANE(sums[i], lane);
                /* 0 * NaN is NaN. Sums over visible keys only, to tell whether the NaN came from a masked key. */
                if (isnan(x)) {
                    x = seen_product(a, b, matrix_data + matrix_row(a, b, row), v_data, v_at + (col + lane) * a->v.dim);
                }
                STORE_O(x, o_data, at + (col + lane) * a->o.dim);
            }
        }
    }
}

/* O = P * V. One group a block of rows, with all columns. */
__kernel __attribute__((reqd_work_group_size(WORK_GROUP, 1, 1))) void unfused_output(KERNEL_PARAMETERS)
{
    const option_data options = OPTION_DATA;
    DECLARE_PANELS(left, right)
    elem acc[ACC_SIZE], sums[ACC_SIZE];
    const int item = (int)get_local_id(0);
    const long group = args.first_team + (long)get_group_id(0);
    const int tiles_m = (args.seq_q + BLOCK_M - 1) / BLOCK_M;
    block b;
    block_decode(&b, &args, &options, group / tiles_m, (int)(group % tiles_m) * BLOCK_M, BLOCK_M);
    const int rows = ROUND_UP(b.rows, ROWS * ITEMS);
    const long v_at = kv_offset(args.v, &args, &b);
    for (int col0 = 0; col0 < HEAD_DIM_V; col0 += BLOCK_N) {
        FOR_ACC(i) { acc[i] = (elem)(0.0f); }
        for (int j = 0; j < b.keys; j += DEPTH) {
            const int depth = min(DEPTH, b.keys - j);
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
