/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/nn/cuda/layers/walk.h"

static int64_t elements_of(const struct weft_nn_walked *at)
{
    return at->in[0].rows * at->in[0].columns;
}

int weft_cuda_activate_forward(const struct weft_cuda_walked *s)
{
    const enum weft_word kind = s->at->step->from->kind;
    const enum weft_dtype dtype = weft_cuda_step_dtype(s);
    const void *x = s->at->in[0].data;
    void *y = s->at->out[0].data;
    if (kind == WEFT_WORD_RELU) return weft_cuda_relu(dtype, elements_of(s->at), x, y, s->on);
    if (kind == WEFT_WORD_SQUARED_RELU)
        return weft_cuda_squared_relu(dtype, elements_of(s->at), x, y, s->on);
    if (kind == WEFT_WORD_GELU_ERF)
        return weft_cuda_gelu_erf(dtype, elements_of(s->at), x, y, s->on);
    if (kind == WEFT_WORD_TANH) return weft_cuda_tanh(dtype, elements_of(s->at), x, y, s->on);
    return weft_cuda_gelu(dtype, elements_of(s->at), x, y, s->on);
}

int weft_cuda_activate_backward(const struct weft_cuda_walked *s)
{
    const enum weft_word kind = s->at->step->from->kind;
    const enum weft_dtype dtype = weft_cuda_step_dtype(s);
    const void *x = s->at->in[0].data, *dy = s->at->d_out.data;
    void *dx = s->at->d_in[0].data;
    if (kind == WEFT_WORD_RELU)
        return weft_cuda_relu_backward(dtype, elements_of(s->at), s->at->out[0].data, dy, dx,
                                       s->on);
    if (kind == WEFT_WORD_SQUARED_RELU)
        return weft_cuda_squared_relu_backward(dtype, elements_of(s->at), x, dy, dx, s->on);
    if (kind == WEFT_WORD_GELU_ERF)
        return weft_cuda_gelu_erf_backward(dtype, elements_of(s->at), x, dy, dx, s->on);
    if (kind == WEFT_WORD_TANH)
        return weft_cuda_tanh_backward(dtype, elements_of(s->at), s->at->out[0].data, dy, dx,
                                       s->on);
    return weft_cuda_gelu_backward(dtype, elements_of(s->at), x, dy, dx, s->on);
}
