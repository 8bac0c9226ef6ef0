/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "runtime/nn/cpu/gemm/multiplier.h"
#include "runtime/nn/cpu/kernels/kernels.h"

/* Parts of three matrices have this side: 3 MiB, which the second or third cache holds. It is large
 * enough that widening costs little next to the product. */
enum { SIDE = 512 };

struct emulation {
    enum weft_dtype dtype;
    const struct weft_kernels *kernels;
    float a[SIDE * SIDE], b[SIDE * SIDE], c[SIDE * SIDE];
};

static enum weft_status open_emulation(int32_t threads, enum weft_dtype dtype, void **state,
                                       struct weft_error *err)
{
    (void)threads;
    struct emulation *emulation = malloc(sizeof(*emulation));
    if (!emulation) return weft_fail_memory(err, "the emulation of products of 16 bits");
    emulation->dtype = dtype;
    emulation->kernels = weft_kernels_best();
    *state = emulation;
    return WEFT_OK;
}

static bool is_emulated(const void *state, const struct weft_product *product)
{
    const struct emulation *emulation = state;
    return product->dtype == emulation->dtype && product->dtype != WEFT_F32;
}

static int64_t least_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Widens rows and columns of a stored matrix. */
static void widen_part(const struct emulation *e, const void *matrix, int64_t stride, int64_t row,
                       int64_t rows, int64_t column, int64_t columns, float *out)
{
    const uint16_t *from = matrix;
    for (int64_t i = 0; i < rows; i++) {
        e->kernels->widen(e->dtype, columns, from + (row + i) * stride + column, out + i * columns);
    }
}

/* Computes the part of c at [m0, n0] over all of k. An f32 c is summed in place. */
static enum weft_status emulate_part(struct emulation *e, const struct weft_multiplier_link *next,
                                     const struct weft_product *p, int64_t m0, int64_t n0,
                                     struct weft_error *err)
{
    const int64_t m = least_of(SIDE, p->m - m0), n = least_of(SIDE, p->n - n0);
    const bool in_place = p->c_dtype == WEFT_F32;
    uint16_t *c16 = (uint16_t *)p->c + m0 * p->c_stride + n0;
    struct weft_product part = {.transpose_a = p->transpose_a,
                                .transpose_b = p->transpose_b,
                                .m = m,
                                .n = n,
                                .a = e->a,
                                .b = e->b,
                                .alpha = p->alpha,
                                .accumulate = p->accumulate,
                                .c = in_place ? (float *)p->c + m0 * p->c_stride + n0 : e->c,
                                .c_stride = in_place ? p->c_stride : n};
    if (!in_place && p->accumulate) widen_part(e, c16, p->c_stride, 0, m, 0, n, e->c);
    for (int64_t k0 = 0; k0 < p->k; k0 += SIDE) {
        const int64_t k = least_of(SIDE, p->k - k0);
        part.k = k;
        part.a_stride = p->transpose_a ? m : k;
        part.b_stride = p->transpose_b ? k : n;
        if (p->transpose_a) {
            widen_part(e, p->a, p->a_stride, k0, k, m0, m, e->a);
        } else {
            widen_part(e, p->a, p->a_stride, m0, m, k0, k, e->a);
        }
        if (p->transpose_b) {
            widen_part(e, p->b, p->b_stride, n0, n, k0, k, e->b);
        } else {
            widen_part(e, p->b, p->b_stride, k0, k, n0, n, e->b);
        }
        WEFT_TRY(weft_multiply(next, &part, err));
        part.accumulate = true;
    }
    for (int64_t i = 0; i < m && !in_place; i++) {
        e->kernels->narrow(e->dtype, n, e->c + i * n, c16 + i * p->c_stride);
    }
    return WEFT_OK;
}

static enum weft_status run_emulated(void *state, const struct weft_multiplier_link *next,
                                     const struct weft_product *product, struct weft_error *err)
{
    for (int64_t m0 = 0; m0 < product->m; m0 += SIDE) {
        for (int64_t n0 = 0; n0 < product->n; n0 += SIDE) {
            WEFT_TRY(emulate_part(state, next, product, m0, n0, err));
        }
    }
    return WEFT_OK;
}

const struct weft_multiplier weft_multiplier_emulation = {
    .title = "emulation",
    .dtypes = WEFT_EVERY_DTYPE & ~(1u << WEFT_F32),
    .open = open_emulation,
    .close = free,
    .covers = is_emulated,
    .run = run_emulated,
};
