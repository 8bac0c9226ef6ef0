/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/nn/cuda/kernels/record.h"
#include "runtime/nn/cuda/layers/walk.h"

/* Turns logits into the rows' own gradient, and writes the rows' losses. */
static int take_logits(const struct weft_cuda_walked *s, double *losses)
{
    const struct weft_nn_operand *logits = &s->at->in[0];
    const int32_t *targets = s->at->call->targets;
    const enum weft_dtype dtype = weft_cuda_step_dtype(s);
    const float cap = (float)s->at->step->numbers.cap;
    if (cap > 0)
        return weft_cuda_capped_cross_entropy(dtype, logits->rows, logits->columns, logits->stride,
                                              cap, targets, logits->data, losses, s->found, s->on);
    return (s->cuda->plain ? weft_cuda_cross_entropy_plain : weft_cuda_cross_entropy)(
        dtype, logits->rows, logits->columns, logits->stride, targets, logits->data, losses,
        s->found, s->on);
}

/* Logits become the rows' own gradient in place. Backward of their product multiplies by the loss
 * scale. The scratch has the rows' losses. */
int weft_cuda_loss_forward(const struct weft_cuda_walked *s)
{
    const struct weft_nn_call *call = s->at->call;
    double *losses = (double *)(void *)s->scratch;
    const int code = take_logits(s, losses);
    if (code != 0) return code;
    return weft_cuda_loss_total(s->at->in[0].rows, losses, call->adds_loss, call->loss, s->on);
}
