/* SPDX-License-Identifier: Apache-2.0
 * Few rows: loads K or V 16 bytes at a time, and converts them to floats. Included by cl/engines/simt/simt_few.cl.
 */
/* The bits of an element, as an unsigned number. */
FN uint load_bits(int type, __global const void *p, long i)
{
    return type == FP32 ? ((__global const uint *)p)[i] : (uint)((__global const ushort *)p)[i];
}

FN uint4 quad_by_elements(const matrix *m, int type, long at, int left)
{
    const int count = type == FP32 ? 4 : 8;
    uint bits[8];
    UNROLL_REGISTERS
    for (int i = 0; i < count; i++) {
        bits[i] = i < left ? load_bits(type, m->data, at + i * m->col_step) : 0;
    }
    return type == FP32
               ? (uint4)(bits[0], bits[1], bits[2], bits[3])
               : (uint4)(bits[0] | bits[1] << 16, bits[2] | bits[3] << 16, bits[4] | bits[5] << 16, bits[6] | bits[7] << 16);
}

FN __global const uint4 *quad_address(const matrix *m, int type, long at)
{
    return (__global const uint4 *)((__global const char *)m->data + at * (type == FP32 ? 4 : 2));
}

/* Loads 16 bytes from element `at` on, in a row with `left` columns left; 0 or less: gives zeros. */
#if RING_SLOTS
typedef __local uint4 raw_place;
#define RAW_STEP WORK_GROUP
/* Loops over slots in local memory need not be unrolled. Short loops keep the code short, which a group runs once and whose
 * instructions it waits for. */
#define UNROLL_PLACES ROLLED
#define UNROLL_PIECES UNROLL_SOME
#else
typedef uint4 raw_place;
#define RAW_STEP 1
#define UNROLL_PLACES UNROLL_REGISTERS
#define UNROLL_PIECES UNROLL_REGISTERS
#endif
FN void fetch_quad(raw_place *to, const matrix *m, int type, long at, int left)
{
    *to = left <= 0                                      ? (uint4)(0)
          : m->aligned && left >= (type == FP32 ? 4 : 8) ? *quad_address(m, type, at)
                                                         : quad_by_elements(m, type, at, left);
}
#ifdef COPY_ASM
/* The same without registers. Columns past the last of the row become 0. */
FN void copy_quad(raw_place *to, const matrix *m, int type, long at, int left)
{
    const int size = type == FP32 ? 4 : 2;
    __asm__ volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                     :
                     : "r"((uint)(size_t)to), "l"((ulong)quad_address(m, type, at)), "r"(clamp(left * size, 0, 16))
                     : "memory");
}
#endif

/* Loads keys key0, key0 + at_once ... Keys outside the tile's range become 0. */
FN void fetch(raw_place *raw, const matrix *m, int type, int quads, int lanes, int steps, int width, const tile *t, int key0)
{
    const int lane = (int)get_local_id(0) % lanes, first = key0 + (int)get_local_id(0) / lanes;
    const int at_once = WORK_GROUP / lanes;
    const uint before = (uint)(first - t->key_begin), seen = (uint)(t->key_end - t->key_begin);
    const long row_step = at_once * m->row_step;
    long row = m->at + first * m->row_step;
#ifdef COPY_ASM
    if (m->aligned) {
        UNROLL_REGISTERS
        for (int step = 0; step < steps; step++) {
            const int there = before + (uint)(step * at_once) < seen;
            UNROLL_REGISTERS
            for (int quad = 0; quad < quads; quad++) {
                const int col = PIECE_COL(quads, lanes, lane, quad * 4);
                copy_quad(raw + (step * quads + quad) * RAW_STEP, m, type, row + col, there ? width - col : 0);
            }
            row += row_step;
        }
        return;
    }
#endif
    UNROLL_PLACES
    for (int step = 0; step < steps; step++) {
        const int there = before + (uint)(step * at_once) < seen;
        UNROLL_PLACES
        for (int quad = 0; quad < quads; quad++) {
            const int col = PIECE_COL(quads, lanes, lane, quad * 4);
            fetch_quad(raw + (step * quads + quad) * RAW_STEP, m, type, row + col * m->col_step, there ? width - col : 0);
        }
        row += row_step;
    }
}
#ifdef WARP_ASM
FN void halves(uint two, float *x)
{
    __asm__("{ .reg .b16 low, high; mov.b32 {low, high}, %2; cvt.f32.f16 %0, low; cvt.f32.f16 %1, high; }"
            : "=f"(x[0]), "=f"(x[1])
            : "r"(two));
}
#else
FN void halves(uint two, float *x)
{
    x[0] = vload_half(0, (const __private half *)&two);
    x[1] = vload_half(1, (const __private half *)&two);
}
#endif
/* Eight floats from the 16 bytes of `low`; for fp32 from the 32 bytes of `low` and `high`. */
FN void unpack_words(int type, uint4 low, uint4 high, float *x)
{
    const uint word[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
    UNROLL_REGISTERS
    for (int i = 0; i < 4; i++) {
        if (type == FP32) {
            x[i] = as_float(word[i]);
            x[4 + i] = as_float(word[4 + i]);
        } else if (type == FP16) {
            halves(word[i], x + 2 * i);
        } else {
            x[2 * i] = as_float(word[i] << 16);
            x[2 * i + 1] = as_float(word[i] & 0xffff0000u);
        }
    }
}
/* The floats of one step. */
FN void unpack(int type, const raw_place *raw, float *x) { unpack_words(type, raw[0], raw[type == FP32 ? RAW_STEP : 0], x); }
