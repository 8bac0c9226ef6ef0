/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/nn/cuda/layers/walk.h"

enum { GATE, UP };

int weft_cuda_gate_forward(const struct weft_cuda_walked *s)
{
    const struct weft_nn_operand *gate = &s->at->in[GATE];
    const bool gelu = s->at->step->from->kind == WEFT_WORD_GELU;
    return (gelu ? weft_cuda_gate_gelu
                 : weft_cuda_gate)(weft_cuda_step_dtype(s), gate->rows, gate->columns, gate->stride,
                                   gate->data, s->at->in[UP].data, s->at->out[0].data, s->on);
}

int weft_cuda_gate_step_backward(const struct weft_cuda_walked *s)
{
    const struct weft_nn_walked *at = s->at;
    const struct weft_nn_operand *gate = &at->in[GATE];
    const bool gelu = at->step->from->kind == WEFT_WORD_GELU;
    return (gelu ? weft_cuda_gate_gelu_backward : weft_cuda_gate_backward)(
        weft_cuda_step_dtype(s), gate->rows, gate->columns, gate->stride, gate->data,
        at->in[UP].data, at->d_out.stride, at->d_out.data, at->d_in[GATE].data, at->d_in[UP].data,
        s->on);
}
