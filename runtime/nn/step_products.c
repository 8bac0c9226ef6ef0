/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/nn/step_products.h"

bool weft_nn_step_turns(const struct weft_nn_walked *at)
{
    return at->step->n_out > 1 && !at->step->has_slope;
}

struct weft_nn_operand weft_nn_step_gradient(const struct weft_nn_walked *at)
{
    return weft_nn_step_turns(at) ? at->turned : at->d_out;
}

struct weft_product weft_nn_forward_product(const struct weft_nn_walked *at)
{
    const enum weft_dtype dtype = at->call->batch.compute;
    const struct weft_nn_operand *x = &at->in[0], *y = &at->out[0];
    return (struct weft_product){.transpose_b = true,
                                 .dtype = dtype,
                                 .c_dtype = dtype,
                                 .m = x->rows,
                                 .n = y->columns,
                                 .k = x->columns,
                                 .a = x->data,
                                 .a_stride = x->stride,
                                 .b = weft_nn_step_weight(at, WEFT_STEP_WEIGHT),
                                 .b_stride = x->columns,
                                 .alpha = 1,
                                 .c = y->data,
                                 .c_stride = y->stride,
                                 .finish = {.bias = weft_nn_step_weight(at, WEFT_STEP_BIAS),
                                            .residual = at->add.data,
                                            .gelu = at->out[1].data}};
}

struct weft_product weft_nn_input_product(const struct weft_nn_walked *at)
{
    const enum weft_dtype dtype = at->call->batch.compute;
    const struct weft_nn_operand dy = weft_nn_step_gradient(at), *dx = &at->d_in[0];
    const bool adds = at->old[0].data != NULL && at->old[0].data == dx->data;
    return (struct weft_product){
        .dtype = dtype,
        .c_dtype = dtype,
        .m = dx->rows,
        .n = dx->columns,
        .k = dy.columns,
        .a = dy.data,
        .a_stride = dy.stride,
        .b = weft_nn_step_weight(at, WEFT_STEP_WEIGHT),
        .b_stride = dx->columns,
        .alpha = at->scale,
        .accumulate = adds,
        .c = dx->data,
        .c_stride = dx->stride,
        .finish = {.residual = adds ? NULL : at->old[0].data, .gelu_input = at->slope.data}};
}

struct weft_product weft_nn_weight_product(const struct weft_nn_walked *at)
{
    const struct weft_nn_call *call = at->call;
    const struct weft_nn_operand dy = weft_nn_step_gradient(at), *x = &at->in[0];
    const int32_t tensor = weft_nn_step_tensor(at, WEFT_STEP_WEIGHT);
    return (struct weft_product){.transpose_a = true,
                                 .dtype = call->batch.compute,
                                 .c_dtype = call->gradient_dtype,
                                 .m = dy.columns,
                                 .n = x->columns,
                                 .k = x->rows,
                                 .a = dy.data,
                                 .a_stride = dy.stride,
                                 .b = x->data,
                                 .b_stride = x->stride,
                                 .alpha = at->scale,
                                 .accumulate = call->accumulate[tensor],
                                 .c = call->gradients[tensor],
                                 .c_stride = x->columns};
}
