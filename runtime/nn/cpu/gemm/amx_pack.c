/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/nn/cpu/gemm/amx_pack.h"

#include <immintrin.h>

#include "base/compiler.h"
#include "runtime/nn/cpu/kernels/transpose.h"

enum { SIDE = WEFT_AMX_SIDE, STEP = WEFT_AMX_STEP, TILE = WEFT_AMX_TILE };

/* A tile is packed from two stored blocks of 16 x 16 pairs of bf16, or numbers of f32. Blocks are
 * first transposed if the tile's rows are stored columns. Then four rows are packed at a time. */
enum { BLOCK = 16, ROWS = 4, ROW_UNITS = BLOCK / ROWS };

/* Mask of the first n of 16 or 32 lanes. */
WEFT_ALWAYS_INLINE __mmask16 lanes_16(int64_t n)
{
    return (__mmask16)(n >= 16 ? 0xffff : n > 0 ? (1u << n) - 1 : 0);
}

WEFT_ALWAYS_INLINE __mmask32 lanes_32(int64_t n)
{
    return (__mmask32)(n >= 32 ? 0xffffffff : n > 0 ? (1u << n) - 1 : 0);
}

/* Pairs along k: row `i` of a tile, or of a block to transpose. Missing elements are 0. */
WEFT_ALWAYS_INLINE __m512i bf16_pairs(const uint16_t *from, int64_t stride, bool along,
                                      int64_t sides, int64_t steps, int i)
{
    if (along) return _mm512_maskz_loadu_epi16(i < sides ? lanes_32(steps) : 0, from + i * stride);
    const __mmask16 mask = lanes_16(sides);
    const uint16_t *even = from + 2 * i * stride;
    const __m256i low = _mm256_maskz_loadu_epi16(2 * i < steps ? mask : 0, even);
    const __m256i high = _mm256_maskz_loadu_epi16(2 * i + 1 < steps ? mask : 0, even + stride);
    return _mm512_or_si512(_mm512_cvtepu16_epi32(low),
                           _mm512_slli_epi32(_mm512_cvtepu16_epi32(high), 16));
}

/* Row `i` of block 0 or 1. A pair's two numbers are 16 of k apart. */
WEFT_ALWAYS_INLINE __m512 f32_row(const float *from, int64_t stride, bool along, int64_t sides,
                                  int64_t steps, int block, int i)
{
    if (along) {
        return _mm512_maskz_loadu_ps(i < sides ? lanes_16(steps - block * BLOCK) : 0,
                                     from + i * stride + block * BLOCK);
    }
    const int k = block * BLOCK + i;
    return _mm512_maskz_loadu_ps(k < steps ? lanes_16(sides) : 0, from + k * stride);
}

/* Rounds to 8 bits, ties away from 0. Numbers that round above the largest bf16 become infinite. */
WEFT_ALWAYS_INLINE __m512i round_to_bf16(__m512 x)
{
    const __m512i bits = _mm512_add_epi32(_mm512_castps_si512(x), _mm512_set1_epi32(0x8000));
    return _mm512_and_si512(bits, _mm512_set1_epi32((int)0xffff0000));
}

/* Splits 16 numbers into high, middle and low parts, each the upper half of a double word.
 * Remainders are exact, of 16 and then 8 bits. The low part is NaN for numbers that are not
 * finite. */
WEFT_ALWAYS_INLINE void split(__m512 x, __m512i part[3])
{
    part[0] = round_to_bf16(x);
    const __m512 rest = _mm512_sub_ps(x, _mm512_castsi512_ps(part[0]));
    part[1] = round_to_bf16(rest);
    part[2] = _mm512_castps_si512(_mm512_sub_ps(rest, _mm512_castsi512_ps(part[1])));
}

WEFT_ALWAYS_INLINE void store_split(__m512 one, __m512 other, uint16_t *row)
{
    __m512i low[3], high[3];
    split(one, low);
    split(other, high);
    for (int j = 0; j < 3; j++) {
        _mm512_store_si512(row + 2 * TILE * j,
                           _mm512_or_si512(_mm512_srli_epi32(low[j], 16), high[j]));
    }
}

/* Packs a unit of a tile with `sides` present rows or columns and `steps` present of k. */
WEFT_ALWAYS_INLINE void pack_bf16(struct weft_amx_packing *p, bool along, bool turned,
                                  int64_t sides, int64_t steps, const uint16_t *from, int unit,
                                  uint16_t *tile)
{
    const int64_t stride = p->operand->stride;
    if (turned) {
        __m512i r[16];
        for (int i = 0; i < 16; i++) {
            r[i] = bf16_pairs(from, stride, along, sides, steps, i);
        }
        weft_transpose_16(r);
        for (int i = 0; i < 16; i++) {
            _mm512_store_si512(tile + 32 * i, r[i]);
        }
    } else {
        for (int i = unit * ROWS; i < (unit + 1) * ROWS; i++) {
            _mm512_store_si512(tile + 32 * i, bf16_pairs(from, stride, along, sides, steps, i));
        }
    }
}

WEFT_ALWAYS_INLINE void pack_f32(struct weft_amx_packing *p, bool along, bool turned, int64_t sides,
                                 int64_t steps, const float *from, int unit, uint16_t *tile)
{
    const int64_t stride = p->operand->stride;
    if (turned && unit < 2) {
        __m512i r[16];
        for (int i = 0; i < 16; i++) {
            r[i] = _mm512_castps_si512(f32_row(from, stride, along, sides, steps, unit, i));
        }
        weft_transpose_16(r);
        for (int i = 0; i < 16; i++) {
            _mm512_store_si512(p->turned[unit] + BLOCK * i, r[i]);
        }
        return;
    }
    const int row = (unit - (turned ? 2 : 0)) * ROWS;
    for (int i = row; i < row + ROWS; i++) {
        if (turned) {
            store_split(_mm512_load_ps(p->turned[0] + BLOCK * i),
                        _mm512_load_ps(p->turned[1] + BLOCK * i), tile + 32 * i);
        } else {
            store_split(f32_row(from, stride, along, sides, steps, 0, i),
                        f32_row(from, stride, along, sides, steps, 1, i), tile + 32 * i);
        }
    }
}

static bool is_turned(const struct weft_amx_operand *o)
{
    return o->along != o->is_a;
}

/* Units of a tile. */
static int units_of(const struct weft_amx_operand *o)
{
    if (o->dtype == WEFT_F32) return ROW_UNITS + (is_turned(o) ? 2 : 0);
    return is_turned(o) ? 1 : ROW_UNITS;
}

static int64_t padded_end(const struct weft_amx_packing *p)
{
    return p->at + (p->end - p->at + SIDE - 1) / SIDE * SIDE;
}

/* True if the next tile is not empty in the triangle. */
static bool is_there(const struct weft_amx_packing *p)
{
    const struct weft_product *triangle = p->operand->triangle;
    if (!triangle) return true;
    if (p->operand->along) return p->k < weft_product_row_end(triangle, p->i);
    return p->i < (weft_product_row_end(triangle, p->k) + SIDE - 1) / SIDE * SIDE;
}

/* Operands stored by k are walked along rows, all panels at once. A single panel would touch a line
 * in each of many pages. */
static void advance_packing(struct weft_amx_packing *p)
{
    if (p->operand->along) {
        p->k += STEP;
        if (p->k < p->end_k) return;
        p->k = p->first;
        p->i += BLOCK;
        p->done = p->i >= padded_end(p);
    } else {
        p->i += BLOCK;
        if (p->i < padded_end(p)) return;
        p->i = p->at;
        p->k += STEP;
        p->done = p->k >= p->end_k;
    }
}

static void next_tile(struct weft_amx_packing *p)
{
    p->unit = 0;
    do {
        advance_packing(p);
    } while (!p->done && !is_there(p));
}

/* Prefetches a unit's share of the lines that are packed after this tile. The lines of 16 or 32
 * rows are too far apart for the hardware to predict. */
WEFT_ALWAYS_INLINE void fetch(const struct weft_amx_packing *p, bool f32, bool along)
{
    const int64_t size = f32 ? sizeof(float) : sizeof(uint16_t), stride = p->operand->stride * size;
    const int rows = along ? BLOCK : STEP;
    const char *from = (const char *)p->operand->from;
    if (along) {
        const bool same = p->k + 2 * STEP < p->end_k;
        from += (same ? p->i : p->i + BLOCK) * stride;
        from += (same ? p->k + 2 * STEP : p->first + p->k + 2 * STEP - p->end_k) * size;
    } else {
        from += (p->k + STEP) * stride + p->i * size;
    }
    for (int i = p->unit; i < rows; i += p->units_of_tile) {
        _mm_prefetch(from + i * stride, _MM_HINT_T0);
        if (f32 && along) _mm_prefetch(from + i * stride + 64, _MM_HINT_T0);
    }
}

/* Callers pass constants, and whole tiles are a separate case, so the code has no branches. */
WEFT_ALWAYS_INLINE void pack_unit(struct weft_amx_packing *p, bool f32, bool along, bool turned)
{
    const enum weft_dtype dtype = f32 ? WEFT_F32 : WEFT_BF16;
    const int64_t side = p->i - p->at, sides = p->end - p->i, steps = p->end_k - p->k;
    const int64_t there =
        along ? p->i * p->operand->stride + p->k : p->k * p->operand->stride + p->i;
    const char *from = (const char *)p->operand->from + there * (f32 ? 4 : 2);
    uint16_t *tile = p->panels + side / SIDE * p->panel +
                     (p->k - p->first) / STEP * weft_amx_panel_elements(dtype, STEP) +
                     side % SIDE * (TILE / BLOCK);
    const bool whole = sides >= BLOCK && steps >= STEP;
    fetch(p, f32, along);
    if (f32 && whole) {
        pack_f32(p, along, turned, BLOCK, STEP, (const void *)from, p->unit, tile);
    } else if (f32) {
        pack_f32(p, along, turned, sides, steps, (const void *)from, p->unit, tile);
    } else if (whole) {
        pack_bf16(p, along, turned, BLOCK, STEP, (const void *)from, p->unit, tile);
    } else {
        pack_bf16(p, along, turned, sides, steps, (const void *)from, p->unit, tile);
    }
    if (++p->unit == p->units_of_tile) next_tile(p);
}

WEFT_ALWAYS_INLINE void pack_units(struct weft_amx_packing *p, bool f32, bool along, int64_t units)
{
    if (p->operand->is_a != along) {
        for (; units > 0 && !p->done; units--) {
            pack_unit(p, f32, along, true);
        }
    } else {
        for (; units > 0 && !p->done; units--) {
            pack_unit(p, f32, along, false);
        }
    }
}

void weft_amx_pack_begin(struct weft_amx_packing *packing, const struct weft_amx_operand *operand,
                         int64_t at, int64_t end, int64_t first, int64_t depth, uint16_t *panels)
{
    packing->operand = operand;
    packing->at = packing->i = at;
    packing->end = end;
    packing->first = packing->k = first;
    packing->end_k = first + depth;
    packing->panels = panels;
    packing->panel = weft_amx_panel_elements(operand->dtype, depth);
    packing->unit = 0;
    packing->units_of_tile = units_of(operand);
    packing->done = false;
    while (!packing->done && !is_there(packing)) {
        advance_packing(packing);
    }
}

int64_t weft_amx_pack_units(const struct weft_amx_packing *p)
{
    return (padded_end(p) - p->at) / BLOCK * ((p->end_k - p->first + STEP - 1) / STEP) *
           p->units_of_tile;
}

void weft_amx_pack_some(struct weft_amx_packing *packing, int64_t units)
{
    const bool along = packing->operand->along;
    if (packing->operand->dtype == WEFT_F32) {
        along ? pack_units(packing, true, true, units) : pack_units(packing, true, false, units);
    } else {
        along ? pack_units(packing, false, true, units) : pack_units(packing, false, false, units);
    }
}
