/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "runtime/nn/cpu/kernels/kernels.h"

enum { GAP = 16, SENTINEL = 7 }; /* columns of the rows that are not the head's */

/* A head among others: rows are wider than it is. */
struct attention_subject {
    struct weft_head head;
    struct weft_head_gradients to;
    float *qkv, *d_qkv, *output, *d_output;
    float *probabilities; /* or NULL */
};

static float *random_numbers_kernels_attention(int64_t n, uint64_t stream)
{
    float *x = aligned_alloc(64, (size_t)n * sizeof(*x));
    for (int64_t i = 0; i < n; i++) {
        x[i] = (float)(2 * weft_rng_uniform(1, stream, (uint64_t)i) - 1);
    }
    return x;
}

static float *sentinels(int64_t n)
{
    float *x = aligned_alloc(64, (size_t)n * sizeof(*x));
    for (int64_t i = 0; i < n; i++) {
        x[i] = SENTINEL;
    }
    return x;
}

enum { SUMS_STRIDE = 3 };

/* `saves`: with probabilities; otherwise with logs of sums. */
static struct attention_subject subject_of(int64_t seq_len, int64_t size, bool saves)
{
    const int64_t stride = 3 * size + GAP, out = size + GAP;
    struct attention_subject s = {.qkv = random_numbers_kernels_attention(seq_len * stride, 1),
                                  .d_qkv = sentinels(seq_len * stride),
                                  .output = sentinels(seq_len * out),
                                  .d_output = random_numbers_kernels_attention(seq_len * out, 2),
                                  .probabilities = saves ? sentinels(seq_len * seq_len) : NULL};
    s.head = (struct weft_head){.dtype = WEFT_F32,
                                .seq_len = seq_len,
                                .size = size,
                                .query_stride = stride,
                                .key_stride = stride,
                                .value_stride = stride,
                                .output_stride = out,
                                .scale = (float)(1 / sqrt((double)size)),
                                .query = s.qkv,
                                .key = s.qkv + size,
                                .value = s.qkv + 2 * size,
                                .log_sums = saves ? NULL : sentinels(seq_len * SUMS_STRIDE),
                                .sums_stride = SUMS_STRIDE};
    s.to = (struct weft_head_gradients){
        .query = s.d_qkv, .key = s.d_qkv + size, .value = s.d_qkv + 2 * size};
    return s;
}

static void subject_free(struct attention_subject *s)
{
    free(s->qkv);
    free(s->d_qkv);
    free(s->output);
    free(s->d_output);
    free(s->probabilities);
    free(s->head.log_sums);
}

static void run_attention(const struct weft_kernels *kernels, struct attention_subject *s)
{
    kernels->attend(&s->head, s->probabilities, s->output);
    kernels->attend_backward(&s->head, s->probabilities, s->output, s->d_output, s->to);
}

/* Level `index` from the plain one up that has kernels of whole heads; NULL past the last. Level 0
 * without them skips the test. */
static const struct weft_kernels *kernels_with_attention(int32_t index, bool saves)
{
    const struct weft_kernels *kernels;
    int32_t n = 0;
    for (int32_t i = 0; (kernels = weft_kernels_level(i)) != NULL; i++) {
        if (kernels->attend && (kernels->attend_saves || !saves) && n++ == index) return kernels;
    }
    if (index == 0 && !saves) cr_skip_test("no level of this CPU has kernels of whole heads");
    return NULL;
}

/* Runs a check at each level. */
static void for_levels(void (*check)(const struct weft_kernels *, bool saves), bool saves)
{
    const struct weft_kernels *kernels;
    for (int32_t i = 0; (kernels = kernels_with_attention(i, saves)) != NULL; i++) {
        check(kernels, saves);
    }
}

static double dot(int64_t n, const float *a, const float *b)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += (double)a[i] * (double)b[i];
    }
    return sum;
}

/* Adds the part of a row of queries at `row` to output and gradients, by the formula in doubles. */
static void add_row(const struct attention_subject *s, int64_t row, double *output, double *d_qkv)
{
    const struct weft_head *h = &s->head;
    const int64_t size = h->size, stride = h->query_stride;
    const float *d_output = s->d_output + row * h->output_stride;
    const float *query = h->query, *key = h->key, *value = h->value;
    double *p = calloc((size_t)(2 * h->seq_len), sizeof(*p)), *d = p + h->seq_len;
    double sum = 0, mean = 0;
    for (int64_t j = 0; j <= row; j++) {
        p[j] = exp(dot(size, query + row * stride, key + j * stride) / sqrt((double)size));
        sum += p[j];
    }
    for (int64_t j = 0; j <= row; j++) {
        p[j] /= sum;
        d[j] = dot(size, d_output, value + j * stride);
        mean += p[j] * d[j];
    }
    for (int64_t j = 0; j <= row; j++) {
        const double d_score = p[j] * (d[j] - mean) / sqrt((double)size);
        for (int64_t k = 0; k < size; k++) {
            output[row * size + k] += p[j] * (double)value[j * stride + k];
            d_qkv[row * 3 * size + k] += d_score * (double)key[j * stride + k];
            d_qkv[(j * 3 + 1) * size + k] += d_score * (double)query[row * stride + k];
            d_qkv[(j * 3 + 2) * size + k] += p[j] * (double)d_output[k];
        }
    }
    free(p);
}

/* Every element of a matrix; and that nothing is written between its rows. */
static void check_attention(const char *what, const float *found, int64_t stride,
                            const double *right, int64_t rows, int64_t width)
{
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < width; j++) {
            const double error = fabs((double)found[i * stride + j] - right[i * width + j]);
            cr_assert_lt(error, 3e-6, "%s [%lld, %lld] is wrong by %g", what, (long long)i,
                         (long long)j, error);
        }
        for (int64_t j = width; j < stride; j++) {
            cr_assert_eq(found[i * stride + j], SENTINEL, "%s writes beyond row %lld", what,
                         (long long)i);
        }
    }
}

static float fill_stack(int at)
{
    volatile float x[1 << 16];
    for (int i = 0; i < 1 << 16; i++) {
        x[i] = NAN;
    }
    return x[at];
}

/* Fills the stack below the caller with NaN. */
static void spoil_stack(void)
{
    float (*volatile fill)(int) = fill_stack; /* not inlined */
    cr_assert(isnan(fill(3)));
}

static void check_size(const struct weft_kernels *kernels, int64_t seq_len, int64_t size,
                       bool saves)
{
    struct attention_subject s = subject_of(seq_len, size, saves);
    double *output = calloc((size_t)(seq_len * size), sizeof(*output));
    double *d_qkv = calloc((size_t)(seq_len * 3 * size), sizeof(*d_qkv));
    for (int64_t row = 0; row < seq_len; row++) {
        add_row(&s, row, output, d_qkv);
    }
    spoil_stack();
    run_attention(kernels, &s);
    for (int64_t i = 0; !saves && i < seq_len * SUMS_STRIDE; i++) {
        cr_assert_eq(s.head.log_sums[i] == SENTINEL, i % SUMS_STRIDE > 0, "log sum %lld",
                     (long long)i);
    }
    check_attention("output", s.output, s.head.output_stride, output, seq_len, size);
    check_attention("gradients", s.d_qkv, s.head.query_stride, d_qkv, seq_len, 3 * size);
    free(output);
    free(d_qkv);
    subject_free(&s);
}

static void check_sizes(const struct weft_kernels *kernels, bool saves)
{
    check_size(kernels, 64, 64, saves);
    check_size(kernels, 128, 128, saves);
    check_size(kernels, 320, 64, saves);
}

Test(kernels_attention, is_the_formula)
{
    for_levels(check_sizes, true);
    for_levels(check_sizes, false);
}

/* Half of a tile of the diagonal is not multiplied, and old values of the stack must not reach the
 * result. */
static void check_forbidden(const struct weft_kernels *kernels, bool saves)
{
    enum { ROWS = 128, TILE = WEFT_HEAD_SIDE * WEFT_HEAD_SIDE };
    struct attention_subject s = subject_of(ROWS, 64, saves);
    spoil_stack();
    kernels->attend(&s.head, s.probabilities, s.output);
    for (int tile = 0; saves && tile < ROWS / WEFT_HEAD_SIDE; tile++) {
        const float *p = s.probabilities + tile * ROWS * WEFT_HEAD_SIDE + tile * TILE;
        for (int key = 0; key < WEFT_HEAD_SIDE; key++) {
            for (int query = 0; query < key; query++) {
                cr_assert_eq(p[key * WEFT_HEAD_SIDE + query], 0, "tile %d [%d, %d]: %g", tile, key,
                             query, (double)p[key * WEFT_HEAD_SIDE + query]);
            }
        }
    }
    spoil_stack();
    kernels->attend_backward(&s.head, s.probabilities, s.output, s.d_output, s.to);
    for (int i = 0; i < ROWS; i++) {
        for (int k = 0; k < 3 * 64; k++) {
            cr_assert(isfinite(s.d_qkv[i * s.head.query_stride + k]), "row %d, column %d", i, k);
        }
    }
    subject_free(&s);
}

Test(kernels_attention, what_causality_forbids_is_zero)
{
    for_levels(check_forbidden, true);
    for_levels(check_forbidden, false);
}

static void check_far_apart(const struct weft_kernels *kernels, bool saves)
{
    struct attention_subject s = subject_of(128, 64, saves);
    for (int64_t i = 0; i < 128; i++) {
        for (int64_t k = 0; k < 64; k++) {
            s.qkv[i * s.head.query_stride + k] *= 100; /* one key has it all */
        }
    }
    run_attention(kernels, &s);
    for (int64_t i = 0; i < 128; i++) {
        for (int64_t k = 0; k < 64; k++) {
            const float y = s.output[i * s.head.output_stride + k];
            cr_assert(y >= -1 && y <= 1, "row %lld has %g", (long long)i, (double)y);
        }
        for (int64_t k = 0; k < 3 * 64; k++) {
            cr_assert(isfinite(s.d_qkv[i * s.head.query_stride + k]), "row %lld", (long long)i);
        }
    }
    subject_free(&s);
}

Test(kernels_attention, scores_may_be_far_apart)
{
    for_levels(check_far_apart, true);
    for_levels(check_far_apart, false);
}

static void check_not_a_number(const struct weft_kernels *kernels, bool saves)
{
    enum { AT = 72 }; /* where rows begin that are summed together */
    struct attention_subject s = subject_of(128, 64, saves);
    s.qkv[AT * s.head.query_stride + 64 + 3] = NAN; /* of a key */
    run_attention(kernels, &s);
    for (int64_t i = 0; i < 128; i++) {
        cr_assert_eq(isnan(s.output[i * s.head.output_stride]), i >= AT, "row %lld", (long long)i);
        cr_assert_eq(isnan(s.d_qkv[i * s.head.query_stride]), i >= AT, "query %lld", (long long)i);
    }
    subject_free(&s);
}

Test(kernels_attention, what_is_not_a_number_reaches_rows_from_there_on_and_no_other)
{
    for_levels(check_not_a_number, true);
    for_levels(check_not_a_number, false);
}

/* AVX2 and AVX-512 do the same operations. */
Test(kernels_attention, has_the_same_bits_at_every_level)
{
    enum { ROWS = 128, SIZE = 64 };
    struct attention_subject right = subject_of(ROWS, SIZE, false);
    const struct weft_kernels *kernels = kernels_with_attention(0, false);
    run_attention(kernels, &right);
    for (int32_t i = 1; (kernels = kernels_with_attention(i, false)) != NULL; i++) {
        struct attention_subject s = subject_of(ROWS, SIZE, false);
        run_attention(kernels, &s);
        const size_t out = (size_t)(ROWS * s.head.output_stride) * sizeof(float);
        const size_t in = (size_t)(ROWS * s.head.query_stride) * sizeof(float);
        cr_assert_eq(memcmp(s.output, right.output, out), 0, "%s", kernels->level);
        cr_assert_eq(memcmp(s.d_qkv, right.d_qkv, in), 0, "%s", kernels->level);
        subject_free(&s);
    }
    subject_free(&right);
}
