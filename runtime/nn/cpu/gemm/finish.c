/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/nn/cpu/gemm/finish.h"

#include "runtime/nn/cpu/gemm/multiplier.h"
#include "runtime/nn/cpu/kernels/kernels.h"

static bool is_finished(const void *state, const struct weft_product *product)
{
    (void)state;
    return weft_finish_wanted(&product->finish);
}

static enum weft_status run_and_finish(void *state, const struct weft_multiplier_link *next,
                                       const struct weft_product *product, struct weft_error *err)
{
    (void)state;
    const struct weft_layer_kernels *kernels = weft_kernels_best()->layers[product->c_dtype];
    const struct weft_product_finish *finish = &product->finish;
    struct weft_product bare = *product;
    bare.finish = (struct weft_product_finish){0};
    const bool bias_with_gelu = finish->gelu && !finish->gelu_input && !finish->residual;
    if (finish->residual || (finish->bias && !bias_with_gelu)) {
        kernels->fill(product->m, product->n, finish->residual, finish->bias, product->c_stride,
                      product->c);
        bare.accumulate = true;
    }
    WEFT_TRY(weft_multiply(next, &bare, err));
    if (finish->gelu_input) {
        kernels->gelu_backward(product->m, product->n, finish->gelu_input, product->c, product->c,
                               finish->column_sums);
    } else if (finish->column_sums) {
        kernels->column_sums(product->m, product->n, product->c_stride, product->c,
                             finish->column_sums);
    }
    if (finish->gelu && finish->bias && bias_with_gelu) {
        kernels->bias_gelu(product->m, product->n, finish->bias, product->c, finish->gelu);
    } else if (finish->gelu) {
        kernels->gelu(product->m * product->n, product->c, finish->gelu);
    }
    return WEFT_OK;
}

const struct weft_multiplier weft_multiplier_finish = {
    .title = "finishing",
    .dtypes = WEFT_EVERY_DTYPE,
    .covers = is_finished,
    .run = run_and_finish,
};
