/* SPDX-License-Identifier: Apache-2.0 */
/* The finish of a row of sums on its way to c, for multipliers of our own. Order and bits equal
 * those of the kernels' separate passes over c. */
#ifndef WEFT_RUNTIME_NN_CPU_GEMM_FINISH_H
#define WEFT_RUNTIME_NN_CPU_GEMM_FINISH_H

#include "runtime/nn/cpu/kernels/parts.h"
#include "runtime/nn/product.h"

enum { WEFT_FINISH_MOST = 32 }; /* columns at a time */

static inline bool weft_finish_wanted(const struct weft_product_finish *f)
{
    return f->bias || f->residual || f->gelu_input || f->gelu || f->column_sums;
}

WEFT_ALWAYS_INLINE float weft_finish_load(bool f32, const void *x, int64_t i)
{
    return f32 ? ((const float *)x)[i] : weft_bf16_widen(((const uint16_t *)x)[i]);
}

WEFT_ALWAYS_INLINE void weft_finish_store(bool f32, void *x, int64_t i, float value)
{
    if (f32) {
        ((float *)x)[i] = value;
    } else {
        ((uint16_t *)x)[i] = weft_bf16_narrow(value);
    }
}

/* Finishes n elements of a row of c, from `at` and column `column` on, in f32 or bf16. With a
 * constant n the compiler unrolls the loops and keeps `row` in registers. */
WEFT_ALWAYS_INLINE void weft_finish_row(const struct weft_product *p, bool f32, int64_t n,
                                        float row[WEFT_FINISH_MOST], int64_t column, int64_t at)
{
    const struct weft_product_finish f = p->finish;
    for (int64_t j = 0; f.bias && f.residual && j < n; j++) {
        row[j] +=
            weft_finish_load(f32, f.residual, at + j) + weft_finish_load(f32, f.bias, column + j);
    }
    for (int64_t j = 0; f.bias && !f.residual && j < n; j++) {
        row[j] += weft_finish_load(f32, f.bias, column + j);
    }
    for (int64_t j = 0; !f.bias && f.residual && j < n; j++) {
        row[j] += weft_finish_load(f32, f.residual, at + j);
    }
    for (int64_t j = 0; f.gelu_input && j < n; j++) {
        row[j] *= gelu_slope(weft_finish_load(f32, f.gelu_input, at + j));
    }
    for (int64_t j = 0; j < n; j++) {
        weft_finish_store(f32, p->c, at + j, row[j]);
    }
    for (int64_t j = 0; !f32 && j < n; j++) {
        row[j] = weft_bf16_widen(weft_bf16_narrow(row[j])); /* as stored */
    }
    for (int64_t j = 0; f.gelu && j < n; j++) {
        weft_finish_store(f32, f.gelu, at + j, gelu_of(row[j]));
    }
    for (int64_t j = 0; f.column_sums && j < n; j++) {
        f.column_sums[column + j] += row[j];
    }
}

#endif
