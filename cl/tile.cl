/* SPDX-License-Identifier: Apache-2.0
 * Which rows a team works on and which keys they see. Knows lengths, the diagonal and the order of tiles; knows no engine.
 *
 * A tile has BLOCK_M rows. Row p of a packed head is query p / pack of head head0 + p % pack: with pack = 1, plainly query p.
 */
typedef struct {
    int row0, rows; /* first row of the tile; rows of the whole packed head */
    int pack;
    int batch, head0, kv_head;
    int kv_length;
    int diagonal_low, diagonal_high; /* query i sees keys i + low ... i + high */
    int key_begin, key_end;          /* keys that at least one row of the tile sees lie in [begin, end) */
    int open_begin, open_end;        /* keys that every row of the tile sees are [begin, end) */
} tile;

FN int saturate(long x) { return (int)clamp(x, -((long)1 << 30), (long)1 << 30); }

FN int tile_query(const tile *t, int row) { return t->pack == 1 ? row : row / t->pack; }
FN int tile_head(const tile *t, int row) { return t->pack == 1 ? t->head0 : t->head0 + row % t->pack; }

/* Element offset of a row of the tile's Q or O. */
FN long tile_row_offset(const tile *t, const tensor_view v, int row)
{
    return v.base + t->batch * v.batch + tile_head(t, row) * v.head + tile_query(t, row) * v.seq;
}
/* Element offset of key 0 of the tile's K or V. */
FN long tile_kv_offset(const tile *t, const tensor_view v) { return v.base + t->batch * v.batch + t->kv_head * v.head; }

/* Lengths and diagonal of one batch entry; every kernel takes them from here. */
FN void tile_sequence(tile *t, const launch_args *a, int batch)
{
    const long offset = a->corner == CORNER_TOP_LEFT       ? 0
                        : a->corner == CORNER_BOTTOM_RIGHT ? (long)a->seq_kv - a->seq_q
                                                           : a->offset;
    t->batch = batch;
    t->kv_length = a->seq_kv;
    /* Sums are saturated at 2^30 while queries and keys stay below 2^29, so that i + diagonal cannot wrap and no comparison changes. */
    t->diagonal_low = saturate(offset - a->left);
    t->diagonal_high = saturate(offset + a->right);
}

/* Tile number `team` of the call. Longest rows first where the diagonal limits the keys: they take longest. */
FN void tile_decode(tile *t, const launch_args *a, long team)
{
    const int block = (int)(team % a->q_blocks);
    const long rest = team / a->q_blocks;
    const int packed_heads = a->heads_q / a->pack;
    t->pack = a->pack;
    t->rows = a->seq_q * a->pack;
    t->row0 = (a->right < OPEN_END ? a->q_blocks - 1 - block : block) * BLOCK_M;
    t->head0 = (int)(rest % packed_heads) * a->pack;
    t->kv_head = t->head0 / a->group;
    tile_sequence(t, a, (int)(rest / packed_heads));

    const int first = tile_query(t, t->row0), last = tile_query(t, min(t->row0 + BLOCK_M, t->rows) - 1);
    t->key_begin = max(0, first + t->diagonal_low);
    t->key_end = min(t->kv_length, last + t->diagonal_high + 1);
    t->open_begin = max(0, last + t->diagonal_low);
    t->open_end = min(t->kv_length, first + t->diagonal_high + 1);
}

/* Where the loop over key blocks starts: block borders are multiples of BLOCK_N. */
FN int tile_first_block(const tile *t) { return t->key_begin / BLOCK_N * BLOCK_N; }
FN int tile_block_is_open(const tile *t, int key) { return key >= t->open_begin && key + BLOCK_N <= t->open_end; }
