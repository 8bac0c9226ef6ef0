/* SPDX-License-Identifier: Apache-2.0 */
/* Attention with heads of keys and values that several heads of queries share, against the formula
 * in doubles: by products of every library and as whole heads, in every dtype. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/numbers.h"
#include "base/rng.h"
#include "layers/shared/stripe.h"
#include "runtime/nn/cpu/cpu.h"
#include "tests/effort.h"

struct shape {
    int64_t samples, seq_len, heads, kv_heads, size;
};

/* One row is [queries, keys, a gap, values]. */
enum { GAP_COLUMNS = 3 };
struct grouped {
    struct shape shape;
    bool again; /* probabilities are not saved */
    enum weft_dtype dtype;
    int64_t rows, stride, width; /* of the output */
    struct weft_nn_attention attention;
    struct weft_nn_attention_gradients to;
    void *qkv, *d_qkv, *output, *d_output;
};

static void *at_of(const struct grouped *g, void *array, int64_t i)
{
    return weft_nn_to(g->dtype, array, i);
}

static double value_at(const struct grouped *g, const void *array, int64_t i)
{
    float x;
    weft_kernels_best()->widen(g->dtype, 1, weft_nn_at(g->dtype, array, i), &x);
    return (double)x;
}

static void *numbers_of(const struct grouped *g, int64_t n, uint64_t stream)
{
    void *x = malloc((size_t)(n * weft_dtype_bytes(g->dtype)));
    for (int64_t i = 0; i < n; i++) {
        const float draw = (float)weft_rng_normal(31, stream, (uint64_t)i);
        weft_kernels_best()->narrow(g->dtype, 1, &draw, at_of(g, x, i));
    }
    return x;
}

static void *filled_bytes(int64_t bytes)
{
    return memset(malloc((size_t)bytes), 0xff, (size_t)bytes);
}

static int64_t stripe_elements(int64_t seq_len)
{
    const int64_t rows = weft_stripe_rows(seq_len);
    return (rows < seq_len ? rows : seq_len) * seq_len;
}

static void set_addresses(struct grouped *g, void *qkv, void *d_qkv)
{
    const struct shape *s = &g->shape;
    const int64_t key = s->heads * s->size, value = key + s->kv_heads * s->size + GAP_COLUMNS;
    g->attention.query = qkv;
    g->attention.key = at_of(g, qkv, key);
    g->attention.value = at_of(g, qkv, value);
    g->to.query = d_qkv;
    g->to.key = at_of(g, d_qkv, key);
    g->to.value = at_of(g, d_qkv, value);
}

static struct grouped grouped_of(struct shape s, bool again, enum weft_dtype dtype)
{
    struct grouped g = {.shape = s, .again = again, .dtype = dtype, .rows = s.samples * s.seq_len};
    const int64_t bytes = weft_dtype_bytes(dtype), scores = s.seq_len * s.seq_len;
    g.stride = (s.heads + 2 * s.kv_heads) * s.size + GAP_COLUMNS;
    g.width = s.heads * s.size;
    g.attention = (struct weft_nn_attention){.dtype = dtype,
                                             .samples = s.samples,
                                             .seq_len = s.seq_len,
                                             .heads = s.heads,
                                             .kv_heads = s.kv_heads,
                                             .size = s.size,
                                             .query_stride = g.stride,
                                             .key_stride = g.stride,
                                             .value_stride = g.stride};
    if (again) {
        g.attention.stripe = filled_bytes(stripe_elements(s.seq_len) * bytes);
        g.attention.log_sums = filled_bytes(g.rows * s.heads * (int64_t)sizeof(float));
    } else {
        g.attention.probabilities = filled_bytes(s.samples * s.heads * scores * bytes);
    }
    g.qkv = numbers_of(&g, g.rows * g.stride, 1);
    g.d_qkv = filled_bytes(g.rows * g.stride * bytes);
    g.output = filled_bytes(g.rows * g.width * bytes);
    g.d_output = numbers_of(&g, g.rows * g.width, 2);
    set_addresses(&g, g.qkv, g.d_qkv);
    g.to.scores = filled_bytes((again ? stripe_elements(s.seq_len) : scores) * bytes);
    const int64_t sums = weft_nn_cpu_attend_sums(&g.attention);
    if (sums > 0) g.to.sums = filled_bytes(sums * (int64_t)sizeof(float));
    return g;
}

static void grouped_free(struct grouped *g)
{
    void *const buffers[] = {g->attention.probabilities,
                             g->attention.log_sums,
                             g->attention.stripe,
                             g->qkv,
                             g->d_qkv,
                             g->output,
                             g->d_output,
                             g->to.scores,
                             g->to.sums};
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++) {
        free(buffers[i]);
    }
}

static void run_grouped(const struct weft_nn *nn, struct grouped *g)
{
    const struct weft_nn_cpu *cpu = weft_nn_cpu_of(nn);
    struct weft_error err = {0};
    cr_assert_eq(weft_nn_cpu_attend_heads(cpu, &g->attention, g->output, &err), WEFT_OK, "%s",
                 err.text);
    cr_assert_eq(
        weft_nn_cpu_attend_heads_backward(cpu, &g->attention, g->output, g->d_output, &g->to, &err),
        WEFT_OK, "%s", err.text);
}

static double *doubles_of(const struct grouped *g, const void *array, int64_t n)
{
    double *x = malloc((size_t)n * sizeof(double));
    for (int64_t i = 0; i < n; i++) {
        x[i] = value_at(g, array, i);
    }
    return x;
}

/* Adds the part of row `row` and a head to output and gradients. */
static void add_head_row(const struct grouped *g, const double *qkv, const double *d_output,
                         int64_t row, int64_t head, double *output, double *d_qkv)
{
    const struct shape *s = &g->shape;
    const int64_t first = row / s->seq_len * s->seq_len, d = s->size;
    const int64_t shared = head / (s->heads / s->kv_heads) * d, key = s->heads * d + shared;
    const int64_t value = (s->heads + s->kv_heads) * d + GAP_COLUMNS + shared;
    const int64_t query = row * g->stride + head * d;
    double *p = calloc((size_t)(2 * s->seq_len), sizeof(*p)), *dp = p + s->seq_len;
    double sum = 0, mean = 0;
    for (int64_t j = first; j <= row; j++) {
        for (int64_t k = 0; k < d; k++) {
            p[j - first] += qkv[query + k] * qkv[j * g->stride + key + k] / sqrt((double)d);
            dp[j - first] +=
                d_output[row * g->width + head * d + k] * qkv[j * g->stride + value + k];
        }
        sum += p[j - first] = exp(p[j - first]);
    }
    for (int64_t j = 0; j <= row - first; j++) {
        p[j] /= sum;
        mean += p[j] * dp[j];
    }
    for (int64_t j = first; j <= row; j++) {
        const double ds = p[j - first] * (dp[j - first] - mean) / sqrt((double)d);
        for (int64_t k = 0; k < d; k++) {
            const int64_t out = row * g->width + head * d + k, at = j * g->stride;
            output[out] += p[j - first] * qkv[at + value + k];
            d_qkv[query + k] += ds * qkv[at + key + k];
            d_qkv[at + key + k] += ds * qkv[query + k];
            d_qkv[at + value + k] += p[j - first] * d_output[out];
        }
    }
    free(p);
}

static void compare_elements(const struct grouped *g, const char *library, const char *what,
                             const void *found, const double *right, int64_t n)
{
    const double most_error = g->dtype == WEFT_F32 ? 4e-6 : g->dtype == WEFT_BF16 ? 0x1p-6 : 0x1p-9;
    double scale = 0;
    for (int64_t i = 0; i < n; i++) {
        scale = fmax(scale, fabs(right[i]));
    }
    for (int64_t i = 0; i < n; i++) {
        const int64_t gap = i % g->stride - (g->shape.heads + g->shape.kv_heads) * g->shape.size;
        const double got = value_at(g, found, i);
        if (found == g->d_qkv && gap >= 0 && gap < GAP_COLUMNS) {
            cr_assert(isnan(got), "%s writes between keys and values", library);
        } else {
            cr_assert(fabs(got - right[i]) <= most_error * scale,
                      "%s, %s, size %d, %d of %d heads: %s [%d] is %.9g, not %.9g", library,
                      weft_dtype_name(g->dtype), (int)g->shape.size, (int)g->shape.kv_heads,
                      (int)g->shape.heads, what, (int)i, got, right[i]);
        }
    }
}

static void check_formula(const struct weft_nn *nn, const char *library, struct grouped *g)
{
    const int64_t n = g->rows * g->stride, n_output = g->rows * g->width;
    double *qkv = doubles_of(g, g->qkv, n), *d_output = doubles_of(g, g->d_output, n_output);
    double *d_qkv = calloc((size_t)n, sizeof(double));
    double *output = calloc((size_t)n_output, sizeof(double));
    for (int64_t i = 0; i < g->rows * g->shape.heads; i++) {
        add_head_row(g, qkv, d_output, i / g->shape.heads, i % g->shape.heads, output, d_qkv);
    }
    run_grouped(nn, g);
    compare_elements(g, library, "output", g->output, output, n_output);
    compare_elements(g, library, "gradient", g->d_qkv, d_qkv, n);
    free(qkv);
    free(d_output);
    free(d_qkv);
    free(output);
}

static struct weft_nn *open_nn_of(const char *library, enum weft_dtype dtype, int32_t threads)
{
    const struct weft_nn_options options = {.threads = threads, .compute = dtype, .gemm = library};
    struct weft_nn *nn = NULL;
    struct weft_error err = {0};
    return weft_nn_open("cpu", &options, &nn, &err) == WEFT_OK ? nn : NULL;
}

static struct weft_nn *open_nn(const char *library, enum weft_dtype dtype)
{
    return open_nn_of(library, dtype, 1);
}

static bool same_results_of_heads(const struct grouped *a, const struct grouped *b)
{
    const int64_t bytes = weft_dtype_bytes(a->dtype);
    return memcmp(a->output, b->output, (size_t)(a->rows * a->width * bytes)) == 0 &&
           memcmp(a->d_qkv, b->d_qkv, (size_t)(a->rows * a->stride * bytes)) == 0;
}

/* Shared heads have the same bits at any kernel level. */
static void check_same_bits(struct weft_nn *nn, const char *library, const struct grouped *right)
{
    struct weft_nn_cpu *cpu = (struct weft_nn_cpu *)(void *)nn;
    const struct weft_kernels *const own = cpu->kernels;
    const struct weft_kernels *level;
    for (int32_t l = 0; (level = weft_kernels_level(l)) != NULL; l++) {
        struct weft_kernels mixed = *level;
        mixed.attend = weft_kernels_best()->attend;
        mixed.attend_backward = weft_kernels_best()->attend_backward;
        mixed.attend_saves = weft_kernels_best()->attend_saves;
        cpu->kernels = &mixed;
        cpu->threads = l + 2;
        struct grouped g = grouped_of(right->shape, right->again, right->dtype);
        run_grouped(nn, &g);
        cr_assert(same_results_of_heads(right, &g), "%s, %s: %d threads, %s kernels", library,
                  weft_dtype_name(g.dtype), l + 2, level->level);
        grouped_free(&g);
    }
    cpu->kernels = own;
    cpu->threads = 1;
}

struct saving {
    struct shape shape;
    bool again;
};

/* Every library in every dtype; in part each library in one dtype a case. */
static void check_saved(const struct saving *cases, int n)
{
    static const char *const libraries[] = {"plain", "onednn", "amx", "amx-bf16x3", "avx512"};
    for (int i = 0; i < 5 * WEFT_DTYPE_COUNT; i++) {
        const enum weft_dtype dtype = (enum weft_dtype)(i / 5);
        struct weft_nn *nn = open_nn(libraries[i % 5], dtype);
        for (int c = 0; c < n && nn != NULL; c++) {
            const struct shape *shape = &cases[c].shape;
            if (!test_draws((uint64_t)(i * n + c), 2, 4)) continue;
            struct grouped g = grouped_of(*shape, cases[c].again, dtype);
            check_formula(nn, libraries[i % 5], &g);
            if (cases[c].again || shape->kv_heads < shape->heads)
                check_same_bits(nn, libraries[i % 5], &g);
            grouped_free(&g);
        }
        weft_nn_close(nn);
    }
}

Test(attention, of_shared_heads_is_the_formula)
{
    static const struct saving cases[] = {
        {{2, 5, 4, 2, 6}, false},   {{2, 5, 4, 2, 6}, true},    {{1, 67, 6, 1, 32}, false},
        {{1, 67, 6, 1, 32}, true},  {{2, 33, 4, 4, 80}, false}, {{2, 33, 4, 4, 80}, true},
        {{1, 65, 4, 2, 96}, false}, {{1, 65, 4, 2, 96}, true},  {{1, 1, 8, 2, 64}, false},
        {{1, 1, 8, 2, 64}, true},
    };
    check_saved(cases, 10);
}

Test(attention, of_shared_heads_takes_whole_heads)
{
    static const struct saving cases[] = {{{2, 64, 2, 1, 64}, false},
                                          {{2, 64, 2, 1, 64}, true},
                                          {{1, 128, 3, 1, 128}, false},
                                          {{1, 128, 3, 1, 128}, true},
                                          {{2, 192, 2, 2, 64}, true}};
    check_saved(cases, 5);
}

/* Stripes of a sequence of 520 have 192 rows. */
Test(attention, of_shared_heads_has_several_stripes)
{
    static const struct saving cases[] = {{{1, 520, 2, 1, 4}, true}};
    check_saved(cases, 1);
}

/* Runs attention on one thread and then on more. `library` may be missing. */
static void check_threads(const char *library, enum weft_dtype dtype, struct shape shape,
                          bool again)
{
    static const int32_t threads[] = {1, 2, 3, 4, 8, 16};
    struct grouped g = grouped_of(shape, again, dtype);
    const size_t bytes = (size_t)weft_dtype_bytes(dtype);
    const size_t n = (size_t)(g.rows * g.width) * bytes, n_d = (size_t)(g.rows * g.stride) * bytes;
    char *right = malloc(n + n_d);
    struct weft_nn *nn = open_nn(library, dtype);
    struct weft_nn_cpu *cpu = (struct weft_nn_cpu *)(void *)nn;
    for (int t = 0; t < 6 && nn != NULL; t++) {
        struct weft_gemm *gemm = NULL;
        struct weft_error err = {0};
        cr_assert_eq(weft_gemm_open(library, threads[t], dtype, &gemm, &err), WEFT_OK);
        weft_gemm_close(cpu->gemm);
        cpu->gemm = gemm;
        cpu->threads = threads[t];
        memset(g.output, 0xff, n); /* nothing is left of another run */
        memset(g.d_qkv, 0xff, n_d);
        run_grouped(nn, &g);
        if (t == 0) {
            memcpy(right, g.output, n);
            memcpy(right + n, g.d_qkv, n_d);
        }
        cr_assert(memcmp(right, g.output, n) == 0 && memcmp(right + n, g.d_qkv, n_d) == 0,
                  "%s, %s, sequence %d: %d threads", library, weft_dtype_name(dtype),
                  (int)shape.seq_len, (int)threads[t]);
    }
    free(right);
    grouped_free(&g);
    weft_nn_close(nn);
}

/* One whole head, fewer of them than threads, stripes of products, shared heads, odd sizes. */
Test(attention, has_the_same_bits_on_any_number_of_threads)
{
    static const char *const libraries[] = {"onednn", "amx", "amx-bf16x3", "avx512"};
    static const struct shape shapes[] = {{1, 64, 1, 1, 64},
                                          {1, 64, 3, 3, 64},
                                          {1, 64, 4, 2, 64},
                                          {2, 67, 2, 1, 32},
                                          {1, 272, 1, 1, 8}};
    for (int i = 0; i < 4 * WEFT_DTYPE_COUNT; i++) {
        for (int s = 0; s < 5; s++) {
            if (test_draws((uint64_t)(5 * i + s), 2, 5))
                check_threads(libraries[i % 4], (enum weft_dtype)(i / 4), shapes[s], (i + s) % 2);
        }
    }
    check_threads("plain", WEFT_F32, shapes[1], false);
}

/* In 16 bits the sums of one head, of three in the stripes' room, or of none fit: then each thread
 * takes parts of a head. */
Test(attention, of_whole_heads_in_parts_has_the_bits_of_heads)
{
    static const struct shape shapes[] = {{1, 256, 8, 4, 64}, {1, 192, 4, 2, 64}};
    for (int s = 0; s < 2; s++) {
        check_threads("onednn", WEFT_BF16, shapes[s], true);
        check_threads("onednn", WEFT_F16, shapes[s], true);
    }
}

/* Each dtype takes whole heads if sizes allow; 16 bits do so without saved probabilities alone. */
Test(attention, takes_whole_heads_by_shape)
{
    struct weft_nn *nn = open_nn("onednn", WEFT_BF16);
    struct weft_nn_cpu *cpu = (struct weft_nn_cpu *)(void *)nn;
    const struct weft_kernels *const own = cpu->kernels;
    if (!own->attend) cr_skip_test("no level of this CPU has kernels of whole heads");
    struct weft_kernels without = *own;
    without.attend = NULL;
    for (int i = 0; i < 4; i++) {
        const bool again = i % 2 == 1;
        struct grouped whole = grouped_of((struct shape){1, 64, 2, 1, 64}, again, WEFT_BF16);
        struct grouped products = grouped_of(whole.shape, again, WEFT_BF16);
        cpu->has_tiles = i >= 2;
        cpu->kernels = own;
        run_grouped(nn, &whole);
        cpu->kernels = &without;
        run_grouped(nn, &products);
        cr_assert_eq(same_results_of_heads(&whole, &products), !again || cpu->has_tiles);
        grouped_free(&whole);
        grouped_free(&products);
    }
    cpu->kernels = own;
    weft_nn_close(nn);
}

/* Rows from one on, as after those in a cache. */
Test(attention, of_later_rows_has_the_bits_of_products_of_all)
{
    static const struct shape shapes[] = {{1, 37, 6, 2, 32}, {1, 70, 4, 1, 80}};
    for (int i = 0; i < 2 * WEFT_DTYPE_COUNT; i++) {
        const enum weft_dtype dtype = (enum weft_dtype)(i / 2);
        struct weft_nn *nn = open_nn("plain", dtype);
        struct grouped g = grouped_of(shapes[i % 2], false, dtype);
        run_grouped(nn, &g);
        const int64_t first = g.rows - 3, bytes = weft_dtype_bytes(dtype);
        struct weft_nn_attention some = g.attention;
        some.first = first;
        some.query = at_of(&g, g.qkv, first * g.stride);
        some.probabilities = NULL;
        some.stripe = filled_bytes(3 * g.rows * bytes);
        void *output = filled_bytes(3 * g.width * bytes);
        struct weft_error err = {0};
        cr_assert_eq(weft_nn_cpu_attend_heads_from(weft_nn_cpu_of(nn), &some, output, &err),
                     WEFT_OK);
        cr_assert_eq(
            memcmp(output, at_of(&g, g.output, first * g.width), (size_t)(3 * g.width * bytes)), 0,
            "%s", weft_dtype_name(dtype));
        free(output);
        free(some.stripe);
        grouped_free(&g);
        weft_nn_close(nn);
    }
}
