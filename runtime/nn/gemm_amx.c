#define _GNU_SOURCE /* syscall */
#include "runtime/nn/gemm_amx.h"

#include <immintrin.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/numbers.h"

/* A tile is 16 rows of 64 bytes. Two by two of them are a part of c, 32 x 32 in fp32, to which a
 * step along k of 32 adds two tiles of a, [16 rows, 32 of k], times two of b, [16 pairs of k, 16
 * columns]. Both operands are packed so, padded with zeros, in panels of 32 rows or columns.
 *
 * One operand is resident: up to RESIDENT elements of it lie packed in the second cache while the
 * other streams by, some panels at a time. Where k is longer than DEPTH, sums of streamed panels
 * wait in memory for the next part of it. The first cache holds 32 x NEAR of the streamed panel,
 * which the inner loop comes back to. */
enum {
    SIDE = 32,
    TILE = 512,         /* elements of bf16 */
    PART = SIDE * SIDE, /* elements of c */
    DEPTH = 1024,
    NEAR = 512,
    RESIDENT = 512 << 10,
    MOST_RESIDENT = 2048, /* rows or columns */
    STREAMED = 256 << 10,
    SUMS = RESIDENT / DEPTH * 512
};

struct workspace {
    uint16_t resident[RESIDENT], streamed[STREAMED];
    float sums[SUMS]; /* parts of c, [streamed panel, resident panel] */
};

struct weft_gemm_amx {
    int32_t threads;
    struct workspace *workspaces; /* one a thread */
};

/* A matrix of which panels of 32 rows (of a) or columns (of b) are packed. Where k runs along the
 * rows as they are stored, `along` says so. */
struct operand {
    const uint16_t *from;
    int64_t stride, size;
    bool along, is_a;
};

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t round_up(int64_t x, int64_t unit)
{
    return (x + unit - 1) / unit * unit;
}

/* 16 rows of 16 double words become columns. */
static inline void transpose(__m512i r[16])
{
    __m512i t[16];
    for (int i = 0; i < 16; i += 4) {
        const __m512i a = _mm512_unpacklo_epi32(r[i], r[i + 1]);
        const __m512i b = _mm512_unpackhi_epi32(r[i], r[i + 1]);
        const __m512i c = _mm512_unpacklo_epi32(r[i + 2], r[i + 3]);
        const __m512i d = _mm512_unpackhi_epi32(r[i + 2], r[i + 3]);
        t[i] = _mm512_unpacklo_epi64(a, c);
        t[i + 1] = _mm512_unpackhi_epi64(a, c);
        t[i + 2] = _mm512_unpacklo_epi64(b, d);
        t[i + 3] = _mm512_unpackhi_epi64(b, d);
    }
    for (int i = 0; i < 4; i++) {
        const __m512i a = _mm512_shuffle_i32x4(t[i], t[4 + i], 0x88);
        const __m512i b = _mm512_shuffle_i32x4(t[i], t[4 + i], 0xdd);
        const __m512i c = _mm512_shuffle_i32x4(t[8 + i], t[12 + i], 0x88);
        const __m512i d = _mm512_shuffle_i32x4(t[8 + i], t[12 + i], 0xdd);
        r[i] = _mm512_shuffle_i32x4(a, c, 0x88);
        r[4 + i] = _mm512_shuffle_i32x4(b, d, 0x88);
        r[8 + i] = _mm512_shuffle_i32x4(a, c, 0xdd);
        r[12 + i] = _mm512_shuffle_i32x4(b, d, 0xdd);
    }
}

/* One tile from `rows` x `columns` stored elements: up to 16 x 32 along k, or else 32 x 16, of
 * which two rows then become one of pairs. What is not there is 0. */
static inline void pack_tile(const uint16_t *from, int64_t stride, int64_t rows, int64_t columns,
                             bool along, bool turn, uint16_t *tile)
{
    __m512i r[16];
    columns = columns > 0 ? columns : 0;
    if (along) {
        const __mmask32 mask = (__mmask32)(((uint64_t)1 << columns) - 1);
        for (int i = 0; i < 16; i++) {
            r[i] = _mm512_maskz_loadu_epi16(i < rows ? mask : 0, from + i * stride);
        }
    } else {
        const __mmask16 mask = (__mmask16)(((uint32_t)1 << columns) - 1);
        for (int i = 0; i < 16; i++) {
            const uint16_t *even = from + 2 * i * stride;
            const __m512i low =
                _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(2 * i < rows ? mask : 0, even));
            const __m512i high = _mm512_cvtepu16_epi32(
                _mm256_maskz_loadu_epi16(2 * i + 1 < rows ? mask : 0, even + stride));
            r[i] = _mm512_or_si512(low, _mm512_slli_epi32(high, 16));
        }
    }
    if (turn) transpose(r);
    for (int i = 0; i < 16; i++) {
        _mm512_store_si512(tile + 32 * i, r[i]);
    }
}

static int64_t panel_elements(int64_t depth)
{
    return SIDE * round_up(depth, 32);
}

/* Rows or columns [at, end) of k in [first, first + depth), as panels one after the other. What is
 * stored by k is walked along its rows, all panels at once: a panel alone would take a line from
 * each of many pages. */
static void pack_panels(const struct operand *o, int64_t at, int64_t end, int64_t first,
                        int64_t depth, uint16_t *panels)
{
    const int64_t panel = panel_elements(depth);
    for (int64_t k = 0; k < depth && !o->along; k += 32) {
        const uint16_t *from = o->from + (first + k) * o->stride;
        for (int64_t i = at; i < round_up(end, SIDE); i += 16) {
            uint16_t *tile = panels + (i - at) / SIDE * panel + k * SIDE + (i - at) % SIDE * 32;
            pack_tile(from + i, o->stride, least(32, depth - k), least(16, end - i), false, o->is_a,
                      tile);
        }
    }
    for (int64_t i = at; i < round_up(end, SIDE) && o->along; i += 16) {
        const uint16_t *from = o->from + i * o->stride + first;
        uint16_t *tile = panels + (i - at) / SIDE * panel + (i - at) % SIDE * 32;
        for (int64_t k = 0; k < depth; k += 32, tile += 2 * TILE) {
            pack_tile(from + k, o->stride, least(16, end - i), least(32, depth - k), true, !o->is_a,
                      tile);
        }
    }
}

/* The layout that _tile_loadconfig reads. */
struct tile_config {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
};

static void configure_tiles(void)
{
    struct tile_config config = {.palette = 1};
    for (int i = 0; i < 8; i++) {
        config.row_bytes[i] = 64;
        config.rows[i] = 16;
    }
    _tile_loadconfig(&config);
}

/* sums [32, 32] = or += panels a and b, over `steps` times 32 of k. */
static void multiply(const uint16_t *a, const uint16_t *b, int64_t steps, bool add, float *sums)
{
    enum { STRIDE = SIDE * sizeof(float) };
    if (add) {
        _tile_loadd(0, sums, STRIDE);
        _tile_loadd(1, sums + 16, STRIDE);
        _tile_loadd(2, sums + 16 * SIDE, STRIDE);
        _tile_loadd(3, sums + 16 * SIDE + 16, STRIDE);
    } else {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
    }
    for (int64_t i = 0; i < steps; i++, a += 2 * TILE, b += 2 * TILE) {
        _tile_loadd(4, a, 64);
        _tile_loadd(6, b, 64);
        _tile_loadd(7, b + TILE, 64);
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
        _tile_loadd(5, a + TILE, 64);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
    }
    _tile_stored(0, sums, STRIDE);
    _tile_stored(1, sums + 16, STRIDE);
    _tile_stored(2, sums + 16 * SIDE, STRIDE);
    _tile_stored(3, sums + 16 * SIDE + 16, STRIDE);
}

/* n elements of a row of c from their sums. */
static void finish_row(const struct weft_product *p, const float *restrict sums, int64_t n,
                       int64_t at)
{
    if (p->c_dtype == WEFT_F32) {
        float *restrict c = (float *)p->c + at;
        for (int64_t j = 0; j < n; j++) {
            c[j] = p->alpha * sums[j] + (p->accumulate ? c[j] : 0);
        }
    } else if (p->accumulate) {
        uint16_t *restrict c = (uint16_t *)p->c + at;
        for (int64_t j = 0; j < n; j++) {
            c[j] = weft_bf16_narrow(p->alpha * sums[j] + weft_bf16_widen(c[j]));
        }
    } else {
        uint16_t *restrict c = (uint16_t *)p->c + at;
        for (int64_t j = 0; j < n; j++) {
            c[j] = weft_bf16_narrow(p->alpha * sums[j]);
        }
    }
}

/* The part of c that begins at row m0, column n0. */
static void finish(const struct weft_product *p, const float *sums, int64_t m0, int64_t n0)
{
    const int64_t m = least(SIDE, p->m - m0), n = least(SIDE, p->n - n0);
    for (int64_t i = 0; i < m; i++, sums += SIDE) {
        const int64_t at = (m0 + i) * p->c_stride + n0;
        if (n == SIDE) {
            finish_row(p, sums, SIDE, at); /* a known length: no loop */
        } else {
            finish_row(p, sums, n, at);
        }
    }
}

/* A streamed panel times all resident ones, into their sums. */
static void multiply_panels(const uint16_t *streamed, const uint16_t *resident, bool resident_is_a,
                            int64_t panels, int64_t depth, bool add, float *sums)
{
    for (int64_t k = 0; k < depth; k += NEAR) {
        const int64_t steps = (least(NEAR, depth - k) + 31) / 32;
        for (int64_t r = 0; r < panels; r++) {
            const uint16_t *s = streamed + k * SIDE;
            const uint16_t *t = resident + r * panel_elements(depth) + k * SIDE;
            multiply(resident_is_a ? t : s, resident_is_a ? s : t, steps, add || k > 0,
                     sums + r * PART);
        }
    }
}

/* Every k of resident rows or columns [r0, r_end) and streamed ones [s0, s_end). */
static void run_chunk(struct workspace *w, const struct weft_product *p,
                      const struct operand *resident, int64_t r0, int64_t r_end,
                      const struct operand *streamed, int64_t s0, int64_t s_end)
{
    const int64_t panels = (r_end - r0 + SIDE - 1) / SIDE;
    for (int64_t k = 0; k < p->k; k += DEPTH) {
        const int64_t depth = least(DEPTH, p->k - k);
        const int64_t group = STREAMED / panel_elements(depth) * SIDE;
        pack_panels(resident, r0, r_end, k, depth, w->resident);
        for (int64_t s = s0; s < s_end; s += SIDE) {
            const int64_t in_group = (s - s0) % group;
            if (in_group == 0)
                pack_panels(streamed, s, least(s + group, s_end), k, depth, w->streamed);
            float *sums = w->sums + (p->k > DEPTH ? (s - s0) / SIDE * panels * PART : 0);
            multiply_panels(w->streamed + in_group / SIDE * panel_elements(depth), w->resident,
                            resident->is_a, panels, depth, k > 0, sums);
            for (int64_t r = 0; r < panels && k + depth == p->k; r++) {
                const int64_t at = r0 + r * SIDE;
                finish(p, sums + r * PART, resident->is_a ? at : s, resident->is_a ? s : at);
            }
        }
    }
}

/* How much of an operand can be resident. */
static int64_t room(const struct weft_product *p)
{
    return least(RESIDENT / panel_elements(least(p->k, DEPTH)) * SIDE, MOST_RESIDENT);
}

/* Streamed rows or columns [begin, end) with everything that is resident. */
static void run_share(struct workspace *w, const struct weft_product *p,
                      const struct operand *resident, const struct operand *streamed, int64_t begin,
                      int64_t end)
{
    configure_tiles();
    for (int64_t r = 0; r < resident->size; r += room(p)) {
        const int64_t r_end = least(r + room(p), resident->size);
        const int64_t chunk =
            p->k > DEPTH ? SUMS / PART / (round_up(r_end - r, SIDE) / SIDE) * SIDE : end - begin;
        for (int64_t s = begin; s < end; s += chunk) {
            run_chunk(w, p, resident, r, r_end, streamed, s, least(s + chunk, end));
        }
    }
    _tile_release();
}

/* The one that can lie there as a whole, so that the other passes by once; or else the one that is
 * dearer to pack: rows of a that lie along k, and pairs of b that do not, are only copied. */
static bool a_is_resident(const struct weft_product *p)
{
    const bool a_fits = p->m <= room(p), b_fits = p->n <= room(p);
    const bool a_dear = p->transpose_a, b_dear = p->transpose_b;
    if (a_fits != b_fits) return a_fits;
    return a_dear != b_dear ? a_dear : p->m < p->n;
}

void weft_gemm_amx_run(struct weft_gemm_amx *amx, const struct weft_product *p)
{
    const struct operand a = {
        .from = p->a, .stride = p->a_stride, .size = p->m, .along = !p->transpose_a, .is_a = true};
    const struct operand b = {
        .from = p->b, .stride = p->b_stride, .size = p->n, .along = p->transpose_b};
    const bool a_resident = a_is_resident(p);
    const struct operand *resident = a_resident ? &a : &b, *streamed = a_resident ? &b : &a;
    const int64_t share = round_up((streamed->size + amx->threads - 1) / amx->threads, SIDE);
#ifdef _OPENMP
#pragma omp parallel for num_threads(amx->threads) schedule(static, 1)
#endif
    for (int32_t i = 0; i < amx->threads; i++) {
        const int64_t begin = i * share, end = least(begin + share, streamed->size);
        if (begin < end) run_share(&amx->workspaces[i], p, resident, streamed, begin, end);
    }
}

/* Linux lends the registers, 8 KiB of every thread's state, to processes that ask. */
static bool have_tiles(void)
{
    enum { REQUEST_PERMISSION = 0x1023, TILE_DATA = 18 };
    unsigned a, b, c, d;
    __asm__("cpuid" : "=a"(a), "=b"(b), "=c"(c), "=d"(d) : "a"(7), "c"(0));
    const bool amx = d >> 24 & 1 && d >> 22 & 1;
    return amx && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512dq") &&
           syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
}

enum weft_status weft_gemm_amx_open(int32_t threads, struct weft_gemm_amx **out,
                                    struct weft_error *err)
{
    if (!have_tiles()) {
        return weft_fail(err, WEFT_E_ENVIRONMENT,
                         "products on AMX tiles: this CPU has none for bf16, or the system does "
                         "not lend them; \"onednn\" takes what there is");
    }
#ifndef _OPENMP
    if (threads > 1) {
        return weft_fail(err, WEFT_E_ENVIRONMENT,
                         "products on AMX tiles: this build, without OpenMP, has them for one "
                         "thread and not for %d; \"onednn\" has them",
                         (int)threads);
    }
#endif
    struct weft_gemm_amx *amx = calloc(1, sizeof(*amx));
    if (!amx) return weft_fail_memory(err, "products on AMX tiles");
    amx->threads = threads;
    amx->workspaces = aligned_alloc(64, (size_t)threads * sizeof(*amx->workspaces));
    if (!amx->workspaces) {
        weft_gemm_amx_close(amx);
        return weft_fail_memory(err, "products on AMX tiles");
    }
    *out = amx;
    return WEFT_OK;
}

void weft_gemm_amx_close(struct weft_gemm_amx *amx)
{
    if (!amx) return;
    free(amx->workspaces);
    free(amx);
}
