/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/nn/cpu/layers/walk.h"

enum weft_status weft_nn_cpu_activate_forward(const struct weft_nn_walked *at,
                                              struct weft_error *err)
{
    (void)err;
    const struct weft_layer_kernels *kernels = weft_nn_step_kernels(at);
    const int64_t n = at->in[0].rows * at->in[0].columns;
    const enum weft_word kind = at->step->from->kind;
    void (*const apply)(int64_t, const void *, void *) = kind == WEFT_WORD_RELU ? kernels->relu
                                                         : kind == WEFT_WORD_SQUARED_RELU
                                                             ? kernels->squared_relu
                                                             : kernels->gelu;
    apply(n, at->in[0].data, at->out[0].data);
    return WEFT_OK;
}

enum weft_status weft_nn_cpu_activate_backward(const struct weft_nn_walked *at,
                                               struct weft_error *err)
{
    (void)err;
    const struct weft_layer_kernels *kernels = weft_nn_step_kernels(at);
    const int64_t rows = at->in[0].rows, columns = at->in[0].columns;
    const enum weft_word kind = at->step->from->kind;
    if (kind == WEFT_WORD_RELU)
        kernels->relu_backward(rows * columns, at->out[0].data, at->d_out.data, at->d_in[0].data);
    else if (kind == WEFT_WORD_SQUARED_RELU)
        kernels->squared_relu_backward(rows * columns, at->in[0].data, at->d_out.data,
                                       at->d_in[0].data);
    else
        kernels->gelu_backward(rows, columns, at->in[0].data, at->d_out.data, at->d_in[0].data,
                               NULL);
    return WEFT_OK;
}
