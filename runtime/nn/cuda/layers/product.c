/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/nn/cuda/choices/multiply.h"
#include "runtime/nn/cuda/layers/walk.h"
#include "runtime/nn/step_products.h"

int weft_cuda_product_forward(const struct weft_cuda_walked *s)
{
    const struct weft_product product = weft_nn_forward_product(s->at);
    return weft_cuda_multiply(s->cuda, &product, NULL, s->on);
}

/* Turns the gradient of an activation into that of its product, unless a later product did. */
static int turn_output(const struct weft_cuda_walked *s)
{
    const struct weft_nn_walked *at = s->at;
    const struct weft_nn_operand *x = &at->out[0];
    if (!weft_nn_step_turns(at)) return 0;
    return weft_cuda_gelu_backward(weft_cuda_step_dtype(s), x->rows * x->columns, x->data,
                                   at->d_out.data, at->turned.data, s->on);
}

static int give_bias(const struct weft_cuda_walked *s, const struct weft_nn_operand *dy)
{
    const struct weft_nn_walked *at = s->at;
    if (at->step->n_tensors <= WEFT_STEP_BIAS ||
        at->call->gradients[weft_nn_step_tensor(at, WEFT_STEP_BIAS)] == NULL)
        return 0;
    const int code =
        weft_cuda_column_sums(weft_cuda_step_dtype(s), dy->rows, dy->columns, dy->stride, dy->data,
                              at->sums, s->cuda->plain ? NULL : s->scratch, s->on);
    return code != 0 ? code : weft_cuda_give(s, WEFT_STEP_BIAS, dy->columns, at->sums);
}

int weft_cuda_product_backward(const struct weft_cuda_walked *s)
{
    const struct weft_nn_walked *at = s->at;
    const struct weft_nn_operand dy = weft_nn_step_gradient(at);
    int code = turn_output(s);
    if (code == 0) code = give_bias(s, &dy);
    if (code == 0 && at->call->gradients[weft_nn_step_tensor(at, WEFT_STEP_WEIGHT)] != NULL) {
        const struct weft_product product = weft_nn_weight_product(at);
        code = weft_cuda_multiply(s->cuda, &product, s->times, s->on);
    }
    if (code != 0 || at->d_in[0].data == NULL) return code;
    const struct weft_product product = weft_nn_input_product(at);
    return weft_cuda_multiply(s->cuda, &product, s->times, s->on);
}
