/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/nn/cpu/layers/walk.h"

enum { GATE, UP };

enum weft_status weft_nn_cpu_gate_forward(const struct weft_nn_walked *at, struct weft_error *err)
{
    (void)err;
    const struct weft_layer_kernels *kernels = weft_nn_step_kernels(at);
    (at->step->from->kind == WEFT_WORD_GELU ? kernels->gate_gelu : kernels->gate)(
        at->in[GATE].rows, at->in[GATE].columns, at->in[GATE].stride, at->in[GATE].data,
        at->in[UP].data, at->out[0].data);
    return WEFT_OK;
}

enum weft_status weft_nn_cpu_gate_backward(const struct weft_nn_walked *at, struct weft_error *err)
{
    (void)err;
    const struct weft_layer_kernels *kernels = weft_nn_step_kernels(at);
    (at->step->from->kind == WEFT_WORD_GELU ? kernels->gate_gelu_backward : kernels->gate_backward)(
        at->in[GATE].rows, at->in[GATE].columns, at->in[GATE].stride, at->in[GATE].data,
        at->in[UP].data, at->d_out.stride, at->d_out.data, at->d_in[GATE].data, at->d_in[UP].data);
    return WEFT_OK;
}
