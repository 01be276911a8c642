/* SPDX-License-Identifier: Apache-2.0
 * The rows of a team and the keys visible to them: lengths, the diagonal and the order of tiles. Independent of engines.
 *
 * A tile has BLOCK_M rows. Row p of a packed head is query p / pack of head head0 + p % pack. With pack = 1 it is query p.
 */
typedef struct {
    int row0, rows; /* first row of the tile; rows of the whole packed head */
    int pack;
    int batch, head0, kv_head;
    int chunk;                       /* number of the chunk of keys; 0 where keys are not split */
    int q_length, kv_length;         /* of this sequence; queries from q_length on see no key */
    int q_rows, kv_rows;             /* rows of the sequence in the tensors, at least its lengths */
    float offset_rest;               /* whole offset minus `offset`, for distances; 0 below 2^30 */
    long q_start, kv_start;          /* first row of the sequence in packed tensors; else 0 */
    int offset;                      /* key position of query 0 */
    int diagonal_low, diagonal_high; /* query i sees keys i + low ... i + high */
    int key_begin, key_end;          /* all keys visible to any row of the tile lie in [begin, end) */
    int open_begin, open_end;        /* keys [begin, end) are visible to every row of the tile */
    __global const uchar *classes;   /* classes of this tile's key blocks, with PREPASS */
} tile;

FN int saturate(long x) { return (int)clamp(x, -((long)1 << 30), (long)1 << 30); }

FN int tile_query(const tile *t, int row) { return t->pack == 1 ? row : row / t->pack; }
FN int tile_head(const tile *t, int row) { return t->pack == 1 ? t->head0 : t->head0 + row % t->pack; }

/* Element offset of query 0 of the first head of the tile's Q or O. */
FN long tile_q_offset(const tile *t, const tensor_view v)
{
    return v.base + t->batch * v.batch + t->head0 * v.head + t->q_start * v.seq;
}
/* Element offset of a row of the tile's Q or O. */
FN long tile_row_offset(const tile *t, const tensor_view v, int row)
{
    return tile_q_offset(t, v) + (tile_head(t, row) - t->head0) * v.head + tile_query(t, row) * v.seq;
}
/* Element offset of key 0 of the tile's K or V. */
FN long tile_kv_offset(const tile *t, const tensor_view v)
{
    return v.base + t->batch * v.batch + t->kv_head * v.head + t->kv_start * v.seq;
}

/* Entry `i` of the cumulative starts, clamped to 0 ... total. A sequence whose end is before its start is empty. Decreasing
 * starts further up are not detected, since each tile would have to read all starts. */
FN long sequence_start(__global const void *starts, const launch_args *a, long base, int i, long total)
{
    return clamp(load_integer(starts, a->starts_type, base + i), (long)0, total);
}

/* Lengths and diagonal of one batch entry, for every kernel. No value in a buffer can cause an access out of bounds. */
FN void tile_sequence(tile *t, const launch_args *a, const option_data *b, int batch)
{
    t->batch = batch;
    t->q_length = a->seq_q;
    t->kv_length = a->seq_kv;
    t->q_start = t->kv_start = 0;
    if (a->starts_type) {
        t->q_start = sequence_start(b->q_starts, a, a->q_starts, batch, a->total_q);
        t->kv_start = sequence_start(b->kv_starts, a, a->kv_starts, batch, a->total_kv);
        const long q_end = sequence_start(b->q_starts, a, a->q_starts, batch + 1, a->total_q);
        const long kv_end = sequence_start(b->kv_starts, a, a->kv_starts, batch + 1, a->total_kv);
        t->q_length = (int)clamp(q_end - t->q_start, (long)0, (long)a->seq_q);
        t->kv_length = (int)clamp(kv_end - t->kv_start, (long)0, (long)a->seq_kv);
    }
    t->q_rows = t->q_length;
    t->kv_rows = t->kv_length;
    if (a->q_lengths_type) {
        t->q_length =
            (int)clamp(load_integer(b->q_lengths, a->q_lengths_type, a->q_lengths + batch), (long)0, (long)t->q_length);
    }
    if (a->kv_lengths_type) {
        t->kv_length =
            (int)clamp(load_integer(b->kv_lengths, a->kv_lengths_type, a->kv_lengths + batch), (long)0, (long)t->kv_length);
    }
    long offset = 0;
    if (a->corner == CORNER_BOTTOM_RIGHT) {
        offset = t->kv_length - t->q_length;
    } else if (a->corner == CORNER_EXPLICIT) {
        offset = a->offset;
        if (a->offsets_type) {
            offset = clamp(load_integer(b->offsets, a->offsets_type, a->offsets + batch), -OPEN_END, OPEN_END);
        }
    }
    /* Sums are saturated at 2^30, and queries and keys are below 2^29. So i + diagonal cannot overflow, and no comparison
     * changes. */
    t->offset = saturate(offset);
    t->offset_rest = (float)(offset - t->offset);
    t->diagonal_low = saturate(offset - a->left);
    t->diagonal_high = saturate(offset + a->right);
}

/* The type of tile numbers. An engine that refuses calls with 2^31 tiles or more may use int. */
#ifdef TEAM_INDEX
typedef TEAM_INDEX team_index;
FN team_index quotient(team_index a, int b) { return (team_index)((uint)a / (uint)b); }
#else
typedef long team_index;
/* a / b of non-negative numbers. GPUs have no divide instruction, and a 64-bit division takes as long as a memory read. */
FN team_index quotient(team_index a, int b) { return a <= 0x7fffffff ? (long)((uint)a / (uint)b) : a / b; }
#endif

/* Decodes tile number `team` of the call. Returns false where the sequence is too short to have it. Where the diagonal limits
 * the keys, the longest tiles come first; with PAIR_TILES long and short tiles alternate. The tiles of `together` heads
 * alternate, so that all their long tiles come before their short ones. With MERGED_TURNS the last MERGED_TURNS such groups and
 * the remaining heads form one group, so that the call ends with short tiles. Within a head, the tiles of a chunk are adjacent,
 * so that concurrent teams share keys. */
FN int tile_decode(tile *t, const launch_args *a, const option_data *b, team_index team)
{
    const int packed_heads = a->heads_q / a->pack, together = (int)a->together;
    const team_index head_count = (team_index)packed_heads * a->batches,
                     head = quotient(quotient(team, a->q_blocks), a->chunks);
#if MERGED_TURNS
    const team_index last_turn = max(quotient(head_count, together) - MERGED_TURNS, (team_index)0);
    const team_index turn = min(quotient(head, together), last_turn), first_head = turn * together;
    const int heads = turn < last_turn ? together : (int)(head_count - first_head);
#else
    const team_index first_head = quotient(head, together) * together;
    const int heads = (int)min((team_index)together, head_count - first_head);
#endif
    const team_index within = team - first_head * a->q_blocks * a->chunks, in_head = quotient(within, heads);
    const team_index rest = first_head + (within - in_head * heads);
    t->chunk = (int)quotient(in_head, a->q_blocks);
    const int block = (int)(in_head - (team_index)t->chunk * a->q_blocks);
    t->pack = a->pack;
#ifdef PAIR_TILES
    /* CPU runtimes give runs of adjacent groups to one core, which would get all the long tiles. */
    const int last_first = block & 1 ? block / 2 : a->q_blocks - 1 - block / 2;
#else
    const int last_first = a->q_blocks - 1 - block;
#endif
    t->row0 = (a->right < OPEN_END ? last_first : block) * BLOCK_M;
    const int batch = (int)quotient(rest, packed_heads);
    t->head0 = (int)(rest - (long)batch * packed_heads) * a->pack;
    t->kv_head = t->head0 / a->group;
    tile_sequence(t, a, b, batch);
    /* Rows past the length are written, as rows with no visible key. Past the rows of a packed sequence the next one begins. */
    t->rows = t->q_rows * a->pack;
    if (t->row0 >= t->rows) {
        return 0;
    }
    const int first = tile_query(t, t->row0), last = tile_query(t, min(t->row0 + BLOCK_M, t->rows) - 1);
    const int last_real = min(last, t->q_length - 1);
    t->key_begin = max(0, first + t->diagonal_low);
    t->key_end = first > last_real ? 0 : min(t->kv_length, last_real + t->diagonal_high + 1);
    t->open_begin = max(0, last + t->diagonal_low);
    t->open_end = last > last_real ? 0 : min(t->kv_length, first + t->diagonal_high + 1);
    if (a->chunk) {
        t->key_begin = max(t->key_begin, t->chunk * a->chunk);
        t->key_end = (int)min((long)t->key_end, ((long)t->chunk + 1) * a->chunk);
    }
    return 1;
}

/* The first and the last key visible to query i, limited to the last key. `i` is an int or a vector of ints. */
#define FIRST_KEY(t, i) ((i) + (t)->diagonal_low)
#define LAST_KEY(t, i) select((index)(-1), min((i) + (t)->diagonal_high, (t)->kv_length - 1), (index)((i) < (t)->q_length))

/* The first key block at or after `key`, a multiple of BLOCK_N, that has a visible key; key_end or more: none. */
FN int tile_visible_block(const tile *t, int key)
{
#if PREPASS
    /* PoCL 7.1 crashes on a loop whose condition reads memory in a kernel with barriers. */
    int seen = 0;
    while (key < t->key_end && !seen) {
        seen = t->classes[key / BLOCK_N] & CLASS_SEEN;
        key += seen ? 0 : BLOCK_N;
    }
#endif
    return key;
}
/* The blocks that the loop visits. Engines that prefetch find the next block here. */
FN int tile_first_block(const tile *t) { return tile_visible_block(t, t->key_begin / BLOCK_N * BLOCK_N); }
FN int tile_next_block(const tile *t, int key) { return tile_visible_block(t, key + BLOCK_N); }

/* TRIMS_KEYS: the engine holds no key from key_end on, so a partly filled last block needs no masking. */
#ifdef TRIMS_KEYS
#define BLOCK_END(t, key) min((key) + BLOCK_N, (t)->key_end)
#else
#define BLOCK_END(t, key) ((key) + BLOCK_N)
#endif
FN int tile_block_is_open(const tile *t, int key) { return key >= t->open_begin && BLOCK_END(t, key) <= t->open_end; }

/* Finds this tile's classes in the workspace. */
FN void tile_find_classes(tile *t, const launch_args *a, __global const float *workspace)
{
#if PREPASS
    t->classes = (__global const uchar *)workspace + a->classes + t->batch * a->class_batch + t->head0 * a->class_head +
                 (long)(t->row0 / BLOCK_M) * a->key_blocks;
#endif
}
/* The CLASS_ bits of mask and bias of a block; without classes, all bits. */
FN int tile_block_class(const tile *t, int key)
{
#if PREPASS
    return t->classes[key / BLOCK_N];
#else
    return CLASS_ANY;
#endif
}

/* Number of partial results, and the index of one; cl/epilogue.cl describes their layout. */
FN long partial_rows(const launch_args *a) { return (long)a->batches * a->heads_q * a->seq_q * a->chunks; }
FN long partial_row(const launch_args *a, int batch, int head, int query, int chunk)
{
    return (((long)batch * a->heads_q + head) * a->seq_q + query) * a->chunks + chunk;
}
/* Positions in the workspace of its output, its largest score and its sum. */
FN long partial_output(const launch_args *a, long partial) { return a->workspace + partial * HEAD_DIM_V; }
FN long partial_top(const launch_args *a, long partial) { return a->workspace + partial_rows(a) * HEAD_DIM_V + partial; }
FN long partial_sum(const launch_args *a, long partial) { return partial_top(a, partial) + partial_rows(a); }
#define PARTIAL_FLOATS (HEAD_DIM_V + 2)
