/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/nn/cuda/layers/walk.h"

int weft_cuda_add_forward(const struct weft_cuda_walked *s)
{
    const struct weft_nn_operand *a = &s->at->in[0];
    return weft_cuda_add_values(weft_cuda_step_dtype(s), a->rows * a->columns, a->data,
                                s->at->in[1].data, s->at->out[0].data, s->on);
}
