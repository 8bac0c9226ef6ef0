/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/nn/cpu/layers/walk.h"

typedef void apply_fn(int64_t n, const void *x, void *y);
typedef void slope_fn(int64_t n, const void *of, const void *dy, void *dx);

enum weft_status weft_nn_cpu_activate_forward(const struct weft_nn_walked *at,
                                              struct weft_error *err)
{
    (void)err;
    const struct weft_layer_kernels *kernels = weft_nn_step_kernels(at);
    const int64_t n = at->in[0].rows * at->in[0].columns;
    apply_fn *const by_kind[WEFT_WORD_COUNT] = {[WEFT_WORD_RELU] = kernels->relu,
                                                [WEFT_WORD_SQUARED_RELU] = kernels->squared_relu,
                                                [WEFT_WORD_GELU] = kernels->gelu,
                                                [WEFT_WORD_GELU_ERF] = kernels->gelu_erf,
                                                [WEFT_WORD_TANH] = kernels->tanh};
    by_kind[at->step->from->kind](n, at->in[0].data, at->out[0].data);
    return WEFT_OK;
}

enum weft_status weft_nn_cpu_activate_backward(const struct weft_nn_walked *at,
                                               struct weft_error *err)
{
    (void)err;
    const struct weft_layer_kernels *kernels = weft_nn_step_kernels(at);
    const int64_t rows = at->in[0].rows, columns = at->in[0].columns;
    const enum weft_word kind = at->step->from->kind;
    slope_fn *const by_kind[WEFT_WORD_COUNT] = {[WEFT_WORD_RELU] = kernels->relu_backward,
                                                [WEFT_WORD_SQUARED_RELU] =
                                                    kernels->squared_relu_backward,
                                                [WEFT_WORD_GELU_ERF] = kernels->gelu_erf_backward,
                                                [WEFT_WORD_TANH] = kernels->tanh_backward};
    const bool by_output = kind == WEFT_WORD_RELU || kind == WEFT_WORD_TANH;
    if (kind == WEFT_WORD_GELU)
        kernels->gelu_backward(rows, columns, at->in[0].data, at->d_out.data, at->d_in[0].data,
                               NULL);
    else
        by_kind[kind](rows * columns, by_output ? at->out[0].data : at->in[0].data, at->d_out.data,
                      at->d_in[0].data);
    return WEFT_OK;
}
