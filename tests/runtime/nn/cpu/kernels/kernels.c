/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/nn/cpu/kernels/kernels.h"

#include <criterion/criterion.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/numbers.h"
#include "base/rng.h"

enum { MANY = 100003 };
static float in[MANY], out[MANY], other[MANY];

static void random_numbers_kernels(float *x, int64_t n, double deviation, uint64_t stream)
{
    for (int64_t i = 0; i < n; i++) {
        x[i] = (float)(deviation * weft_rng_normal(13, stream, (uint64_t)i));
    }
}

Test(kernels, exponential_is_as_near_as_it_says)
{
    for (int i = 0; i < MANY; i++) {
        in[i] = -86.59f + (88.29f + 86.59f) * (float)i / MANY;
    }
    weft_kernels_best()->exponential(MANY, in, out);
    double worst = 0;
    for (int i = 0; i < MANY; i++) {
        worst = fmax(worst, fabs((double)out[i] / exp((double)in[i]) - 1));
    }
    cr_assert(worst < 3e-7, "%g", worst);
    cr_assert(worst > 1e-9, "suspiciously exact: %g", worst);
}

Test(kernels, exponential_has_ends)
{
    const float x[] = {0, -0.0f, -87, -1e30f, -INFINITY, 89, FLT_MAX, INFINITY, NAN, -NAN};
    float y[10];
    weft_kernels_best()->exponential(10, x, y);
    cr_assert_eq(y[0], 1);
    cr_assert_eq(y[1], 1);
    for (int i = 2; i < 5; i++) {
        cr_assert_eq(y[i], 0);
    }
    for (int i = 5; i < 8; i++) {
        cr_assert_eq(y[i], INFINITY);
    }
    cr_assert(isnan(y[8]) && isnan(y[9]));
}

/* A level that differs would make results depend on the machine's kind for no gain. */
Test(kernels, every_level_gives_the_bits_of_the_plain_one)
{
    static const float special[] = {0, -0.0f, 1e-40f, INFINITY, -INFINITY, FLT_MAX, -FLT_MAX, 40};
    static const struct weft_normal law = {1, 2, 0.5};
    const struct weft_kernels *plain = weft_kernels_level(0), *level;
    random_numbers_kernels(in, MANY, 5, 0);
    memcpy(in + 1000, special, sizeof(special));
    for (int32_t l = 1; (level = weft_kernels_level(l)) != NULL; l++) {
        plain->exponential(MANY, in, out);
        level->exponential(MANY, in, other);
        cr_assert_eq(memcmp(out, other, sizeof(out)), 0, "exponential, %s", level->level);
        plain->normal(&law, 5, MANY, out);
        level->normal(&law, 5, MANY, other);
        cr_assert_eq(memcmp(out, other, sizeof(out)), 0, "normal numbers, %s", level->level);
        plain->layers[WEFT_F32]->gelu(MANY, in, out);
        level->layers[WEFT_F32]->gelu(MANY, in, other);
        cr_assert_eq(memcmp(out, other, sizeof(out)), 0, "gelu, %s", level->level);
        plain->layers[WEFT_F32]->column_sums(97, 1010, 1010, in + 2000, out);
        level->layers[WEFT_F32]->column_sums(97, 1010, 1010, in + 2000, other);
        cr_assert_eq(memcmp(out, other, 1010 * sizeof(float)), 0, "sums, %s", level->level);
    }
    cr_assert_str_eq(plain->level, "plain");
    cr_assert_null(weft_kernels_level(-1));
}

Test(kernels, turn_makes_rows_of_columns_and_touches_nothing_else)
{
    enum { ROWS = 37, COLUMNS = 50, X_STRIDE = 53, Y_STRIDE = 41 };
    const struct weft_kernels *level;
    random_numbers_kernels(in, ROWS * X_STRIDE, 4, 2);
    for (int32_t l = 0; (level = weft_kernels_level(l)) != NULL; l++) {
        if (level->turn == NULL) continue;
        memset(out, 0xff, sizeof(out));
        level->turn(ROWS, COLUMNS, in, X_STRIDE, out, Y_STRIDE);
        for (int i = 0; i < MANY; i++) {
            const int row = i % Y_STRIDE, column = i / Y_STRIDE;
            const bool within = row < ROWS && column < COLUMNS;
            const uint32_t expected =
                within ? weft_bits_of(in[row * X_STRIDE + column]) : 0xffffffffu;
            cr_assert_eq(weft_bits_of(out[i]), expected, "%s: [%d, %d]", level->level, column, row);
        }
    }
}

Test(kernels, column_sums_go_in_row_order)
{
    enum { STRIDE = 16 };
    random_numbers_kernels(in, 7 * STRIDE, 1, 1);
    weft_kernels_best()->layers[WEFT_F32]->column_sums(7, 11, STRIDE, in, out);
    for (int j = 0; j < 11; j++) {
        float sum = 0;
        for (int i = 0; i < 7; i++) {
            sum += in[i * STRIDE + j];
        }
        cr_assert_eq(out[j], sum);
    }
    weft_kernels_best()->layers[WEFT_F32]->column_sums(0, 11, 11, in, out);
    cr_assert_eq(out[10], 0);
}

Test(kernels, softmax_is_masked_scaled_and_does_not_overflow)
{
    enum { ROWS = 5, FIRST = 64, WIDTH = 69, STRIDE = 80 };
    random_numbers_kernels(in, ROWS * STRIDE, 3, 2);
    memcpy(out, in, sizeof(out));
    out[STRIDE + 3] = 1e30f;
    out[2 * STRIDE + 7] = -1e30f;
    weft_kernels_best()->layers[WEFT_F32]->causal_softmax(ROWS, FIRST, WIDTH, STRIDE, out);
    for (int i = 0; i < ROWS; i++) {
        double sum = 0;
        for (int j = 0; j < WIDTH; j++) {
            sum += (double)out[i * STRIDE + j];
            if (j > FIRST + i) cr_assert_eq(out[i * STRIDE + j], 0);
        }
        cr_assert(fabs(sum - 1) < 1e-6);
        for (int j = WIDTH; j < STRIDE && i < ROWS - 1; j++) {
            cr_assert_eq(out[i * STRIDE + j], in[i * STRIDE + j]);
        }
    }
    cr_assert_eq(out[STRIDE + 3], 1);
    cr_assert_eq(out[2 * STRIDE + 7], 0);
}

Test(kernels, softmax_masks_below_any_score)
{
    float x[18];
    for (int i = 0; i < 18; i++) {
        x[i] = i < 9 ? -1e30f : 1e30f;
    }
    weft_kernels_best()->layers[WEFT_F32]->causal_softmax(1, 8, 18, 18, x);
    for (int i = 0; i < 18; i++) {
        cr_assert_eq(x[i], i < 9 ? 1.0f / 9 : 0);
    }
}

Test(kernels, softmax_passes_on_what_is_not_a_number)
{
    const float bad[] = {NAN, -NAN, INFINITY};
    for (int b = 0; b < 3; b++) {
        float x[20] = {0};
        x[3] = bad[b];
        weft_kernels_best()->layers[WEFT_F32]->causal_softmax(1, 19, 20, 20, x);
        for (int i = 0; i < 20; i++) {
            cr_assert(isnan(x[i]) || (isinf(bad[b]) && i != 3), "%d %d", b, i);
        }
    }
}

Test(kernels, gelu_has_its_limits)
{
    const float x[] = {30, -30, 1e30f, -1e30f, -FLT_MAX, FLT_MAX};
    const float dy[] = {1, 1, 1, 1, 1, 1};
    float y[6], dx[6];
    weft_kernels_best()->layers[WEFT_F32]->gelu(6, x, y);
    weft_kernels_best()->layers[WEFT_F32]->gelu_backward(1, 6, x, dy, dx, NULL);
    for (int i = 0; i < 6; i++) {
        cr_assert_eq(y[i], x[i] > 0 ? x[i] : 0, "%g: %g", (double)x[i], (double)y[i]);
        cr_assert(fabsf(dx[i] - (x[i] > 0 ? 1.0f : 0.0f)) < 1e-30f);
    }
    const float nan = NAN;
    weft_kernels_best()->layers[WEFT_F32]->gelu(1, &nan, y);
    weft_kernels_best()->layers[WEFT_F32]->gelu_backward(1, 1, &nan, dy, dx, NULL);
    cr_assert(isnan(y[0]) && isnan(dx[0]));
}

Test(kernels, relu_keeps_what_is_not_a_number)
{
    const float x[] = {-1, 0, 2, NAN};
    float y[4];
    weft_kernels_best()->layers[WEFT_F32]->relu(4, x, y);
    cr_assert(y[0] == 0 && y[1] == 0 && y[2] == 2 && isnan(y[3]));
}

Test(kernels, cross_entropy_of_far_logits_is_their_distance)
{
    float x[6] = {1000, 0, -1000, -1000, 0, 1000};
    const int32_t targets[2] = {0, 0};
    cr_assert_eq(weft_kernels_best()->layers[WEFT_F32]->cross_entropy(2, 3, 3, targets, x), 2000);
    const float expected[6] = {0, 0, 0, -1, 0, 1};
    cr_assert_eq(memcmp(x, expected, sizeof(x)), 0);
}

Test(kernels, every_level_converts_as_one_number_is_converted)
{
    static uint16_t narrow[MANY];
    const struct weft_kernels *level;
    for (uint64_t i = 0; i < MANY; i++) {
        in[i] = weft_float_of((uint32_t)weft_rng_below(3, 1, i, UINT64_C(1) << 32));
    }
    for (int32_t l = 0; (level = weft_kernels_level(l)) != NULL; l++) {
        for (int d = WEFT_BF16; d <= WEFT_F16; d++) {
            const bool half = d == WEFT_F16;
            level->narrow((enum weft_dtype)d, MANY, in, narrow);
            level->widen((enum weft_dtype)d, MANY, narrow, out);
            for (int i = 0; i < MANY; i++) {
                const uint16_t one = half ? weft_f16_narrow(in[i]) : weft_bf16_narrow(in[i]);
                const float wide = half ? weft_f16_widen(one) : weft_bf16_widen(one);
                cr_assert_eq(narrow[i], one, "%s: %g", level->level, (double)in[i]);
                cr_assert_eq(weft_bits_of(out[i]), weft_bits_of(wide));
            }
        }
    }
}
