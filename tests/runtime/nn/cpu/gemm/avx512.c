/* SPDX-License-Identifier: Apache-2.0 */
/* Weft's f32 products by AVX-512: their precision compared with a library's, at every edge of
 * blocks, and the range that they read. Skipped without AVX-512. */
#include <criterion/criterion.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/rng.h"
#include "runtime/nn/cpu/gemm/gemm.h"
#include "runtime/nn/cpu/kernels/kernels.h"

static struct weft_gemm *open_or_skip_gemm_avx512(const char *name, int32_t threads)
{
    struct weft_gemm *gemm = NULL;
    struct weft_error err = {0};
    if (weft_gemm_open(name, threads, WEFT_F32, &gemm, &err) != WEFT_OK)
        cr_skip("no \"%s\" here: %s", name, err.text);
    return gemm;
}

static void run_gemm_avx512(const struct weft_gemm *gemm, const struct weft_product *product)
{
    struct weft_error err = {0};
    cr_assert_eq(weft_gemm_run(gemm, product, &err), WEFT_OK, "%s", err.text);
}

/* Operands and c begin or end at the edge of mapped memory: bytes beyond it must not be touched. */
struct gemm_avx512_matrices {
    struct weft_product product;
    float *a, *b, *c;
    void *mapped[3];
    size_t mapped_bytes[3];
};

static float *mapped(struct gemm_avx512_matrices *x, int i, int64_t elements, bool at_end)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = (size_t)elements * sizeof(float);
    const size_t room = (bytes + page - 1) / page * page;
    char *all = mmap(NULL, room + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    cr_assert_neq(all, MAP_FAILED);
    cr_assert_eq(mprotect(all + page, room, PROT_READ | PROT_WRITE), 0);
    x->mapped[i] = all;
    x->mapped_bytes[i] = room + 2 * page;
    float *numbers = (float *)(void *)(all + page + (at_end ? room - bytes : 0));
    for (int64_t j = 0; j < elements; j++) {
        numbers[j] = (float)weft_rng_normal(23, (uint64_t)i, (uint64_t)j);
    }
    return numbers;
}

static struct gemm_avx512_matrices matrices_of_avx512(bool ta, bool tb, int64_t m, int64_t n,
                                                      int64_t k, bool at_end)
{
    struct gemm_avx512_matrices x = {.product = weft_product_dense(ta, tb, m, n, k, WEFT_F32)};
    x.product.a = x.a = mapped(&x, 0, m * k, at_end);
    x.product.b = x.b = mapped(&x, 1, k * n, at_end);
    x.product.c = x.c = mapped(&x, 2, m * n, at_end);
    return x;
}

static void finish_avx512(struct gemm_avx512_matrices *x)
{
    for (int i = 0; i < 3; i++) {
        munmap(x->mapped[i], x->mapped_bytes[i]);
    }
}

struct gemm_avx512_errors {
    double most, rms; /* of c - ab, in units of 2^-24 times_gemm_avx512 the sum of |a||b| */
};

/* Errors of every element of some rows, with the first and the last. */
static struct gemm_avx512_errors errors_of_gemm_avx512(const struct weft_gemm *gemm,
                                                       const struct gemm_avx512_matrices *x)
{
    enum { ROWS = 30 };
    const struct weft_product *p = &x->product;
    const int64_t rows = p->m < ROWS ? p->m : ROWS;
    struct gemm_avx512_errors errors = {0};
    double squares = 0;
    memset(x->c, 0xff, (size_t)(p->m * p->n) * sizeof(float));
    run_gemm_avx512(gemm, p);
    for (int64_t row = 0; row < rows; row++) {
        const int64_t i = rows > 1 ? row * (p->m - 1) / (rows - 1) : 0;
        for (int64_t j = 0; j < p->n; j++) {
            double sum = 0, size = 0;
            for (int64_t l = 0; l < p->k; l++) {
                const double term = (double)x->a[p->transpose_a ? l * p->m + i : i * p->k + l] *
                                    (double)x->b[p->transpose_b ? j * p->k + l : l * p->n + j];
                sum += term;
                size += fabs(term);
            }
            const double error = fabs((double)x->c[i * p->n + j] - sum) / size * 0x1p24;
            if (!(error <= errors.most)) errors.most = error; /* NaN too */
            squares += error * error;
        }
    }
    errors.rms = sqrt(squares / (double)(rows * p->n));
    return errors;
}

/* One size beyond every edge: rows of a tile, columns of a tile and of a vector, groups of rows,
 * passes along k, and blocks of columns, for which packed rows are kept or not. */
Test(gemm_avx512, is_the_formula_at_every_edge_and_reads_nothing_beyond)
{
    static const int64_t sizes[][3] = {
        {32, 32, 16},  {33, 47, 17},    {37, 48, 31},   {47, 49, 64},    {48, 63, 100},
        {49, 65, 383}, {59, 33, 384},   {60, 96, 385},  {95, 160, 400},  {97, 40, 769},
        {150, 33, 48}, {34, 1000, 390}, {59, 80, 1024}, {384, 600, 769}, {390, 600, 700}};
    struct weft_gemm *gemm = open_or_skip_gemm_avx512("avx512", 1);
    for (int s = 0; s < 15; s++) {
        for (int kind = 0; kind < 8; kind++) {
            struct gemm_avx512_matrices x = matrices_of_avx512(kind & 1, kind & 2, sizes[s][0],
                                                               sizes[s][1], sizes[s][2], kind & 4);
            const struct gemm_avx512_errors errors = errors_of_gemm_avx512(gemm, &x);
            cr_assert(errors.most < 12, "kind %d, %lld x %lld x %lld: off by %g", kind,
                      (long long)sizes[s][0], (long long)sizes[s][1], (long long)sizes[s][2],
                      errors.most);
            finish_avx512(&x);
        }
    }
    weft_gemm_close(gemm);
}

Test(gemm_avx512, is_about_as_exact_as_a_library)
{
    static const struct {
        bool ta, tb;
        int64_t m, n, k;
    } shapes[] = {{false, true, 256, 1152, 384},
                  {false, false, 256, 384, 1536},
                  {true, false, 384, 384, 2048},
                  {false, true, 64, 256, 64}};
    struct weft_gemm *ours = open_or_skip_gemm_avx512("avx512", 1),
                     *library = open_or_skip_gemm_avx512("onednn", 1);
    for (int i = 0; i < 4; i++) {
        struct gemm_avx512_matrices x = matrices_of_avx512(shapes[i].ta, shapes[i].tb, shapes[i].m,
                                                           shapes[i].n, shapes[i].k, true);
        const struct gemm_avx512_errors native = errors_of_gemm_avx512(library, &x),
                                        got = errors_of_gemm_avx512(ours, &x);
        cr_assert(got.most <= 1.5 * native.most && got.rms <= 1.1 * native.rms,
                  "%lld x %lld x %lld: most %g, rms %g, of a library %g and %g",
                  (long long)shapes[i].m, (long long)shapes[i].n, (long long)shapes[i].k, got.most,
                  got.rms, native.most, native.rms);
        finish_avx512(&x);
    }
    weft_gemm_close(ours);
    weft_gemm_close(library);
}

/* A product of x by y, alone in its sum. */
static float times_gemm_avx512(const struct weft_gemm *gemm, float x, float y)
{
    enum { SIDE = 64 };
    float *a = calloc(SIDE * SIDE, sizeof(float)), *b = calloc(SIDE * SIDE, sizeof(float));
    float *c = malloc(SIDE * SIDE * sizeof(float));
    struct weft_product product = weft_product_dense(false, false, SIDE, SIDE, SIDE, WEFT_F32);
    a[3 * SIDE + 21] = x;
    b[21 * SIDE + 40] = y;
    product.a = a;
    product.b = b;
    product.c = c;
    run_gemm_avx512(gemm, &product);
    const float result = c[3 * SIDE + 40];
    free(a);
    free(b);
    free(c);
    return result;
}

Test(gemm_avx512, is_f32_to_the_ends_of_its_range)
{
    static const float x[] = {0x1p-149f, 0x1p-127f, 0x1.fffffep-64f, 1.0f / 3, FLT_MAX,
                              -FLT_MAX,  INFINITY,  -INFINITY,       0x1p100f, -0x1.8p-60f};
    struct weft_gemm *gemm = open_or_skip_gemm_avx512("avx512", 1);
    for (int i = 0; i < 10; i++) {
        for (int j = 0; j < 10; j++) {
            const float expected = x[i] * x[j], got = times_gemm_avx512(gemm, x[i], x[j]);
            cr_assert_eq(got, expected, "%a times %a gave %a", (double)x[i], (double)x[j],
                         (double)got);
        }
        cr_assert(isnan(times_gemm_avx512(gemm, x[i], NAN)) &&
                  isnan(times_gemm_avx512(gemm, NAN, x[i])));
    }
    weft_gemm_close(gemm);
}

enum {
    GEMM_AVX512_M = 310,
    GEMM_AVX512_N = 450,
    GEMM_AVX512_K = 1300
}; /* several passes, groups and blocks */

Test(gemm_avx512, bits_of_an_element_depend_on_its_row_and_column_alone)
{
    enum { FIRST = 91, ROWS = 70, FROM = 7, COLUMNS = 35 };
    struct weft_gemm *gemm = open_or_skip_gemm_avx512("avx512", 1);
    float *c = malloc(sizeof(float[GEMM_AVX512_M * GEMM_AVX512_N]));
    for (int kind = 0; kind < 4; kind++) {
        const bool ta = kind & 1, tb = kind & 2;
        struct gemm_avx512_matrices x =
            matrices_of_avx512(ta, tb, GEMM_AVX512_M, GEMM_AVX512_N, GEMM_AVX512_K, true);
        run_gemm_avx512(gemm, &x.product);
        struct weft_product part = x.product;
        part.a = x.a + FIRST * (ta ? 1 : GEMM_AVX512_K);
        part.b = x.b + FROM * (tb ? GEMM_AVX512_K : 1);
        part.m = ROWS;
        part.n = COLUMNS;
        part.c = c;
        run_gemm_avx512(gemm, &part);
        for (int64_t i = 0; i < ROWS; i++) {
            cr_assert_eq(memcmp(c + i * GEMM_AVX512_N, x.c + (FIRST + i) * GEMM_AVX512_N + FROM,
                                sizeof(float[COLUMNS])),
                         0, "kind %d, row %lld", kind, (long long)i);
        }
        finish_avx512(&x);
    }
    free(c);
    weft_gemm_close(gemm);
}

/* Threads that have rows or columns, and some that have none. */
Test(gemm_avx512, threads_give_the_bits_of_one)
{
    static const int64_t sizes[][3] = {{GEMM_AVX512_M, GEMM_AVX512_N, GEMM_AVX512_K},
                                       {GEMM_AVX512_N, GEMM_AVX512_M, GEMM_AVX512_K},
                                       {40, 200, 33},
                                       {300, 40, 50}};
    struct weft_gemm *one = open_or_skip_gemm_avx512("avx512", 1);
    for (int32_t threads = 2; threads <= 5; threads += 3) {
        struct weft_gemm *several = open_or_skip_gemm_avx512("avx512", threads);
        for (int i = 0; i < 16; i++) {
            const int64_t *size = sizes[i / 4], m = size[0], n = size[1];
            const size_t bytes = (size_t)(m * n) * sizeof(float);
            struct gemm_avx512_matrices x = matrices_of_avx512(i & 1, i & 2, m, n, size[2], true);
            float *c = malloc(bytes), *bias = malloc((size_t)(3 * n) * sizeof(float));
            for (int64_t j = 0; j < n; j++) {
                bias[j] = (float)j;
            }
            x.product.finish.bias = bias;
            x.product.finish.column_sums = bias + n;
            run_gemm_avx512(one, &x.product);
            x.product.c = c;
            x.product.finish.column_sums = bias + 2 * n;
            run_gemm_avx512(several, &x.product);
            cr_assert_eq(memcmp(c, x.c, bytes), 0, "%d of %d threads", i, (int)threads);
            cr_assert_eq(memcmp(bias + n, bias + 2 * n, (size_t)n * sizeof(float)), 0,
                         "sums, %d of %d threads", i, (int)threads);
            free(c);
            free(bias);
            finish_avx512(&x);
        }
        weft_gemm_close(several);
    }
    weft_gemm_close(one);
}

/* Numbers at which GELU's formula changes, special values, and numbers between them. */
static void fill_for_gelu(int64_t n, float *x)
{
    static const float special[] = {
        0.0f,   -0.0f,          10.0f,     -10.0f,    0x1.400002p3f, 1e-40f,   INFINITY,   1e30f,
        -1e30f, -0x1.400002p3f, -INFINITY, 9.999999f, FLT_MIN,       -FLT_MIN, -9.999999f, NAN};
    enum { N_SPECIAL = sizeof(special) / sizeof(special[0]) };
    for (int64_t i = 0; i < n; i++) {
        x[i] = i < N_SPECIAL ? special[i] : 4 * (float)weft_rng_normal(29, 0, (uint64_t)i);
    }
}

/* With a and b such that a product is 1 everywhere, or with a 0 is a bias. */
Test(gemm_avx512, gelu_and_its_slope_have_the_bits_of_kernels)
{
    enum { ROWS_OF_C = 64, COLUMNS_OF_C = 4096, DEPTH = 16, OF_C = ROWS_OF_C * COLUMNS_OF_C };
    const struct weft_layer_kernels *kernels = weft_kernels_level(0)->layers[WEFT_F32];
    struct weft_gemm *gemm = open_or_skip_gemm_avx512("avx512", 1);
    struct gemm_avx512_matrices x =
        matrices_of_avx512(false, false, ROWS_OF_C, COLUMNS_OF_C, DEPTH, true);
    float *input = malloc(OF_C * sizeof(float)), *found = malloc(OF_C * sizeof(float)),
          *expected = malloc(OF_C * sizeof(float)), *sums = malloc(COLUMNS_OF_C * sizeof(float));
    fill_for_gelu(OF_C, input);
    for (int64_t i = 0; i < ROWS_OF_C * DEPTH; i++) {
        x.a[i] = 1;
    }
    for (int64_t i = 0; i < DEPTH * COLUMNS_OF_C; i++) {
        x.b[i] = 1.0f / DEPTH;
    }
    x.product.finish = (struct weft_product_finish){.gelu_input = input, .column_sums = sums};
    run_gemm_avx512(gemm, &x.product);
    for (int64_t i = 0; i < OF_C; i++) {
        expected[i] = 1;
    }
    kernels->gelu_backward(ROWS_OF_C, COLUMNS_OF_C, input, expected, expected, NULL);
    cr_assert_eq(memcmp(x.c, expected, OF_C * sizeof(float)), 0, "slope");

    memset(x.a, 0, ROWS_OF_C * DEPTH * sizeof(float));
    x.product.finish = (struct weft_product_finish){.bias = input, .gelu = found};
    run_gemm_avx512(gemm, &x.product);
    kernels->gelu(COLUMNS_OF_C, x.c, expected);
    cr_assert_eq(memcmp(found, expected, COLUMNS_OF_C * sizeof(float)), 0, "GELU");
    cr_assert_eq(found[2], 10.0f, "GELU of 10 is %g", (double)found[2]);
    free(input);
    free(found);
    free(expected);
    free(sums);
    finish_avx512(&x);
    weft_gemm_close(gemm);
}

/* The library computes thin products, so its bits are expected. */
Test(gemm_avx512, thin_products_are_left_to_the_library)
{
    static const int64_t sizes[][3] = {{31, 64, 999}, {64, 31, 999}, {64, 64, 15}, {64, 64, 999}};
    struct weft_gemm *ours = open_or_skip_gemm_avx512("avx512", 1),
                     *library = open_or_skip_gemm_avx512("onednn", 1);
    for (int s = 0; s < 4; s++) {
        struct gemm_avx512_matrices x =
            matrices_of_avx512(false, false, sizes[s][0], sizes[s][1], sizes[s][2], true);
        const size_t bytes = (size_t)(x.product.m * x.product.n) * sizeof(float);
        float *c = malloc(bytes);
        run_gemm_avx512(ours, &x.product);
        x.product.c = c;
        run_gemm_avx512(library, &x.product);
        cr_assert_eq(memcmp(c, x.c, bytes) == 0, s < 3, "%lld x %lld x %lld",
                     (long long)sizes[s][0], (long long)sizes[s][1], (long long)sizes[s][2]);
        free(c);
        finish_avx512(&x);
    }
    weft_gemm_close(ours);
    weft_gemm_close(library);
}
