/* SPDX-License-Identifier: Apache-2.0 */
/* f32 products from bf16 tiles: their precision compared with a library's, and their results at
 * the ends of the range. Skipped without such tiles. */
#include <criterion/criterion.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "runtime/nn/cpu/gemm/gemm.h"

static struct weft_gemm *open_or_skip_gemm_amx(const char *name, int32_t threads)
{
    struct weft_gemm *gemm = NULL;
    struct weft_error err = {0};
    if (weft_gemm_open(name, threads, WEFT_F32, &gemm, &err) != WEFT_OK)
        cr_skip("no \"%s\" here: %s", name, err.text);
    return gemm;
}

static struct weft_product product_of_gemm_amx(bool ta, bool tb, int64_t m, int64_t n, int64_t k,
                                               const float *a, const float *b, float *c)
{
    struct weft_product product = weft_product_dense(ta, tb, m, n, k, WEFT_F32);
    product.a = a;
    product.b = b;
    product.c = c;
    return product;
}

static void run_gemm_amx(const struct weft_gemm *gemm, const struct weft_product *product)
{
    struct weft_error err = {0};
    cr_assert_eq(weft_gemm_run(gemm, product, &err), WEFT_OK, "%s", err.text);
}

/* Numbers of one size with both signs or one; of sizes from 2^-20 to 2^20; and such that the
 * second half of each sum cancels the first, up to a thousandth. */
enum number_kind { NORMAL, POSITIVE, WIDE, CANCELLING, KINDS };
static const char *const kind_names[] = {"normal", "positive", "wide", "cancelling"};

static float number(enum number_kind kind, uint64_t stream, int64_t side, int64_t l, int64_t k)
{
    const bool back = kind == CANCELLING && l >= k / 2;
    const uint64_t at = (uint64_t)side << 20 | (uint64_t)(back ? l - k / 2 : l);
    const double normal = weft_rng_normal(5, stream, at);
    switch (kind) {
    case POSITIVE:
        return (float)fabs(normal);
    case WIDE:
        return (float)ldexp(normal, (int)floor(6 * weft_rng_normal(5, stream + 2, at)));
    case CANCELLING:
        return (float)(back && stream == 1 ? -1.001 * normal : normal);
    case NORMAL:
    case KINDS:
        break;
    }
    return (float)normal;
}

struct gemm_amx_matrices {
    int64_t m, n, k;
    bool ta, tb;
    float *a, *b, *c;
};

static struct gemm_amx_matrices matrices_of_amx(enum number_kind kind, bool ta, bool tb, int64_t m,
                                                int64_t n, int64_t k)
{
    struct gemm_amx_matrices x = {.m = m, .n = n, .k = k, .ta = ta, .tb = tb};
    x.a = malloc((size_t)(m * k) * sizeof(float));
    x.b = malloc((size_t)(k * n) * sizeof(float));
    x.c = malloc((size_t)(m * n) * sizeof(float));
    for (int64_t l = 0; l < k; l++) {
        for (int64_t i = 0; i < m; i++) {
            x.a[ta ? l * m + i : i * k + l] = number(kind, 0, i, l, k);
        }
        for (int64_t j = 0; j < n; j++) {
            x.b[tb ? j * k + l : l * n + j] = number(kind, 1, j, l, k);
        }
    }
    return x;
}

static void finish_amx(struct gemm_amx_matrices *x)
{
    free(x->a);
    free(x->b);
    free(x->c);
}

struct gemm_amx_errors {
    double most, rms; /* of c - ab, in units of 2^-24 times_gemm_amx the sum of |a||b| */
};

/* Errors of every element of some rows. */
static struct gemm_amx_errors errors_of_gemm_amx(const struct weft_gemm *gemm,
                                                 const struct gemm_amx_matrices *x)
{
    enum { ROWS = 24 };
    const struct weft_product product =
        product_of_gemm_amx(x->ta, x->tb, x->m, x->n, x->k, x->a, x->b, x->c);
    struct gemm_amx_errors errors = {0};
    double squares = 0;
    run_gemm_amx(gemm, &product);
    for (int64_t row = 0; row < ROWS; row++) {
        const int64_t i = row * (x->m - 1) / (ROWS - 1);
        for (int64_t j = 0; j < x->n; j++) {
            double sum = 0, size = 0;
            for (int64_t l = 0; l < x->k; l++) {
                const double term = (double)x->a[x->ta ? l * x->m + i : i * x->k + l] *
                                    (double)x->b[x->tb ? j * x->k + l : l * x->n + j];
                sum += term;
                size += fabs(term);
            }
            const double error = fabs((double)x->c[i * x->n + j] - sum) / size * 0x1p24;
            if (error > errors.most) errors.most = error;
            squares += error * error;
        }
    }
    errors.rms = sqrt(squares / (double)(ROWS * x->n));
    return errors;
}

Test(gemm_amx, f32_is_no_less_exact_than_a_library)
{
    static const struct {
        bool ta, tb;
        int64_t m, n, k;
    } shapes[] = {{false, true, 256, 1152, 384},
                  {false, false, 256, 384, 1536},
                  {true, false, 384, 384, 2048},
                  {false, true, 64, 256, 64}};
    struct weft_gemm *tiles = open_or_skip_gemm_amx("amx-bf16x3", 1),
                     *library = open_or_skip_gemm_amx("onednn", 1);
    for (int i = 0; i < 4 * KINDS; i++) {
        const int s = i / KINDS;
        struct gemm_amx_matrices x =
            matrices_of_amx((enum number_kind)(i % KINDS), shapes[s].ta, shapes[s].tb, shapes[s].m,
                            shapes[s].n, shapes[s].k);
        const struct gemm_amx_errors native = errors_of_gemm_amx(library, &x),
                                     ours = errors_of_gemm_amx(tiles, &x);
        cr_assert(ours.most <= 1.25 * native.most && ours.rms <= native.rms,
                  "%s %lld x %lld x %lld: most %g, rms %g, of a library %g and %g",
                  kind_names[i % KINDS], (long long)x.m, (long long)x.n, (long long)x.k, ours.most,
                  ours.rms, native.most, native.rms);
        finish_amx(&x);
    }
    weft_gemm_close(tiles);
    weft_gemm_close(library);
}

/* A product of x by one, in a size that tiles multiply. */
static float times_gemm_amx(const struct weft_gemm *gemm, float x, float y)
{
    enum { SIDE = 64 };
    float *a = calloc(SIDE * SIDE, sizeof(float)), *b = calloc(SIDE * SIDE, sizeof(float));
    float *c = malloc(SIDE * SIDE * sizeof(float));
    a[3 * SIDE + 21] = x;
    b[21 * SIDE + 40] = y;
    const struct weft_product product =
        product_of_gemm_amx(false, false, SIDE, SIDE, SIDE, a, b, c);
    run_gemm_amx(gemm, &product);
    const float result = c[3 * SIDE + 40];
    free(a);
    free(b);
    free(c);
    return result;
}

Test(gemm_amx, f32_products_of_one_term_are_as_exact_as_the_header_says)
{
    struct weft_gemm *gemm = open_or_skip_gemm_amx("amx-bf16x3", 1);
    for (uint64_t i = 0; i < 200; i++) {
        const float x = (float)weft_rng_normal(7, 0, i), y = (float)weft_rng_normal(7, 1, i);
        const double exact = (double)x * (double)y;
        const double error = fabs((double)times_gemm_amx(gemm, x, y) - exact) / fabs(exact);
        cr_assert(error < 0x1.8p-23, "%a times %a: off by %g", (double)x, (double)y, error);
        cr_assert_eq(times_gemm_amx(gemm, x, 1), x, "24 bits are kept of %a", (double)x);
        cr_assert_eq(times_gemm_amx(gemm, 0x1p-5f, x), 0x1p-5f * x);
    }
    weft_gemm_close(gemm);
}

Test(gemm_amx, f32_that_is_not_finite_stays_so)
{
    static const float x[] = {INFINITY, -INFINITY, NAN, 0x1.ffp127f, FLT_MAX, -FLT_MAX};
    struct weft_gemm *gemm = open_or_skip_gemm_amx("amx-bf16x3", 1);
    for (int i = 0; i < 6; i++) {
        for (int swapped = 0; swapped < 2; swapped++) {
            const float got =
                swapped ? times_gemm_amx(gemm, 0.5f, x[i]) : times_gemm_amx(gemm, x[i], 0.5f);
            cr_assert(!isfinite(got), "%g times 0.5 gave %g", (double)x[i], (double)got);
        }
    }
    /* NaN with every payload that a part of 8 bits could lose. */
    static const uint32_t bits[] = {0x7f800001, 0x7fffffff, 0xffffffff, 0x7fbfffff, 0xff808000};
    for (int i = 0; i < 5; i++) {
        float nan;
        memcpy(&nan, &bits[i], sizeof(nan));
        cr_assert(isnan(times_gemm_amx(gemm, nan, 1)) && isnan(times_gemm_amx(gemm, 1, nan)), "%#x",
                  bits[i]);
    }
    cr_assert(!isfinite(times_gemm_amx(gemm, 0x1p100f, 0x1p100f)));
    cr_assert_eq(times_gemm_amx(gemm, 0x1.fep127f, 0.5f), 0x1.fep126f);
    cr_assert_eq(times_gemm_amx(gemm, 0x1.fefffep127f, -1), -0x1.fefffep127f);
    weft_gemm_close(gemm);
}

Test(gemm_amx, f32_near_the_least_loses_bits_and_then_all)
{
    struct weft_gemm *gemm = open_or_skip_gemm_amx("amx-bf16x3", 1);
    const float third = 0x1.555556p-2f;
    cr_assert_eq(times_gemm_amx(gemm, third * 0x1p-100f, 1), third * 0x1p-100f);
    for (int exponent = -103; exponent > -126; exponent--) {
        const float x = ldexpf(third, exponent + 2);
        const double error = fabs((double)times_gemm_amx(gemm, x, 1) - (double)x);
        cr_assert(error <= 0x1p-126, "%g is off by %g", (double)x, error);
    }
    cr_assert_eq(times_gemm_amx(gemm, 0x1p-126f, 1), 0x1p-126f);
    cr_assert_eq(times_gemm_amx(gemm, 0x1p-127f, 0x1p60f), 0, "a denormal counts as 0");
    cr_assert_eq(times_gemm_amx(gemm, 0x1p-70f, 0x1p-60f), 0, "and is not a result");
    weft_gemm_close(gemm);
}

enum {
    GEMM_AMX_M = 700,
    GEMM_AMX_N = 450,
    GEMM_AMX_K = 1300
}; /* several passes, groups and resident parts */

Test(gemm_amx, bits_of_an_element_depend_on_its_row_and_column_alone)
{
    enum { FIRST = 96, ROWS = 70, COLUMNS = 33 };
    struct weft_gemm *gemm = open_or_skip_gemm_amx("amx-bf16x3", 1);
    float *c = malloc(sizeof(float[GEMM_AMX_M * GEMM_AMX_N]));
    for (int kind = 0; kind < 4; kind++) {
        const bool ta = kind & 1, tb = kind & 2;
        struct gemm_amx_matrices x =
            matrices_of_amx(NORMAL, ta, tb, GEMM_AMX_M, GEMM_AMX_N, GEMM_AMX_K);
        struct weft_product whole =
            product_of_gemm_amx(ta, tb, GEMM_AMX_M, GEMM_AMX_N, GEMM_AMX_K, x.a, x.b, x.c);
        run_gemm_amx(gemm, &whole);
        struct weft_product part = whole;
        part.a = x.a + FIRST * (ta ? 1 : GEMM_AMX_K);
        part.m = ROWS;
        part.n = COLUMNS;
        part.c = c;
        run_gemm_amx(gemm, &part);
        for (int64_t i = 0; i < ROWS; i++) {
            cr_assert_eq(
                memcmp(c + i * GEMM_AMX_N, x.c + (FIRST + i) * GEMM_AMX_N, sizeof(float[COLUMNS])),
                0, "kind %d, row %lld", kind, (long long)i);
        }
        memcpy(c, x.c, sizeof(float[GEMM_AMX_M * GEMM_AMX_N]));
        whole.accumulate = true;
        whole.c = c;
        run_gemm_amx(gemm, &whole);
        for (int64_t i = 0; i < GEMM_AMX_M * GEMM_AMX_N; i++) {
            cr_assert_eq(c[i], 2 * x.c[i]);
        }
        finish_amx(&x);
    }
    free(c);
    weft_gemm_close(gemm);
}

Test(gemm_amx, two_threads_give_the_bits_of_one)
{
    struct weft_gemm *two = open_or_skip_gemm_amx("amx-bf16x3", 2),
                     *one = open_or_skip_gemm_amx("amx-bf16x3", 1);
    float *c = malloc(sizeof(float[GEMM_AMX_M * GEMM_AMX_N]));
    for (int kind = 0; kind < 4; kind++) {
        const bool ta = kind & 1, tb = kind & 2;
        struct gemm_amx_matrices x =
            matrices_of_amx(NORMAL, ta, tb, GEMM_AMX_M, GEMM_AMX_N, GEMM_AMX_K);
        struct weft_product product =
            product_of_gemm_amx(ta, tb, GEMM_AMX_M, GEMM_AMX_N, GEMM_AMX_K, x.a, x.b, x.c);
        run_gemm_amx(one, &product);
        product.c = c;
        run_gemm_amx(two, &product);
        cr_assert_eq(memcmp(c, x.c, sizeof(float[GEMM_AMX_M * GEMM_AMX_N])), 0, "kind %d", kind);
        finish_amx(&x);
    }
    free(c);
    weft_gemm_close(one);
    weft_gemm_close(two);
}

/* The library computes thin products, so its bits are expected. */
Test(gemm_amx, thin_f32_products_are_left_to_the_library)
{
    static const int64_t sizes[][3] = {{31, 64, 64}, {64, 31, 64}, {64, 64, 31}, {32, 32, 32}};
    struct weft_gemm *tiles = open_or_skip_gemm_amx("amx-bf16x3", 1),
                     *library = open_or_skip_gemm_amx("onednn", 1);
    for (int s = 0; s < 4; s++) {
        struct gemm_amx_matrices x =
            matrices_of_amx(NORMAL, false, false, sizes[s][0], sizes[s][1], sizes[s][2]);
        const size_t bytes = (size_t)(x.m * x.n) * sizeof(float);
        float *c = malloc(bytes);
        struct weft_product product =
            product_of_gemm_amx(false, false, x.m, x.n, x.k, x.a, x.b, x.c);
        run_gemm_amx(tiles, &product);
        product.c = c;
        run_gemm_amx(library, &product);
        cr_assert_eq(memcmp(c, x.c, bytes) == 0, s < 3, "%lld x %lld x %lld", (long long)x.m,
                     (long long)x.n, (long long)x.k);
        free(c);
        finish_amx(&x);
    }
    weft_gemm_close(tiles);
    weft_gemm_close(library);
}
