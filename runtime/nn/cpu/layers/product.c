/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/nn/cpu/layers/walk.h"
#include "runtime/nn/step_products.h"

enum weft_status weft_nn_cpu_product_forward(const struct weft_nn_walked *at,
                                             struct weft_error *err)
{
    const struct weft_product product = weft_nn_forward_product(at);
    return weft_gemm_run(at->cpu->gemm, &product, err);
}

enum weft_status weft_nn_cpu_product_then(const struct weft_nn_walked *at, struct weft_error *err)
{
    (void)err;
    const struct weft_nn_operand *y = &at->out[0];
    weft_nn_step_kernels(at)->gelu(y->rows * y->columns, y->data, at->out[1].data);
    return WEFT_OK;
}

/* Turns the gradient of an activation into its product's, unless a later product did. Then the sums
 * have its columns. */
static void turn_output(const struct weft_nn_walked *at)
{
    if (weft_nn_step_turns(at))
        weft_nn_step_kernels(at)->gelu_backward(at->out[0].rows, at->out[0].columns,
                                                at->out[0].data, at->d_out.data, at->turned.data,
                                                NULL);
}

static void give_bias(const struct weft_nn_walked *at, const struct weft_nn_operand *dy)
{
    if (at->step->n_tensors <= WEFT_STEP_BIAS ||
        at->call->gradients[weft_nn_step_tensor(at, WEFT_STEP_BIAS)] == NULL)
        return;
    if (!at->step->has_slope)
        weft_nn_step_kernels(at)->column_sums(dy->rows, dy->columns, dy->stride, dy->data,
                                              at->sums);
    weft_nn_step_give(at, WEFT_STEP_BIAS, dy->columns, at->scale, at->sums);
}

/* The activation's product takes its bias's gradient from sums of the columns of dx. */
static bool sums_columns(const struct weft_nn_walked *at)
{
    return at->slope.data != NULL && at->walk->steps[at->step->slope].n_tensors > WEFT_STEP_BIAS;
}

enum weft_status weft_nn_cpu_product_backward(const struct weft_nn_walked *at,
                                              struct weft_error *err)
{
    const struct weft_nn_operand dy = weft_nn_step_gradient(at);
    turn_output(at);
    give_bias(at, &dy);
    if (at->call->gradients[weft_nn_step_tensor(at, WEFT_STEP_WEIGHT)] != NULL) {
        const struct weft_product product = weft_nn_weight_product(at);
        WEFT_TRY(weft_gemm_run(at->cpu->gemm, &product, err));
    }
    if (at->d_in[0].data == NULL) return WEFT_OK;
    struct weft_product product = weft_nn_input_product(at);
    product.finish.column_sums = sums_columns(at) ? at->sums : NULL;
    return weft_gemm_run(at->cpu->gemm, &product, err);
}
