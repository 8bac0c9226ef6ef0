/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels without a dtype of layers. Built once for each level. WEFT_KERNELS_TABLE is the table's
 * name, WEFT_KERNELS_LEVEL its text, and layers.c has the tables of the same level. */
#include "runtime/nn/cpu/kernels/kernels.h"

#include "runtime/nn/cpu/kernels/levels.h"
#include "runtime/nn/cpu/kernels/parts.h"
#include "runtime/nn/optimizers.h"
#ifdef __AVX512F__
#include "runtime/nn/cpu/kernels/transpose.h"
#endif

static void widen_elements(enum weft_dtype dtype, int64_t n, const void *from, float *restrict y)
{
    const uint16_t *restrict x = from;
    switch (dtype) {
    case WEFT_F32:
    case WEFT_DTYPE_COUNT:
        memcpy(y, from, (size_t)n * sizeof(float));
        return;
    case WEFT_BF16:
        for (int64_t i = 0; i < n; i++) {
            y[i] = weft_bf16_widen(x[i]);
        }
        return;
    case WEFT_F16:
        for (int64_t i = 0; i < n; i++) {
            y[i] = weft_f16_widen(x[i]);
        }
        return;
    }
}

static void narrow_elements(enum weft_dtype dtype, int64_t n, const float *restrict x, void *to)
{
    uint16_t *restrict y = to;
    switch (dtype) {
    case WEFT_F32:
    case WEFT_DTYPE_COUNT:
        memcpy(to, x, (size_t)n * sizeof(float));
        return;
    case WEFT_BF16:
        for (int64_t i = 0; i < n; i++) {
            y[i] = weft_bf16_narrow(x[i]);
        }
        return;
    case WEFT_F16:
        for (int64_t i = 0; i < n; i++) {
            y[i] = weft_f16_narrow(x[i]);
        }
        return;
    }
}

static void draw_normal(const struct weft_normal *law, int64_t first, int64_t n, float *restrict x)
{
    const struct weft_normal l = *law;
    for (int64_t i = 0; i < n; i++) {
        x[i] = weft_normal_at(l, (uint64_t)(first + i));
    }
}

/* A loop for each number of moments that the optimizer may have. */
#define UPDATE(type, name, least, most)                                                            \
    static void update_by_##name(const struct weft_optimizer *optimizer, float decay, int64_t n,   \
                                 float *restrict p, const float *restrict g, float *restrict m,    \
                                 float *restrict v)                                                \
    {                                                                                              \
        struct weft_scalars s = {optimizer->adamw, optimizer->sgd, optimizer->divisor};            \
        s.adamw.decay = s.sgd.decay = decay;                                                       \
        for (int64_t i = 0; most == 2 && i < n; i++) {                                             \
            const struct weft_element from = {p[i], m[i], v[i]};                                   \
            const struct weft_element to = name##_update(s, 2, g[i], from);                        \
            p[i] = to.parameter;                                                                   \
            m[i] = to.moment1;                                                                     \
            v[i] = to.moment2;                                                                     \
        }                                                                                          \
        for (int64_t i = 0; most == 1 && m != NULL && i < n; i++) {                                \
            const struct weft_element to =                                                         \
                name##_update(s, 1, g[i], (struct weft_element){p[i], m[i], 0});                   \
            p[i] = to.parameter;                                                                   \
            m[i] = to.moment1;                                                                     \
        }                                                                                          \
        for (int64_t i = 0; least == 0 && m == NULL && i < n; i++)                                 \
            p[i] = name##_update(s, 0, g[i], (struct weft_element){p[i], 0, 0}).parameter;         \
    }
WEFT_ELEMENT_OPTIMIZERS(UPDATE)
WEFT_TENSOR_OPTIMIZERS(UPDATE)
#undef UPDATE

static void adam_moments(const struct weft_adamw *adamw, int64_t n, const float *restrict gradients,
                         float *restrict moment1, float *restrict moment2)
{
    const struct weft_adamw a = *adamw;
    for (int64_t i = 0; i < n; i++) {
        const float g = a.clip * gradients[i];
        moment1[i] = adam_moment1(a, moment1[i], g);
        moment2[i] = adam_moment2(a, moment2[i], g);
    }
}

static void adam_steps(const struct weft_adamw *adamw, int64_t n, const float *restrict parameters,
                       const float *restrict moment1, const float *restrict moment2,
                       float *restrict steps)
{
    const struct weft_adamw a = *adamw;
    for (int64_t i = 0; i < n; i++) {
        const float step = adam_step(a, moment1[i], moment2[i]);
        steps[i] = step + a.decay * parameters[i];
    }
}

/* A half of a square has 24 bits, and a window's 16 exponents shift it by at most 30. So 512 of
 * them fit in 64 bits. */
static void add_squares(int64_t n, const float *restrict x, struct weft_squares *squares)
{
    enum { EXPONENTS = 16, HALF = 24 };
    uint32_t most = 0, below = 0;
    for (int64_t i = 0; i < n; i++) {
        const uint32_t exponent = weft_bits_of(x[i]) >> 23 & 255u;
        most = exponent > most ? exponent : most;
    }
    const uint32_t window = most > EXPONENTS ? most - (EXPONENTS - 1) : 1;
    uint64_t low = 0, high = 0;
    for (int64_t i = 0; i < n; i++) {
        const uint32_t bits = weft_bits_of(x[i]), exponent = bits >> 23 & 255u;
        const uint32_t place = exponent > 0 ? exponent : 1;
        const uint32_t mantissa = (bits & 0x7fffffu) | (exponent > 0 ? 1u << 23 : 0u);
        const uint32_t inside = place >= window ? mantissa : 0;
        const uint32_t shift = place >= window ? 2 * (place - window) : 0;
        const uint64_t square = (uint64_t)inside * inside;
        below |= mantissa ^ inside;
        low += (square & ((1u << HALF) - 1)) << shift;
        high += square >> HALF << shift;
    }
    *squares = (struct weft_squares){low, high, (int32_t)window, below != 0};
}

static void exponential_each(int64_t n, const float *restrict x, float *restrict y)
{
    for (int64_t i = 0; i < n; i++) {
        y[i] = exponential(x[i]);
    }
}

#ifdef __AVX512F__
enum { SQUARE = 16 };

static __mmask16 first_lanes(int64_t n)
{
    return (__mmask16)(n >= SQUARE ? 0xffff : (1u << n) - 1);
}

/* Walks along 16 rows. The prefetch covers the next 16, which are too far apart for the hardware to
 * predict. */
static void turn_rows(int64_t rows, int64_t columns, const float *x, int64_t x_stride, float *y,
                      int64_t y_stride)
{
    for (int64_t i = 0; i < rows; i += SQUARE) {
        const int64_t height = rows - i < SQUARE ? rows - i : SQUARE;
        for (int64_t j = 0; j < columns; j += SQUARE) {
            const int64_t width = columns - j < SQUARE ? columns - j : SQUARE;
            const float *from = x + i * x_stride + j;
            __m512i r[SQUARE];
            for (int l = 0; l < SQUARE; l++) {
                r[l] = _mm512_maskz_loadu_epi32(l < height ? first_lanes(width) : 0,
                                                from + l * x_stride);
                _mm_prefetch(from + (SQUARE + l) * x_stride, _MM_HINT_T0);
            }
            weft_transpose_16(r);
            for (int l = 0; l < width; l++) {
                _mm512_mask_storeu_epi32(y + (j + l) * y_stride + i, first_lanes(height), r[l]);
            }
        }
    }
}
#else
static void (*const turn_rows)(int64_t, int64_t, const float *, int64_t, float *, int64_t) = NULL;
#endif

const struct weft_kernels WEFT_KERNELS_TABLE = {
    .level = WEFT_KERNELS_LEVEL,
    .layers = {[WEFT_F32] = &WEFT_KERNELS_F32,
               [WEFT_BF16] = &WEFT_KERNELS_BF16,
               [WEFT_F16] = &WEFT_KERNELS_F16},
    .widen = widen_elements,
    .narrow = narrow_elements,
    .normal = draw_normal,
#define UPDATE(type, name, least, most) [WEFT_##type] = update_by_##name,
    .update = {WEFT_ELEMENT_OPTIMIZERS(UPDATE) WEFT_TENSOR_OPTIMIZERS(UPDATE)},
#undef UPDATE
    .adam_moments = adam_moments,
    .adam_steps = adam_steps,
    .add_squares = add_squares,
    .turn = turn_rows,
#ifdef WEFT_KERNELS_ATTEND
    .attend = WEFT_KERNELS_ATTEND,
    .attend_backward = WEFT_KERNELS_ATTEND_BACKWARD,
    .attend_saves = WEFT_KERNELS_LANES == 16,
#endif
    .exponential = exponential_each,
};
