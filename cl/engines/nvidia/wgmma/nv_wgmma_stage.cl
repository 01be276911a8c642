/* SPDX-License-Identifier: Apache-2.0
 * Output of nv_wgmma through local memory. A warp-group packs its rows of O into the place of its rows of Q, in the same
 * layout. The accelerator writes them to the tensor while the warp-group computes the next tile. Storing from registers would
 * take the warp-group as long as a block of keys.
 *
 * STAGES_O: Q has two places, so that Q of the next tile does not wait for this, and the accelerator supports the type of O.
 */
#if STAGES_O
FN void stage_row(engine *e, int r)
{
    const uint row = (uint)(ptx_here(e->row) + r * 8), swizzle = row % 8 * 16;
    const uint to = Q_PLACE(e, e->number) + row * 128 + (uint)(e->col * 2);
    UNROLL for (int c = 0; c < O_COLS; c += 2)
    {
        const uint at = (uint)(c / 16 * Q_PANEL) + (swizzle ^ (uint)(c / 2 % 8 * 16));
        ptx_store_word(to + at, ptx_pack(O_GET(e, r, c), O_GET(e, r, c + 1)));
    }
}

FN void store_or_stage_row(engine *e, const tile *t, const launch_args *a, int r, __global void *o_data)
{
    if (e->staged) {
        stage_row(e, r);
    } else {
        nv_store_row(e, t, a, r, o_data);
    }
}
#undef ENGINE_STORE_ROW
#define ENGINE_STORE_ROW(e, t, a, r, o_data) store_or_stage_row(e, t, a, r, o_data)
#endif

/* Called before the rows of tile number `number` are stored. `mapped`: the accelerator can take O's address. The accelerator
 * skips rows past the tensor's end, but not rows of the next packed sequence. */
FN void stage_begin(engine *e, const tile *t, const launch_args *a, int number, int mapped)
{
#if STAGES_O
    e->number = number;
    e->staged = mapped && (!a->starts_type || t->row0 + e->consumer * 64 + 64 <= t->rows);
#endif
}

/* Called after the rows are stored. No branch here depends on the work-item. */
FN void stage_end(const engine *e, const tile *t, const launch_args *a, int alone, ulong map)
{
#if STAGES_O
    if (e->staged) {
        const int row0 = e->consumer * 64, first = ptx_here((int)get_local_id(0)) % 128 == 0;
        const uint from = Q_PLACE(e, e->number) + (uint)(row0 * 128);
        PUBLISH_STORES();
        named_wait(alone, 128);
        UNROLL for (int i = 0; i < PANELS_V; i++)
        {
            tensor_store_when(first, map, from + (uint)(i * Q_PANEL), i * 64, (int)t->q_start + t->row0 + row0, t->head0,
                              a->starts_type ? 0 : t->batch);
        }
        TENSOR_STORE_COMMIT();
    }
#endif
}
