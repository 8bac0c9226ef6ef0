/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/nn/cpu/gemm/gemm.h"

#include <criterion/criterion.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/rng.h"
#include "runtime/nn/cpu/kernels/kernels.h"
#include "tests/effort.h"

static const char *const names[] = {"onednn", "amx-bf16x3", "avx512", "plain"};
enum { N_NAMES = sizeof(names) / sizeof(names[0]) };
static const char *const narrow_names[] = {"onednn", "onednn-emulated", "amx", "plain"};

struct gemm_matrices {
    float *a, *b, *c;
    void *owned[3];
};

static float *matrix(struct gemm_matrices *m, int i, int64_t elements, size_t offset_bytes)
{
    char *owned = malloc((size_t)elements * sizeof(float) + offset_bytes);
    float *x = (float *)(void *)(owned + offset_bytes);
    for (int64_t j = 0; j < elements; j++) {
        x[j] = (float)weft_rng_normal(11, (uint64_t)i, (uint64_t)j);
    }
    m->owned[i] = owned;
    return x;
}

static void finish_gemm(struct gemm_matrices *m)
{
    for (int i = 0; i < 3; i++) {
        free(m->owned[i]);
    }
}

static void run_gemm(const struct weft_gemm *gemm, const struct weft_product *product)
{
    struct weft_error err = {0};
    cr_assert_eq(weft_gemm_run(gemm, product, &err), WEFT_OK, "%s", err.text);
}

static struct weft_product product_of_gemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k,
                                           enum weft_dtype dtype, const void *a, const void *b,
                                           void *c)
{
    struct weft_product product = weft_product_dense(ta, tb, m, n, k, dtype);
    product.a = a;
    product.b = b;
    product.c = c;
    return product;
}

/* Rows end with `pad` unused elements, which must stay as they are. The buffers hold not one byte
 * more than the last row needs. */
static void check_product(const struct weft_gemm *gemm, bool ta, bool tb, int64_t m, int64_t n,
                          int64_t k, int64_t pad, bool accumulate)
{
    const int64_t a_rows = ta ? k : m, a_columns = ta ? m : k;
    const int64_t b_rows = tb ? n : k, b_columns = tb ? k : n;
    struct gemm_matrices x;
    struct weft_product product = {.transpose_a = ta,
                                   .transpose_b = tb,
                                   .m = m,
                                   .n = n,
                                   .k = k,
                                   .a_stride = a_columns + pad,
                                   .b_stride = b_columns + pad,
                                   .c_stride = n + pad,
                                   .alpha = 0.5f,
                                   .accumulate = accumulate};
    product.a = x.a = matrix(&x, 0, a_rows * (a_columns + pad) - pad, 0);
    product.b = x.b = matrix(&x, 1, b_rows * (b_columns + pad) - pad, 0);
    product.c = x.c = matrix(&x, 2, m * (n + pad) - pad, 0);
    float *before = malloc((size_t)(m * (n + pad) - pad) * sizeof(float));
    memcpy(before, x.c, (size_t)(m * (n + pad) - pad) * sizeof(float));
    if (!accumulate) {
        for (int64_t i = 0; i < m; i++) {
            memset(x.c + i * (n + pad), 0xff, (size_t)n * sizeof(float)); /* NaN, not read */
        }
    }
    run_gemm(gemm, &product);
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < n; j++) {
            double sum = 0;
            for (int64_t l = 0; l < k; l++) {
                sum += (double)x.a[ta ? l * product.a_stride + i : i * product.a_stride + l] *
                       (double)x.b[tb ? j * product.b_stride + l : l * product.b_stride + j];
            }
            const int64_t at = i * product.c_stride + j;
            const double expected = 0.5 * sum + (accumulate ? (double)before[at] : 0);
            cr_assert(fabs((double)x.c[at] - expected) < 1e-6 * (double)(k + 10),
                      "%s %d%d %lldx%lldx%lld [%lld, %lld]: %g, not %g", weft_gemm_name(gemm), ta,
                      tb, (long long)m, (long long)n, (long long)k, (long long)i, (long long)j,
                      (double)x.c[at], expected);
        }
        for (int64_t j = n; j < n + pad && i < m - 1; j++) {
            cr_assert_eq(x.c[i * (n + pad) + j], before[i * (n + pad) + j]);
        }
    }
    free(before);
    finish_gemm(&x);
}

/* One that is wrong is not opened, and tests of it are skipped as where there is none. */
Test(gemm, no_way_that_there_is_is_wrong)
{
    static const char *const all[] = {"onednn",     "onednn-emulated", "amx",
                                      "amx-bf16x3", "avx512",          "plain"};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        for (int dtype = 0; dtype < WEFT_DTYPE_COUNT; dtype++) {
            for (int32_t threads = 1; threads <= 2; threads++) {
                struct weft_gemm *gemm = NULL;
                struct weft_error err = {0};
                const enum weft_status status =
                    weft_gemm_open(all[i], threads, (enum weft_dtype)dtype, &gemm, &err);
                cr_assert(status == WEFT_OK || strstr(err.text, "are wrong here") == NULL, "%s",
                          err.text);
                weft_gemm_close(gemm);
            }
        }
    }
}

Test(gemm, is_the_formula_for_every_transposition_stride_and_odd_size)
{
    static const int64_t sizes[][3] = {{1, 1, 1},   {3, 5, 7},    {64, 64, 64}, {67, 130, 33},
                                       {1, 97, 40}, {97, 1, 300}, {5, 6, 1}};
    int opened = 0;
    for (int library = 0; library < N_NAMES; library++) {
        struct weft_gemm *gemm = NULL;
        struct weft_error err = {0};
        if (weft_gemm_open(names[library], 1, WEFT_F32, &gemm, &err) != WEFT_OK) continue;
        opened++;
        for (int s = 0; s < 7; s++) {
            for (int kind = 0; kind < 8; kind++) {
                check_product(gemm, kind & 1, kind & 2, sizes[s][0], sizes[s][1], sizes[s][2],
                              s % 3 * 5, kind & 4);
            }
        }
        weft_gemm_close(gemm);
    }
    cr_assert_gt(opened, 0);
}

/* Sizes at which operands are turned first, in one piece and in several, and just not. */
Test(gemm, is_the_formula_where_operands_are_turned)
{
    static const struct {
        bool ta;
        int64_t m, n, k;
    } shapes[] = {{true, 280, 260, 400},
                  {true, 1600, 256, 20},
                  {true, 256, 255, 400},
                  {false, 1030, 40, 50},
                  {false, 1030, 50, 40}};
    for (int library = 0; library < N_NAMES; library++) {
        struct weft_gemm *gemm = NULL;
        struct weft_error err = {0};
        if (weft_gemm_open(names[library], 1, WEFT_F32, &gemm, &err) != WEFT_OK) continue;
        for (int s = 0; s < 5; s++) {
            check_product(gemm, shapes[s].ta, false, shapes[s].m, shapes[s].n, shapes[s].k,
                          s % 2 * 5, s % 2);
        }
        weft_gemm_close(gemm);
    }
}

/* Numbers of 16 bits with sums in fp32. Values that are not rounded to 16 bits are nearly exact. */
static void check_narrow(const struct weft_gemm *gemm, enum weft_dtype dtype,
                         enum weft_dtype c_dtype, bool ta, bool tb, bool accumulate, int64_t m,
                         int64_t n, int64_t k)
{
    const struct weft_kernels *kernels = weft_kernels_best();
    const int64_t size = weft_dtype_bytes(c_dtype);
    struct gemm_matrices x;
    uint16_t *a = malloc((size_t)(m * k) * 2), *b = malloc((size_t)(k * n) * 2);
    void *c = malloc((size_t)(m * n * size));
    float *got = malloc((size_t)(m * n) * sizeof(float));
    x.a = matrix(&x, 0, m * k, 0);
    x.b = matrix(&x, 1, k * n, 0);
    x.c = matrix(&x, 2, m * n, 0);
    kernels->narrow(dtype, m * k, x.a, a);
    kernels->widen(dtype, m * k, a, x.a);
    kernels->narrow(dtype, k * n, x.b, b);
    kernels->widen(dtype, k * n, b, x.b);
    kernels->narrow(c_dtype, m * n, x.c, c);
    kernels->widen(c_dtype, m * n, c, x.c);
    if (!accumulate) memset(c, 0xff, (size_t)(m * n * size));
    struct weft_product product = product_of_gemm(ta, tb, m, n, k, dtype, a, b, c);
    product.c_dtype = c_dtype;
    product.alpha = 0.5f;
    product.accumulate = accumulate;
    run_gemm(gemm, &product);
    kernels->widen(c_dtype, m * n, c, got);
    const double unit = c_dtype == WEFT_BF16 ? 0x1p-8 : c_dtype == WEFT_F16 ? 0x1p-11 : 0;
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < n; j++) {
            double sum = 0;
            for (int64_t l = 0; l < k; l++) {
                sum += (double)x.a[ta ? l * m + i : i * k + l] *
                       (double)x.b[tb ? j * k + l : l * n + j];
            }
            const double expected = 0.5 * sum + (accumulate ? (double)x.c[i * n + j] : 0);
            const double half = unit * ldexp(1, ilogb(expected)); /* the last place of c */
            cr_assert(fabs((double)got[i * n + j] - expected) <=
                          1.001 * half + 1e-6 * (double)(k + 10),
                      "%s %s to %s, %d%d%d %lldx%lldx%lld: %g, not %g", weft_gemm_describe(gemm),
                      weft_dtype_name(dtype), weft_dtype_name(c_dtype), ta, tb, accumulate,
                      (long long)m, (long long)n, (long long)k, (double)got[i * n + j], expected);
        }
    }
    free(a);
    free(b);
    free(c);
    free(got);
    finish_gemm(&x);
}

Test(gemm, of_16_bits_rounds_once)
{
    static const int64_t sizes[][3] = {{1, 1, 1}, {67, 130, 33}, {520, 9, 1100}, {7, 600, 520}};
    int opened = 0;
    for (int i = 0; i < 8; i++) {
        const enum weft_dtype dtype = i / 4 ? WEFT_F16 : WEFT_BF16;
        struct weft_gemm *gemm = NULL;
        struct weft_error err = {0};
        if (weft_gemm_open(narrow_names[i % 4], 1, dtype, &gemm, &err) != WEFT_OK) continue;
        opened++;
        cr_assert(strstr(weft_gemm_describe(gemm), weft_dtype_name(dtype)), "%s",
                  weft_gemm_describe(gemm));
        for (int s = 0; s < 4; s++) {
            for (int kind = 0; kind < 16; kind++) {
                if (!test_draws((uint64_t)(kind + 16 * s + 64 * i), 4, 8)) continue;
                check_narrow(gemm, dtype, kind & 8 ? WEFT_F32 : dtype, kind & 1, kind & 2, kind & 4,
                             sizes[s][0], sizes[s][1], sizes[s][2]);
            }
        }
        weft_gemm_close(gemm);
    }
    cr_assert_gt(opened, 0);
}

/* Sizes of several blocks in every direction, for which the formula would take too long. */
Test(gemm, tiles_agree_with_the_emulation_and_with_themselves_on_two_threads)
{
    enum { M = 1100, N = 700, K = 1090 };
    static const char *const ways[] = {"onednn-emulated", "amx", "amx"};
    struct weft_gemm *gemms[3] = {NULL};
    struct weft_error err = {0};
    for (int i = 0; i < 3; i++) {
        if (weft_gemm_open(ways[i], i == 2 ? 2 : 1, WEFT_BF16, &gemms[i], &err) == WEFT_OK)
            continue;
        cr_assert_eq(err.status, WEFT_E_ENVIRONMENT, "%s", err.text);
        for (int j = 0; j < i; j++) {
            weft_gemm_close(gemms[j]);
        }
        cr_skip("not compared: %s", err.text);
    }
    struct gemm_matrices x;
    uint16_t *a = malloc(sizeof(uint16_t[M * K])), *b = malloc(sizeof(uint16_t[K * N]));
    weft_kernels_best()->narrow(WEFT_BF16, M * K, matrix(&x, 0, M * K, 0), a);
    weft_kernels_best()->narrow(WEFT_BF16, K * N, matrix(&x, 1, K * N, 0), b);
    float *c = matrix(&x, 2, 3 * M * N, 0);
    for (int kind = 0; kind < 4; kind++) {
        const bool ta = kind & 1, tb = kind & 2;
        for (int i = 0; i < 3; i++) {
            struct weft_product product =
                product_of_gemm(ta, tb, M, N, K, WEFT_BF16, a, b, c + i * M * N);
            product.c_dtype = WEFT_F32;
            run_gemm(gemms[i], &product);
        }
        for (int64_t i = 0; i < M * N; i++) {
            cr_assert(fabsf(c[M * N + i] - c[i]) < 1e-3f, "kind %d, %lld: %g, emulated %g", kind,
                      (long long)i, (double)c[M * N + i], (double)c[i]);
        }
        cr_assert_eq(memcmp(c + M * N, c + 2 * M * N, sizeof(float[M * N])), 0);
    }
    free(a);
    free(b);
    finish_gemm(&x);
    for (int i = 0; i < 3; i++) {
        weft_gemm_close(gemms[i]);
    }
}

Test(gemm, refuses_a_dtype_that_it_was_not_opened_for)
{
    struct weft_gemm *gemm = NULL;
    struct weft_error err = {0};
    cr_assert_eq(weft_gemm_open("auto", 1, WEFT_F32, &gemm, &err), WEFT_OK, "%s", err.text);
    uint16_t x[1] = {0};
    const struct weft_product product = {
        .dtype = WEFT_BF16, .m = 1, .n = 1, .k = 1, .a = x, .b = x, .c = x};
    cr_assert_eq(weft_gemm_run(gemm, &product, &err), WEFT_E_INTERNAL);
    weft_gemm_close(gemm);
}

Test(gemm, of_no_columns_is_zero_or_nothing)
{
    struct weft_gemm *gemm = NULL;
    struct weft_error err = {0};
    cr_assert_eq(weft_gemm_open("auto", 1, WEFT_F32, &gemm, &err), WEFT_OK, "%s", err.text);
    float c[6] = {1, 2, 3, 4, 5, 6};
    struct weft_product product = {
        .m = 2, .n = 2, .a_stride = 1, .b_stride = 2, .c_stride = 3, .alpha = 1, .c = c};
    product.accumulate = true;
    run_gemm(gemm, &product);
    cr_assert_eq(c[0], 1);
    product.accumulate = false;
    run_gemm(gemm, &product);
    const float expected[6] = {0, 0, 3, 0, 0, 6};
    cr_assert_eq(memcmp(c, expected, sizeof(c)), 0);
    weft_gemm_close(gemm);
}

Test(gemm, bits_do_not_depend_on_where_the_numbers_lie)
{
    static const size_t offsets[][3] = {{64, 0, 0}, {0, 64, 128}, {192, 64, 0}, {4, 20, 36}};
    static const int64_t sizes[][3] = {{64, 64, 64}, {150, 70, 384}, {64, 200, 64}, {33, 65, 129},
                                       {1, 97, 40},  {97, 1, 300},   {130, 2, 66}};
    for (int library = 0; library < N_NAMES; library++) {
        struct weft_gemm *gemm = NULL;
        struct weft_error err = {0};
        if (weft_gemm_open(names[library], 1, WEFT_F32, &gemm, &err) != WEFT_OK) continue;
        for (int s = 0; s < 7; s++) {
            for (int kind = 0; kind < 4; kind++) {
                const int64_t m = sizes[s][0], n = sizes[s][1], k = sizes[s][2];
                const bool ta = kind & 1, tb = kind & 2;
                float *first = NULL;
                struct gemm_matrices x[5];
                for (int i = 0; i < 5; i++) {
                    static const size_t none[3];
                    const size_t *offset = i > 0 ? offsets[i - 1] : none;
                    x[i].a = matrix(&x[i], 0, m * k, offset[0]);
                    x[i].b = matrix(&x[i], 1, k * n, offset[1]);
                    x[i].c = matrix(&x[i], 2, m * n, offset[2]);
                    struct weft_product product =
                        product_of_gemm(ta, tb, m, n, k, WEFT_F32, x[i].a, x[i].b, x[i].c);
                    product.accumulate = kind == 3;
                    run_gemm(gemm, &product);
                    if (!first) first = x[i].c;
                    cr_assert_eq(memcmp(first, x[i].c, (size_t)(m * n) * sizeof(float)), 0,
                                 "%s size %d kind %d offset %d", names[library], s, kind, i);
                }
                for (int i = 0; i < 5; i++) {
                    finish_gemm(&x[i]);
                }
            }
        }
        weft_gemm_close(gemm);
    }
}

/* A product with its operands. */
struct drawn {
    struct weft_product product;
    void *operands[5];         /* a, b, what c begins with, bias, residual */
    size_t c_bytes, all_bytes; /* of the results: c, its GELU, column sums */
    char *results;
};

static void *drawn_numbers(enum weft_dtype dtype, uint64_t stream, int64_t n)
{
    float *x = malloc((size_t)n * sizeof(float));
    for (int64_t i = 0; i < n; i++) {
        x[i] = (float)(weft_rng_u64(23, stream, (uint64_t)i) >> 40) * 0x1p-23f - 1;
    }
    if (dtype == WEFT_F32) return x;
    void *narrow = malloc((size_t)(n * weft_dtype_bytes(dtype)));
    weft_kernels_best()->narrow(dtype, n, x, narrow);
    free(x);
    return narrow;
}

/* `kind` has the operands' transposition, the finish, and accumulation. */
static struct drawn draw_product(enum weft_dtype dtype, int kind, const int64_t size[3])
{
    const int64_t m = size[0], n = size[1], k = size[2];
    struct drawn d = {.product = weft_product_dense(kind & 1, kind & 2, m, n, k, dtype)};
    struct weft_product *p = &d.product;
    const int64_t sizes[] = {m * k, k * n, m * n, n, m * n};
    for (int i = 0; i < 5; i++) {
        d.operands[i] = drawn_numbers(dtype, (uint64_t)i, sizes[i]);
    }
    d.c_bytes = (size_t)(m * n * weft_dtype_bytes(dtype));
    d.all_bytes = 2 * d.c_bytes + (size_t)n * sizeof(float);
    d.results = calloc(1, d.all_bytes);
    p->a = d.operands[0];
    p->b = d.operands[1];
    p->c = d.results;
    p->alpha = 0.5f;
    p->accumulate = kind & 4;
    if (kind % 3 == 1) {
        p->finish.bias = d.operands[3];
        p->finish.residual = kind & 8 ? d.operands[4] : NULL;
        p->finish.gelu = kind & 8 ? NULL : d.results + d.c_bytes;
    } else if (kind % 3 == 2 && !p->accumulate) {
        p->finish.gelu_input = kind & 8 ? d.operands[4] : NULL;
        p->finish.column_sums = (float *)(void *)(d.results + 2 * d.c_bytes);
    }
    return d;
}

static void free_drawn(struct drawn *d)
{
    for (int i = 0; i < 5; i++) {
        free(d->operands[i]);
    }
    free(d->results);
}

/* Sizes on both sides of a part's, odd ones, and sums so long that a library would share them. */
static const int64_t drawn_sizes[][3] = {{144, 128, 1136}, {16, 112, 912},   {88, 101, 1857},
                                         {1, 300, 64},     {257, 66, 770},   {70, 1030, 130},
                                         {1100, 40, 96},   {320, 272, 1100}, {1040, 300, 300}};
enum { N_SIZES = sizeof(drawn_sizes) / sizeof(*drawn_sizes), MOST_DRAWN = 2 * N_SIZES };

/* Draws kinds of product for each size, other ones for each dtype. */
static int draw_products(enum weft_dtype dtype, struct drawn drawn[MOST_DRAWN])
{
    int n = 0;
    for (int i = 0; i < 2 * N_SIZES; i += dtype == WEFT_F32 ? 1 : 4) {
        if (dtype == WEFT_F32 && !test_draws((uint64_t)i, 2, 3)) continue;
        drawn[n++] = draw_product(dtype, (5 * i + 3 * (int)dtype) % 16, drawn_sizes[i / 2]);
    }
    return n;
}

/* Runs each product on one thread, keeps the results, and compares those of other threads. */
static void check_threads(const char *name, enum weft_dtype dtype, struct drawn drawn[], int n)
{
    static const int32_t threads[] = {1, 2, 3, 4, 8, 16};
    char *right[MOST_DRAWN] = {NULL};
    for (int t = 0; t < 6; t++) {
        struct weft_gemm *gemm = NULL;
        struct weft_error err = {0};
        if (weft_gemm_open(name, threads[t], dtype, &gemm, &err) != WEFT_OK) break;
        for (int i = 0; i < n; i++) {
            struct drawn *d = &drawn[i];
            memcpy(d->results, d->operands[2], d->c_bytes);
            run_gemm(gemm, &d->product);
            if (t == 0) right[i] = memcpy(malloc(d->all_bytes), d->results, d->all_bytes);
            cr_assert_eq(memcmp(d->results, right[i], d->all_bytes), 0,
                         "%s, %s, product %d: %d threads", name, weft_dtype_name(dtype), i,
                         (int)threads[t]);
        }
        weft_gemm_close(gemm);
    }
    for (int i = 0; i < n; i++) {
        free(right[i]);
    }
}

Test(gemm, any_number_of_threads_gives_the_same_bits)
{
    for (int dtype = 0; dtype < WEFT_DTYPE_COUNT; dtype++) {
        struct drawn drawn[MOST_DRAWN];
        const int n = draw_products(dtype, drawn);
        for (int i = 0; i < N_NAMES; i++) {
            const char *name = (dtype == WEFT_F32 ? names : narrow_names)[i];
            const bool slow = strcmp(name, "plain") == 0; /* and without threads */
            check_threads(name, dtype, drawn, slow ? 1 : n);
        }
        for (int i = 0; i < n; i++) {
            free_drawn(&drawn[i]);
        }
    }
}

Test(gemm, says_what_it_chose_and_why)
{
    struct weft_gemm *gemm = NULL;
    struct weft_error err = {0};
    cr_assert_eq(weft_gemm_open("auto", 2, WEFT_F32, &gemm, &err), WEFT_OK, "%s", err.text);
    cr_assert(strstr(weft_gemm_describe(gemm), " GFLOP/s"), "%s", weft_gemm_describe(gemm));
    const char *name = weft_gemm_name(gemm);
    bool known = false;
    for (int i = 0; i < N_NAMES; i++) {
        known = known || strcmp(name, names[i]) == 0;
    }
    cr_assert(known, "%s", name);
    weft_gemm_close(gemm);

    for (int i = 0; i < N_NAMES; i++) {
        if (weft_gemm_open(names[i], 1, WEFT_F32, &gemm, &err) != WEFT_OK) continue;
        cr_assert(strstr(weft_gemm_describe(gemm), "(asked for)"), "%s", weft_gemm_describe(gemm));
        cr_assert_str_eq(weft_gemm_name(gemm), names[i]);
        weft_gemm_close(gemm);
    }
    weft_gemm_close(NULL);
}

/* Others on the machine change neither the choice nor, with it, the bits of a run_gemm. */
Test(gemm, chooses_the_same_where_cores_are_shared)
{
    enum { OTHERS = 4, TIMES = 5 };
    pid_t others[OTHERS];
    char first[32] = "";
    for (int i = 0; i < OTHERS; i++) {
        others[i] = fork();
        cr_assert_geq(others[i], 0);
        if (others[i] != 0) continue;
        alarm(60);
        for (volatile int turns = 0;; turns = turns + 1) {
        }
    }
    for (int i = 0; i < TIMES; i++) {
        struct weft_gemm *gemm = NULL;
        struct weft_error err = {0};
        cr_assert_eq(weft_gemm_open("auto", 2, WEFT_F32, &gemm, &err), WEFT_OK, "%s", err.text);
        if (i == 0) snprintf(first, sizeof first, "%s", weft_gemm_name(gemm));
        cr_expect_str_eq(weft_gemm_name(gemm), first, "%s", weft_gemm_describe(gemm));
        weft_gemm_close(gemm);
    }
    for (int i = 0; i < OTHERS; i++) {
        kill(others[i], SIGKILL);
        waitpid(others[i], NULL, 0);
    }
}

Test(gemm, refuses_what_there_is_not)
{
    struct weft_gemm *gemm = NULL;
    struct weft_error err = {0};
    cr_assert_eq(weft_gemm_open("mkl", 1, WEFT_F32, &gemm, &err), WEFT_E_USAGE);
    cr_assert(strstr(err.text, "there is no GEMM library \"mkl\"; there are \"auto\", \""), "%s",
              err.text);
    const bool has_amx = strstr(err.text, "\"amx\"") != NULL;
    err = (struct weft_error){0};
    if (has_amx) {
        cr_assert_eq(weft_gemm_open("amx", 1, WEFT_F16, &gemm, &err), WEFT_E_USAGE);
        cr_assert_str_eq(err.text, "the GEMM library \"amx\" is for bf16, not for f16");
        err = (struct weft_error){0};
        cr_assert_eq(weft_gemm_open("amx-bf16x3", 1, WEFT_BF16, &gemm, &err), WEFT_E_USAGE);
        cr_assert_str_eq(err.text, "the GEMM library \"amx-bf16x3\" is for f32, not for bf16");
    }
    err = (struct weft_error){0};
    cr_assert_eq(weft_gemm_open("auto", 0, WEFT_F32, &gemm, &err), WEFT_E_USAGE);
    cr_assert_str_eq(err.text, "compute threads must be at least 1, not 0");
    cr_assert_null(gemm);
}
