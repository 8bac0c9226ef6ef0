/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/nn/cuda/kernels/record.h"
#include "runtime/nn/cuda/layers/walk.h"

/* Logits become the rows' own gradient in place. Backward of their product multiplies by the loss
 * scale. The scratch has the rows' losses. */
int weft_cuda_loss_forward(const struct weft_cuda_walked *s)
{
    const struct weft_nn_call *call = s->at->call;
    const struct weft_nn_operand *logits = &s->at->in[0];
    double *losses = (double *)(void *)s->scratch;
    const int code = (s->cuda->plain ? weft_cuda_cross_entropy_plain : weft_cuda_cross_entropy)(
        weft_cuda_step_dtype(s), logits->rows, logits->columns, logits->stride, call->targets,
        logits->data, losses, s->found, s->on);
    if (code != 0) return code;
    return weft_cuda_loss_total(logits->rows, losses, call->adds_loss, call->loss, s->on);
}
