/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/nn/cpu/layers/walk.h"

static enum weft_status check_targets(const struct weft_nn_walked *at, struct weft_error *err)
{
    const struct weft_nn_call *call = at->call;
    const int64_t classes = at->in[0].columns;
    for (int64_t i = 0; i < at->in[0].rows; i++) {
        const int32_t target = call->targets[i];
        const bool has_loss = target != WEFT_NO_TARGET && target != WEFT_LEFT_OUT;
        if (has_loss && (target < 0 || target >= classes)) {
            return weft_fail(err, WEFT_E_DATA,
                             "layer %s: target %d of row %lld is outside 0 to %lld",
                             call->layer->name, (int)target, (long long)i, (long long)classes - 1);
        }
    }
    return WEFT_OK;
}

/* Logits become the rows' own gradient in place. Backward of their product multiplies by the loss
 * scale. */
enum weft_status weft_nn_cpu_loss_forward(const struct weft_nn_walked *at, struct weft_error *err)
{
    const struct weft_nn_operand *logits = &at->in[0];
    WEFT_TRY(check_targets(at, err));
    const struct weft_layer_kernels *kernels = weft_nn_step_kernels(at);
    const float cap = (float)at->step->numbers.cap;
    const double loss =
        cap > 0 ? kernels->capped_cross_entropy(logits->rows, logits->columns, logits->stride, cap,
                                                at->call->targets, logits->data)
                : kernels->cross_entropy(logits->rows, logits->columns, logits->stride,
                                         at->call->targets, logits->data);
    *at->call->loss = at->call->adds_loss ? *at->call->loss + loss : loss;
    return WEFT_OK;
}
