/* SPDX-License-Identifier: Apache-2.0
 * Which rows a team works on and which keys they see. Knows lengths, the diagonal and the order of tiles; knows no engine.
 *
 * A tile has BLOCK_M rows. Row p of a packed head is query p / pack of head head0 + p % pack: with pack = 1, plainly query p.
 */
typedef struct {
    int row0, rows; /* first row of the tile; rows of the whole packed head */
    int pack;
    int batch, head0, kv_head;
    int chunk;                       /* number of the chunk of keys, 0 where they are not split */
    int q_length, kv_length;         /* of this sequence; queries from q_length on see nothing */
    int q_rows, kv_rows;             /* rows that the sequence has in the tensors, its lengths or more */
    float offset_rest;               /* what the whole offset has beyond `offset`, 0 below 2^30: for distances */
    long q_start, kv_start;          /* its first row in packed tensors, 0 in others */
    int offset;                      /* key position of query 0 */
    int diagonal_low, diagonal_high; /* query i sees keys i + low ... i + high */
    int key_begin, key_end;          /* keys that at least one row of the tile sees lie in [begin, end) */
    int open_begin, open_end;        /* keys that every row of the tile sees are [begin, end) */
    __global const uchar *classes;   /* of this tile's key blocks, where PREPASS */
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

/* Number `i` of cumulative starts, made safe: in 0 ... total. A sequence whose end lies before its start is empty; that no
 * start lies before one further up is not looked for, since each tile would have to read them all. */
FN long sequence_start(__global const void *starts, const launch_args *a, long base, int i, long total)
{
    return clamp(load_integer(starts, a->starts_type, base + i), (long)0, total);
}

/* Lengths and diagonal of one batch entry; every kernel takes them from here. Nothing in a buffer causes a wild access. */
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
    /* Sums are saturated at 2^30 while queries and keys stay below 2^29, so that i + diagonal cannot wrap and no comparison
     * changes. */
    t->offset = saturate(offset);
    t->offset_rest = (float)(offset - t->offset);
    t->diagonal_low = saturate(offset - a->left);
    t->diagonal_high = saturate(offset + a->right);
}

/* Numbers of tiles. An engine that declines calls with 2^31 of them may say int. */
#ifdef TEAM_INDEX
typedef TEAM_INDEX team_index;
FN team_index quotient(team_index a, int b) { return (team_index)((uint)a / (uint)b); }
#else
typedef long team_index;
/* a / b of numbers that are not negative. GPUs have no instruction for it, and the long one takes as long as reading memory. */
FN team_index quotient(team_index a, int b) { return a <= 0x7fffffff ? (long)((uint)a / (uint)b) : a / b; }
#endif

/* Tile number `team` of the call; false where its sequence is too short to have it. Longest rows first where the diagonal
 * limits the keys: they take longest; with PAIR_TILES long and short ones in turn. `together` heads take turns, so that their
 * long tiles all come before their short ones; with MERGED_TURNS so many times as many and the rest at the end, where what
 * comes last should be short. Chunks of one tile lie apart by all its blocks, so that teams at work together share keys. */
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
    /* A runtime that deals out runs of neighbouring groups, as CPUs' do, would give all the long ones to one core. */
    const int last_first = block & 1 ? block / 2 : a->q_blocks - 1 - block / 2;
#else
    const int last_first = a->q_blocks - 1 - block;
#endif
    t->row0 = (a->right < OPEN_END ? last_first : block) * BLOCK_M;
    const int batch = (int)quotient(rest, packed_heads);
    t->head0 = (int)(rest - (long)batch * packed_heads) * a->pack;
    t->kv_head = t->head0 / a->group;
    tile_sequence(t, a, b, batch);
    /* Rows past the length are written, as seeing nothing; past the rows of a packed sequence lies the next one. */
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

/* First and last key that query i sees, past the end of the keys cut off. `i` is an int or a vector of them. */
#define FIRST_KEY(t, i) ((i) + (t)->diagonal_low)
#define LAST_KEY(t, i) select((index)(-1), min((i) + (t)->diagonal_high, (t)->kv_length - 1), (index)((i) < (t)->q_length))

/* The first key block at or behind `key`, a multiple of BLOCK_N, that is worth a visit; key_end or more: none. */
FN int tile_visible_block(const tile *t, int key)
{
#if PREPASS
    /* PoCL 7.1 dies over a loop whose condition reads memory, where the kernel has barriers. */
    int seen = 0;
    while (key < t->key_end && !seen) {
        seen = t->classes[key / BLOCK_N] & CLASS_SEEN;
        key += seen ? 0 : BLOCK_N;
    }
#endif
    return key;
}
/* The blocks that the loop visits. Engines that fetch ahead ask here what comes next. */
FN int tile_first_block(const tile *t) { return tile_visible_block(t, t->key_begin / BLOCK_N * BLOCK_N); }
FN int tile_next_block(const tile *t, int key) { return tile_visible_block(t, key + BLOCK_N); }

/* TRIMS_KEYS: the engine holds no key from key_end on, so a part-empty last block hides nothing. */
#ifdef TRIMS_KEYS
#define BLOCK_END(t, key) min((key) + BLOCK_N, (t)->key_end)
#else
#define BLOCK_END(t, key) ((key) + BLOCK_N)
#endif
FN int tile_block_is_open(const tile *t, int key) { return key >= t->open_begin && BLOCK_END(t, key) <= t->open_end; }

/* Where this tile's classes are in the workspace. */
FN void tile_find_classes(tile *t, const launch_args *a, __global const float *workspace)
{
#if PREPASS
    t->classes = (__global const uchar *)workspace + a->classes + t->batch * a->class_batch + t->head0 * a->class_head +
                 (long)(t->row0 / BLOCK_M) * a->key_blocks;
#endif
}
/* What mask and bias have to say about a block, as CLASS_ bits; without classes: anything. */
FN int tile_block_class(const tile *t, int key)
{
#if PREPASS
    return t->classes[key / BLOCK_N];
#else
    return CLASS_ANY;
#endif
}

/* Partial results of chunks of keys, all of them and the number of one: cl/epilogue.cl says what stands there. */
FN long partial_rows(const launch_args *a) { return (long)a->batches * a->heads_q * a->seq_q * a->chunks; }
FN long partial_row(const launch_args *a, int batch, int head, int query, int chunk)
{
    return (((long)batch * a->heads_q + head) * a->seq_q + query) * a->chunks + chunk;
}
/* Where its output, its largest score and its sum stand in the workspace. */
FN long partial_output(const launch_args *a, long partial) { return a->workspace + partial * HEAD_DIM_V; }
FN long partial_top(const launch_args *a, long partial) { return a->workspace + partial_rows(a) * HEAD_DIM_V + partial; }
FN long partial_sum(const launch_args *a, long partial) { return partial_top(a, partial) + partial_rows(a); }
#define PARTIAL_FLOATS (HEAD_DIM_V + 2)
