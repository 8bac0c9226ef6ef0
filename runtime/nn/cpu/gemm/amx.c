/* SPDX-License-Identifier: Apache-2.0 */
/* Products on AMX's tile registers, which multiply bf16 and sum in fp32, 32 x 32 elements of c at a
 * time. Sums along k run in passes of at most 1024 (bf16) or 512 (f32). The length of a pass
 * depends on k alone, and passes are added in order. So an element's bits depend only on its row,
 * its column and alpha, for any blocking and number of threads. Denormal operands and results are
 * 0, as in the instruction.
 *
 * f32 is split into three bf16 parts without loss, x = x1 + x2 + x3. Six of the nine products of
 * parts are summed. The others are at most about 2^-24 of |a||b|, of either sign. Errors are those
 * of the sum, and smaller than those of an f32 library. tests/runtime/nn/cpu/gemm/amx.c compares
 * both with sums in fp64.
 *
 * The ends of the range differ from f32. A number of at least 2^128 - 2^119 counts as infinite. An
 * infinite operand may give NaN for infinity. A number below 2^-103 loses its bits below 2^-126,
 * and each of the six products below that counts as 0. */
#define _GNU_SOURCE /* syscall */
#include <immintrin.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/nn/cpu/gemm/amx_chores.h"
#include "runtime/nn/cpu/gemm/multiplier.h"
#include "runtime/nn/cpu/kernels/kernels.h"

/* A step covers 32 of k. It adds to a part of c, 32 x 32 in fp32: two tiles of a times two tiles of
 * b. With f32 operands it does so six times, for six pairs of parts.
 *
 * One operand is resident: up to RESIDENT elements of it lie packed in the second cache. The other
 * one is streamed, in groups of panels. If k is longer than a pass, sums of streamed panels wait in
 * memory for the next pass. The first cache holds `near` of the streamed panel, which the inner
 * loop reuses.
 *
 * Tiles multiply for hundreds of cycles. Meanwhile the core does chores (amx_chores.h): it packs
 * the next group and moves complete sums to c. A triangle skips empty panels and steps, and is
 * never resident. */
enum {
    SIDE = WEFT_AMX_SIDE,
    STEP = WEFT_AMX_STEP,
    TILE = WEFT_AMX_TILE,
    PART = SIDE * SIDE, /* elements of c */
    RESIDENT = 640 << 10,
    MOST_RESIDENT = 2048, /* rows or columns */
    STREAMED = 64 << 10,
    SUMS = 768 * PART
};

/* The longest pass along k, and the part of it that stays near. In f32 a step has three times the
 * bytes but six times the work, so both panels can stream from the second cache. */
struct lengths {
    int64_t pass, near;
};
static const struct lengths lengths_bf16 = {1024, 512}, lengths_f32 = {512, 512};

struct workspace {
    uint16_t resident[RESIDENT], streamed[2][STREAMED]; /* the current group, and the next */
    float sums[SUMS];                                   /* parts of c, [streamed, resident panel] */
    float current[MOST_RESIDENT / SIDE * PART];         /* of a later pass, to be added to `sums` */
};

struct amx {
    int32_t threads;
    struct workspace *workspaces; /* [threads] */
};

static int64_t least_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t round_up(int64_t x, int64_t unit)
{
    return (x + unit - 1) / unit * unit;
}

/* The layout of _tile_loadconfig's operand. */
struct tile_config {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
};

/* Must be constant. gcc assumes that _tile_loadconfig reads only the first 8 bytes, so it would
 * drop stores to the others. */
static const struct tile_config eight_tiles = {.palette = 1,
                                               .row_bytes = {64, 64, 64, 64, 64, 64, 64, 64},
                                               .rows = {16, 16, 16, 16, 16, 16, 16, 16}};

enum { SUMS_STRIDE = SIDE * sizeof(float) };

static inline void load_sums(const float *sums, bool add)
{
    if (add) {
        _tile_loadd(0, sums, SUMS_STRIDE);
        _tile_loadd(1, sums + 16, SUMS_STRIDE);
        _tile_loadd(2, sums + 16 * SIDE, SUMS_STRIDE);
        _tile_loadd(3, sums + 16 * SIDE + 16, SUMS_STRIDE);
    } else {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
    }
}

static inline void store_sums(float *sums)
{
    _tile_stored(0, sums, SUMS_STRIDE);
    _tile_stored(1, sums + 16, SUMS_STRIDE);
    _tile_stored(2, sums + 16 * SIDE, SUMS_STRIDE);
    _tile_stored(3, sums + 16 * SIDE + 16, SUMS_STRIDE);
}

/* sums [32, 32] = or += panels a and b, over `steps` of k. Pending chores may read the same place,
 * and end before it is written. */
static void multiply_bf16(const uint16_t *a, const uint16_t *b, int64_t steps, bool add,
                          float *sums, struct weft_amx_chores *chores)
{
    const int64_t rows = (SIDE + steps - 1) / steps;
    load_sums(sums, add);
    for (int64_t i = 0; i < steps; i++, a += 2 * TILE, b += 2 * TILE) {
        _tile_loadd(4, a, 64);
        _tile_loadd(6, b, 64);
        _tile_loadd(7, b + TILE, 64);
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
        _tile_loadd(5, a + TILE, 64);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
        weft_amx_pack(chores);
        weft_amx_bring(chores, rows);
    }
    store_sums(sums);
}

/* Tiles 4 and 5 hold a part of a, tiles 6 and 7 a part of b. */
static inline void load_a(const uint16_t *part)
{
    _tile_loadd(4, part, 64);
    _tile_loadd(5, part + TILE, 64);
}

static inline void load_b(const uint16_t *part)
{
    _tile_loadd(6, part, 64);
    _tile_loadd(7, part + TILE, 64);
}

static inline void add_products(void)
{
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
}

/* The same for panels in three parts: all products above 2^-24 of the whole, small before large,
 * changing one operand's part at a time. Chores come in small portions. The core looks some
 * hundreds of instructions ahead, and must find tiles to multiply among them. */
static void multiply_f32(const uint16_t *a, const uint16_t *b, int64_t steps, bool add, float *sums,
                         struct weft_amx_chores *chores)
{
    const int64_t rows = (SIDE + 3 * steps - 1) / (3 * steps);
    enum { HIGH = 0, MIDDLE = 2 * TILE, LOW = 4 * TILE, NEXT = 6 * TILE };
    load_sums(sums, add);
    for (int64_t i = 0; i < steps; i++, a += NEXT, b += NEXT) {
        load_a(a + LOW);
        load_b(b + HIGH);
        add_products();
        weft_amx_bring(chores, rows);
        load_a(a + MIDDLE);
        add_products();
        weft_amx_pack(chores);
        load_b(b + MIDDLE);
        add_products();
        weft_amx_bring(chores, rows);
        load_a(a + HIGH);
        add_products();
        weft_amx_pack(chores);
        load_b(b + LOW);
        add_products();
        weft_amx_bring(chores, rows);
        load_b(b + HIGH);
        add_products();
        weft_amx_pack(chores);
    }
    store_sums(sums);
}

/* The part of a product that a share computes. */
struct span {
    const struct weft_product *product;
    const struct weft_amx_operand *resident, *streamed;
    int64_t r, r_end, s, s_end; /* resident, and streamed rows or columns */
    int64_t k, depth;           /* of a pass */
};

static int64_t panels_of(int64_t rows)
{
    return (rows + SIDE - 1) / SIDE;
}

static const struct lengths *lengths_of(const struct weft_product *p)
{
    return p->dtype == WEFT_F32 ? &lengths_f32 : &lengths_bf16;
}

/* The range of k in which the streamed panel at s is not empty: returns its start, writes its
 * end. */
static int64_t first_of_k(const struct span *at, int64_t s, int64_t *end)
{
    const struct weft_product *p = at->product;
    *end = p->k;
    if (p->triangle != WEFT_A_IS_LOWER) return 0;
    if (p->transpose_a) return weft_product_column_begin(p, s);
    *end = weft_product_row_end(p, s);
    return 0;
}

/* Number of resident panels that the streamed panel at s meets. */
static int64_t panels_met(const struct span *at, int64_t s)
{
    int64_t end = at->r_end;
    if (at->product->triangle == WEFT_C_IS_LOWER)
        end = least_of(end, weft_product_row_end(at->product, s));
    return end > at->r ? panels_of(end - at->r) : 0;
}

/* Multiplies the packed streamed panel at s by all resident ones, and adds to their sums. */
static void multiply_panels(struct workspace *w, const struct span *at, int64_t s,
                            const uint16_t *packed, float *sums, struct weft_amx_chores *chores)
{
    const enum weft_dtype dtype = at->product->dtype;
    const int64_t panels = panels_met(at, s), near = lengths_of(at->product)->near;
    const int64_t panel = weft_amx_panel_elements(dtype, at->depth);
    const bool resident_is_a = at->resident->is_a;
    int64_t k_end;
    const int64_t k_first = first_of_k(at, s, &k_end);
    const bool first = k_first >= at->k, last = k_end <= at->k + at->depth;
    const int64_t begin = (first ? k_first : at->k) - at->k,
                  end = least_of(k_end - at->k, at->depth);
    const bool at_once = first && last && end - begin <= near; /* then one place serves all */
    for (int64_t k = begin; k < end; k += near) {
        const int64_t steps = (least_of(near, end - k) + STEP - 1) / STEP;
        const int64_t skipped = k / STEP * weft_amx_panel_elements(dtype, STEP);
        for (int64_t i = 0; i < panels; i++) {
            const uint16_t *t = w->resident + i * panel + skipped;
            const uint16_t *a = resident_is_a ? t : packed + skipped;
            const uint16_t *b = resident_is_a ? packed + skipped : t;
            const int64_t r = at->r + i * SIDE;
            float *before = sums + i * PART;
            float *to = at_once ? w->current : first ? before : w->current + i * PART;
            const int64_t m = resident_is_a ? r : s, n = resident_is_a ? s : r;
            if (last && k + near >= end) weft_amx_announce(chores, m, n);
            (dtype == WEFT_F32 ? multiply_f32 : multiply_bf16)(a, b, steps, k > begin, to, chores);
            if (k + near >= end && !(first && !last))
                weft_amx_begin_part(chores, to, first ? NULL : before, last, m, n);
        }
    }
}

/* Begins to pack the group of streamed panels at s, during the products of the group before. */
static void begin_group(struct weft_amx_chores *chores, const struct span *at, int64_t s,
                        int64_t group, uint16_t *panels)
{
    const int64_t portions = at->product->dtype == WEFT_F32 ? 3 : 1;
    const int64_t steps = (at->depth + STEP - 1) / STEP * portions;
    int64_t products = 1;
    for (int64_t i = s > at->s ? s - group : s; i < s; i += SIDE) {
        products += panels_met(at, i) * steps;
    }
    weft_amx_pack_begin(&chores->packing, at->streamed, s, least_of(s + group, at->s_end), at->k,
                        at->depth, panels);
    chores->units = (weft_amx_pack_units(&chores->packing) + products - 1) / products;
}

/* Runs one pass over resident and streamed rows or columns. */
static void run_pass(struct workspace *w, const struct span *at)
{
    const int64_t panel = weft_amx_panel_elements(at->product->dtype, at->depth);
    const int64_t group = STREAMED / panel * SIDE, panels = panels_of(at->r_end - at->r);
    const bool kept = at->depth < at->product->k;
    struct weft_amx_chores chores = {.product = at->product,
                                     .finished = weft_finish_wanted(&at->product->finish)};
    weft_amx_pack_begin(&chores.packing, at->resident, at->r, at->r_end, at->k, at->depth,
                        w->resident);
    weft_amx_pack_some(&chores.packing, INT64_MAX);
    begin_group(&chores, at, at->s, group, w->streamed[0]);
    for (int64_t s = at->s, groups = 0; s < at->s_end; s += group, groups++) {
        weft_amx_pack_some(&chores.packing, INT64_MAX);
        if (s + group < at->s_end)
            begin_group(&chores, at, s + group, group, w->streamed[(groups + 1) % 2]);
        for (int64_t i = s; i < least_of(s + group, at->s_end); i += SIDE) {
            multiply_panels(w, at, i, w->streamed[groups % 2] + (i - s) / SIDE * panel,
                            w->sums + (kept ? (i - at->s) / SIDE * panels * PART : 0), &chores);
        }
    }
    weft_amx_bring(&chores, SIDE);
}

/* Length of a pass along k. All passes have about the same length. */
static int64_t pass_of(const struct weft_product *p)
{
    const int64_t passes = (p->k + lengths_of(p)->pass - 1) / lengths_of(p)->pass;
    return passes == 1 ? p->k : round_up((p->k + passes - 1) / passes, STEP);
}

/* Rows or columns of an operand that can be resident. */
static int64_t resident_room(const struct weft_product *p)
{
    return least_of(RESIDENT / weft_amx_panel_elements(p->dtype, pass_of(p)) * SIDE, MOST_RESIDENT);
}

/* Multiplies streamed rows or columns [begin, end) by all resident ones, part after part. */
static void run_share(struct workspace *w, const struct weft_product *p,
                      const struct weft_amx_operand *resident,
                      const struct weft_amx_operand *streamed, int64_t begin, int64_t end)
{
    const int64_t pass = pass_of(p),
                  parts = (resident->size + resident_room(p) - 1) / resident_room(p);
    const int64_t part = round_up((resident->size + parts - 1) / parts, SIDE);
    const int64_t chunk = pass < p->k ? SUMS / PART / panels_of(part) * SIDE : end - begin;
    struct span at = {.product = p, .resident = resident, .streamed = streamed};
    _tile_loadconfig(&eight_tiles);
    for (at.r = 0; at.r < resident->size; at.r += part) {
        at.r_end = least_of(at.r + part, resident->size);
        for (at.s = begin; at.s < end; at.s += chunk) {
            at.s_end = least_of(at.s + chunk, end);
            for (at.k = 0; at.k < p->k; at.k += pass) {
                at.depth = least_of(pass, p->k - at.k);
                run_pass(w, &at);
            }
        }
    }
    _tile_release();
}

/* True if a is resident. An operand that fits as a whole is preferred, because the other one then
 * streams once. Otherwise it is the operand that costs more to pack: rows of a along k and pairs of
 * b across k are only copied. */
static bool a_is_resident(const struct weft_product *p)
{
    const bool a_fits = p->m <= resident_room(p), b_fits = p->n <= resident_room(p);
    const bool a_dear = p->transpose_a, b_dear = p->transpose_b;
    if (p->triangle != WEFT_NO_TRIANGLE) return false;
    if (a_fits != b_fits) return a_fits;
    return a_dear != b_dear ? a_dear : p->m < p->n;
}

/* True if a product of f32 is large enough to repay splitting its operands. It depends on sizes
 * alone, so all runs choose the same multiplier. */
static bool pays_to_split(const struct weft_product *p)
{
    return p->m >= SIDE && p->n >= SIDE && p->k >= STEP;
}

/* Rows of c are finished in order. Column sums equal those of one thread if no other thread has
 * rows of the same columns; otherwise they are summed afterwards. */
static void run_on_tiles(struct amx *amx, const struct weft_product *product)
{
    const bool a_resident = a_is_resident(product);
    const bool sums_apart = product->finish.column_sums && amx->threads > 1 && !a_resident;
    struct weft_product copy = *product;
    const struct weft_product *p = &copy;
    if (sums_apart) copy.finish.column_sums = NULL;
    if (copy.finish.column_sums)
        memset(copy.finish.column_sums, 0, (size_t)copy.n * sizeof(*copy.finish.column_sums));

    const struct weft_amx_operand a = {.dtype = p->dtype,
                                       .from = p->a,
                                       .stride = p->a_stride,
                                       .size = p->m,
                                       .along = !p->transpose_a,
                                       .is_a = true,
                                       .triangle = p->triangle == WEFT_A_IS_LOWER ? p : NULL};
    const struct weft_amx_operand b = {.dtype = p->dtype,
                                       .from = p->b,
                                       .stride = p->b_stride,
                                       .size = p->n,
                                       .along = p->transpose_b};
    const struct weft_amx_operand *resident = a_resident ? &a : &b,
                                  *streamed = a_resident ? &b : &a;
    const int64_t share = round_up((streamed->size + amx->threads - 1) / amx->threads, SIDE);
#ifdef _OPENMP
#pragma omp parallel for num_threads(amx->threads) schedule(static, 1)
#endif
    for (int32_t i = 0; i < amx->threads; i++) {
        const int64_t begin = i * share, end = least_of(begin + share, streamed->size);
        if (begin < end) run_share(&amx->workspaces[i], p, resident, streamed, begin, end);
    }
    if (sums_apart)
        weft_kernels_best()->layers[product->c_dtype]->column_sums(
            product->m, product->n, product->c_stride, product->c, product->finish.column_sums);
}

/* True if the CPU has tiles and Linux grants them: they add 8 KiB to each thread's state. */
static bool have_tiles(void)
{
    enum { REQUEST_PERMISSION = 0x1023, TILE_DATA = 18 };
    unsigned a, b, c, d;
    __asm__("cpuid" : "=a"(a), "=b"(b), "=c"(c), "=d"(d) : "a"(7), "c"(0));
    const bool amx = d >> 24 & 1 && d >> 22 & 1;
    return amx && strcmp(weft_kernels_best()->level, "avx512") == 0 &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512dq") &&
           syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
}

static void close_tiles(void *state)
{
    struct amx *amx = state;
    if (!amx) return;
    free(amx->workspaces);
    free(amx);
}

static enum weft_status open_tiles(int32_t threads, enum weft_dtype dtype, void **out,
                                   struct weft_error *err)
{
    (void)dtype;
    if (!have_tiles()) {
        return weft_fail(err, WEFT_E_ENVIRONMENT,
                         "products on AMX tiles: this CPU has none for bf16, or the system does "
                         "not lend them; \"onednn\" takes what there is");
    }
    struct amx *amx = calloc(1, sizeof(*amx));
    if (!amx) return weft_fail_memory(err, "products on AMX tiles");
    amx->threads = threads;
    amx->workspaces = aligned_alloc(64, (size_t)threads * sizeof(*amx->workspaces));
    if (!amx->workspaces) {
        close_tiles(amx);
        return weft_fail_memory(err, "products on AMX tiles");
    }
    *out = amx;
    return WEFT_OK;
}

static bool is_narrow(const void *state, const struct weft_product *product)
{
    (void)state;
    return product->dtype == WEFT_BF16;
}

static bool is_in_parts(const void *state, const struct weft_product *product)
{
    (void)state;
    return product->dtype == WEFT_F32 && pays_to_split(product);
}

static enum weft_status run_tiles(void *state, const struct weft_multiplier_link *next,
                                  const struct weft_product *product, struct weft_error *err)
{
    (void)next, (void)err;
    run_on_tiles(state, product);
    return WEFT_OK;
}

const struct weft_multiplier weft_multiplier_amx = {
    .title = "AMX tiles",
    .dtypes = 1u << WEFT_BF16,
    .open = open_tiles,
    .close = close_tiles,
    .covers = is_narrow,
    .run = run_tiles,
};

const struct weft_multiplier weft_multiplier_amx_in_parts = {
    .title = "AMX tiles (f32 as bf16x3)",
    .dtypes = 1u << WEFT_F32,
    .open = open_tiles,
    .close = close_tiles,
    .covers = is_in_parts,
    .run = run_tiles,
};
