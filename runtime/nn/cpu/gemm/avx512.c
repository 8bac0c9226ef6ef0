/* SPDX-License-Identifier: Apache-2.0 */
/* Products of f32 by AVX-512, as exact as a library's and finished on their way to c. Sums along k
 * run in passes of at most 384. The length of a pass depends on k alone, and passes are added to c
 * in order. So an element's bits depend only on its row, its column, alpha and the added terms, for
 * any blocking and number of threads. */
#define _DEFAULT_SOURCE /* madvise */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "runtime/nn/cpu/gemm/avx512_pack.h"
#include "runtime/nn/cpu/gemm/multiplier.h"
#include "runtime/nn/cpu/kernels/kernels.h"

/* A block of b, as deep as a pass, lies packed in the second cache. Rows of a stream past it: 12 at
 * a time meet all of its panels. Between passes sums wait in c. */
enum {
    LARGE_PAGE = 2 << 20,
    ROWS = WEFT_AVX512_ROWS,
    COLUMNS = WEFT_AVX512_COLUMNS,
    VECTOR = WEFT_AVX512_VECTOR,
    GROUP = WEFT_AVX512_GROUP,
    PASS = 384,
    BLOCK = 160 << 10, /* elements of b */
    KEPT_GROUPS = 4,
    A_PANELS = KEPT_GROUPS * GROUP * (PASS + 2 * VECTOR),
    LEAST_ROWS = 32,
    LEAST_COLUMNS = 32,
    LEAST_DEPTH = 16
};

struct workspace {
    float b[BLOCK], a[A_PANELS];
};

struct avx512 {
    int32_t threads;
    struct workspace *workspaces; /* [threads] */
};

/* The part of a product that a thread computes: rows and columns of c, and the current block. */
struct span {
    const struct weft_product *product;
    int64_t m, m_end, n, n_end, n_begin, n_last;
    int64_t k, depth;
    bool kept;
};

static int64_t least_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t parts_of(int64_t x, int64_t unit)
{
    return (x + unit - 1) / unit;
}

/* Columns of a that are packed next: those of the next group, or the first of the next pass. NULL
 * if there are none. */
static const float *next_columns(const struct span *s, int64_t m)
{
    const struct weft_product *p = s->product;
    const bool first = s->n == s->n_begin, last = s->n_end == s->n_last;
    if (m + GROUP < s->m_end) {
        return first || !s->kept ? (const float *)p->a + s->k * p->a_stride + m + GROUP : NULL;
    }
    if (s->kept && !last) return NULL;
    if (!last) return (const float *)p->a + s->k * p->a_stride + s->m;
    return s->k + s->depth < p->k ? (const float *)p->a + (s->k + s->depth) * p->a_stride + s->m
                                  : NULL;
}

/* Sets the lines of a to prefetch during tile i of a panel of a group. Stored rows, by m or by k,
 * are too far apart for the hardware to predict. Rows by m are the next panel's. Rows by k are a
 * whole group's. The group shares the second cache with the block of b if it comes late, so it
 * comes with the last tiles. */
static void fetch_beside(const struct span *s, int64_t m, int64_t panel, int64_t panels, int64_t i,
                         struct weft_avx512_tile *t)
{
    const struct weft_product *p = s->product;
    const int64_t stride = p->a_stride;
    t->fetch_stride_bytes = stride * (int64_t)sizeof(float);
    t->fetch_lines = 0;
    if (p->transpose_a) {
        const float *next = next_columns(s, m);
        const int64_t tiles = parts_of(least_of(GROUP, s->m_end - m), ROWS) * panels;
        const int64_t wanted = parts_of(s->depth, ROWS),
                      early = tiles > wanted ? tiles - wanted : 0;
        const int64_t at = (panel * panels + i - early) * ROWS;
        if (!next || at < 0 || at >= s->depth) return;
        t->fetch = (const char *)(next + at * stride);
        t->fetch_lines = GROUP / VECTOR + 1; /* loads of the last panel touch one more */
    } else {
        const int64_t ahead = weft_avx512_packs_a(p) ? GROUP : ROWS;
        const int64_t share = parts_of(parts_of(s->depth, VECTOR), panels), at = i * share * VECTOR;
        if (at >= s->depth || t->m + ahead >= s->m_end) return;
        t->fetch = (const char *)((const float *)p->a + (t->m + ahead) * stride + s->k + at);
        t->fetch_lines = (int32_t)share;
    }
}

/* Multiplies the tiles of at most a group of rows. */
static void multiply_group(const float *a, const struct workspace *w, const struct span *s,
                           int64_t m)
{
    const struct weft_product *p = s->product;
    const bool packed = weft_avx512_packs_a(p);
    const int64_t panels = parts_of(s->n_end - s->n, COLUMNS);
    const int64_t row = weft_avx512_row_elements(s->depth);
    struct weft_avx512_tile t = {.product = p,
                                 .packed = p->transpose_a,
                                 .add = p->accumulate || s->k > 0,
                                 .last = s->k + s->depth == p->k,
                                 .a_stride = packed ? row : p->a_stride,
                                 .depth = s->depth};
    for (t.m = m; t.m < least_of(m + GROUP, s->m_end); t.m += ROWS) {
        const int64_t panel = (t.m - m) / ROWS;
        t.a = packed ? a + panel * ROWS * row : (const float *)p->a + t.m * p->a_stride + s->k;
        for (int64_t i = 0; i < panels; i++) {
            t.n = s->n + i * COLUMNS;
            t.b = w->b + i * COLUMNS * s->depth;
            fetch_beside(s, m, panel, panels, i, &t);
            weft_avx512_multiply(&t);
        }
    }
}

/* Length of a pass along k. All passes have about the same length. */
static int64_t pass_of(int64_t k)
{
    const int64_t passes = parts_of(k, PASS);
    return passes == 1 ? k : parts_of(parts_of(k, passes), VECTOR) * VECTOR;
}

/* Computes rows [m, m_end) and columns [n, n_end) of c. */
static void run_share(struct workspace *w, const struct weft_product *p, int64_t m, int64_t m_end,
                      int64_t n, int64_t n_end)
{
    const int64_t pass = pass_of(p->k), room = BLOCK / pass / COLUMNS * COLUMNS;
    const int64_t block = parts_of(parts_of(n_end - n, parts_of(n_end - n, room)), COLUMNS);
    const bool packed = weft_avx512_packs_a(p), kept = parts_of(m_end - m, GROUP) <= KEPT_GROUPS;
    struct span s = {
        .product = p, .m = m, .m_end = m_end, .n_begin = n, .n_last = n_end, .kept = kept};
    for (s.k = 0; s.k < p->k; s.k += pass) {
        s.depth = least_of(pass, p->k - s.k);
        const int64_t row = weft_avx512_row_elements(s.depth);
        for (s.n = n; s.n < n_end; s.n = s.n_end) {
            s.n_end = least_of(s.n + block * COLUMNS, n_end);
            weft_avx512_pack_b(p, s.n, s.n_end - s.n, s.k, s.depth, w->b);
            for (int64_t i = m; i < m_end; i += GROUP) {
                float *a = w->a + (kept ? (i - m) * row : 0);
                if (packed && (s.n == n || !kept)) weft_avx512_pack_a(p, i, s.k, s.depth, a);
                multiply_group(a, w, &s, i);
            }
        }
    }
}

/* True if a product of f32 is not a triangle and is large enough to repay packing b. It depends on
 * sizes alone, so all runs choose the same multiplier. */
static bool pays_to_pack(const void *state, const struct weft_product *p)
{
    (void)state;
    return p->dtype == WEFT_F32 && p->triangle == WEFT_NO_TRIANGLE && p->m >= LEAST_ROWS &&
           p->n >= LEAST_COLUMNS && p->k >= LEAST_DEPTH;
}

/* Threads share rows of c. They share columns if there are more of them, or if column sums are
 * wanted. The sums then equal those of one thread, in row order. */
static void run_product(struct avx512 *avx512, const struct weft_product *product)
{
    const int32_t threads = avx512->threads;
    struct weft_product copy = *product;
    float **sums = &copy.finish.column_sums;
    const bool by_columns = product->n > product->m || (*sums && product->n >= threads * COLUMNS);
    const bool sums_apart = *sums && threads > 1 && !by_columns;
    if (*sums && !sums_apart) memset(*sums, 0, (size_t)copy.n * sizeof(**sums));
    if (sums_apart) *sums = NULL;

    const int64_t m = copy.m, n = copy.n, unit = by_columns ? COLUMNS : GROUP;
    const int64_t share = parts_of(parts_of(by_columns ? n : m, threads), unit) * unit;
#ifdef _OPENMP
#pragma omp parallel for num_threads(threads) schedule(static, 1)
#endif
    for (int32_t i = 0; i < threads; i++) {
        const int64_t begin = i * share, end = begin + share;
        struct workspace *w = &avx512->workspaces[i];
        if (by_columns && begin < n) run_share(w, &copy, 0, m, begin, least_of(end, n));
        if (!by_columns && begin < m) run_share(w, &copy, begin, least_of(end, m), 0, n);
    }
    if (sums_apart)
        weft_kernels_best()->layers[WEFT_F32]->column_sums(m, n, copy.c_stride, copy.c,
                                                           product->finish.column_sums);
}

static void close_avx512(void *state)
{
    struct avx512 *avx512 = state;
    if (!avx512) return;
    free(avx512->workspaces);
    free(avx512);
}

static enum weft_status open_avx512(int32_t threads, enum weft_dtype dtype, void **out,
                                    struct weft_error *err)
{
    (void)dtype;
    if (strcmp(weft_kernels_best()->level, "avx512") != 0) {
        return weft_fail(err, WEFT_E_ENVIRONMENT,
                         "products by AVX-512: this CPU has none; \"onednn\" takes what there is");
    }
    struct avx512 *avx512 = calloc(1, sizeof(*avx512));
    if (!avx512) return weft_fail_memory(err, "products by AVX-512");
    avx512->threads = threads;
    const size_t used = (size_t)threads * sizeof(*avx512->workspaces);
    const size_t bytes = (used + LARGE_PAGE - 1) / LARGE_PAGE * LARGE_PAGE;
    avx512->workspaces = aligned_alloc(LARGE_PAGE, bytes);
    if (!avx512->workspaces) {
        close_avx512(avx512);
        return weft_fail_memory(err, "products by AVX-512");
    }
    /* If the system refuses, small pages stay. */
    madvise(avx512->workspaces, bytes, MADV_HUGEPAGE);
    *out = avx512;
    return WEFT_OK;
}

static enum weft_status run_avx512(void *state, const struct weft_multiplier_link *next,
                                   const struct weft_product *product, struct weft_error *err)
{
    (void)next, (void)err;
    run_product(state, product);
    return WEFT_OK;
}

const struct weft_multiplier weft_multiplier_avx512 = {
    .title = "AVX-512",
    .dtypes = 1u << WEFT_F32,
    .open = open_avx512,
    .close = close_avx512,
    .covers = pays_to_pack,
    .run = run_avx512,
};
