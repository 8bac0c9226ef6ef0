/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/nn/cpu/layers/walk.h"

enum { WEIGHT, BIAS };

/* y = x W^T, then the finish. */
static enum weft_status multiply_forward(const struct weft_nn_walked *at,
                                         const struct weft_product_finish *finish,
                                         struct weft_error *err)
{
    const enum weft_dtype dtype = at->call->batch.compute;
    const struct weft_nn_operand *x = &at->in[0], *y = &at->out[0];
    const struct weft_product product = {.transpose_b = true,
                                         .dtype = dtype,
                                         .c_dtype = dtype,
                                         .m = x->rows,
                                         .n = y->columns,
                                         .k = x->columns,
                                         .a = x->data,
                                         .a_stride = x->stride,
                                         .b = weft_nn_step_weight(at, WEIGHT),
                                         .b_stride = x->columns,
                                         .alpha = 1,
                                         .c = y->data,
                                         .c_stride = y->stride,
                                         .finish = *finish};
    return weft_gemm_run(at->cpu->gemm, &product, err);
}

/* The activation's product takes its bias's gradient from sums of the columns of dx. */
static bool sums_columns(const struct weft_nn_walked *at)
{
    return at->slope.data != NULL && at->walk->steps[at->step->slope].n_tensors > BIAS;
}

/* dx = scale dy W, then the finish. */
static enum weft_status multiply_input(const struct weft_nn_walked *at,
                                       const struct weft_nn_operand *dy, struct weft_error *err)
{
    const enum weft_dtype dtype = at->call->batch.compute;
    const struct weft_nn_operand *dx = &at->d_in[0];
    const bool adds = at->old[0].data != NULL && at->old[0].data == dx->data;
    const struct weft_product product = {
        .dtype = dtype,
        .c_dtype = dtype,
        .m = dx->rows,
        .n = dx->columns,
        .k = dy->columns,
        .a = dy->data,
        .a_stride = dy->stride,
        .b = weft_nn_step_weight(at, WEIGHT),
        .b_stride = dx->columns,
        .alpha = at->scale,
        .accumulate = adds,
        .c = dx->data,
        .c_stride = dx->stride,
        .finish = {.residual = adds ? NULL : at->old[0].data,
                   .gelu_input = at->slope.data,
                   .column_sums = sums_columns(at) ? at->sums : NULL}};
    return weft_gemm_run(at->cpu->gemm, &product, err);
}

/* The gradient of the weight, scale dy^T x, unless it is frozen. */
static enum weft_status multiply_weight(const struct weft_nn_walked *at,
                                        const struct weft_nn_operand *dy, struct weft_error *err)
{
    const struct weft_nn_call *call = at->call;
    const int32_t tensor = weft_nn_step_tensor(at, WEIGHT);
    const struct weft_nn_operand *x = &at->in[0];
    if (call->gradients[tensor] == NULL) return WEFT_OK;
    const struct weft_product product = {.transpose_a = true,
                                         .dtype = call->batch.compute,
                                         .c_dtype = call->gradient_dtype,
                                         .m = dy->columns,
                                         .n = x->columns,
                                         .k = x->rows,
                                         .a = dy->data,
                                         .a_stride = dy->stride,
                                         .b = x->data,
                                         .b_stride = x->stride,
                                         .alpha = at->scale,
                                         .accumulate = call->accumulate[tensor],
                                         .c = call->gradients[tensor],
                                         .c_stride = x->columns};
    return weft_gemm_run(at->cpu->gemm, &product, err);
}

enum weft_status weft_nn_cpu_product_forward(const struct weft_nn_walked *at,
                                             struct weft_error *err)
{
    const struct weft_product_finish finish = {
        .bias = weft_nn_step_weight(at, BIAS), .residual = at->add.data, .gelu = at->out[1].data};
    return multiply_forward(at, &finish, err);
}

enum weft_status weft_nn_cpu_product_then(const struct weft_nn_walked *at, struct weft_error *err)
{
    (void)err;
    const struct weft_nn_operand *y = &at->out[0];
    weft_nn_step_kernels(at)->gelu(y->rows * y->columns, y->data, at->out[1].data);
    return WEFT_OK;
}

/* The gradient of the product itself. A later product may have turned the activation's already, and
 * then the sums have its columns. */
static struct weft_nn_operand turn_output(const struct weft_nn_walked *at)
{
    if (at->step->n_out == 1 || at->step->has_slope) return at->d_out;
    weft_nn_step_kernels(at)->gelu_backward(at->out[0].rows, at->out[0].columns, at->out[0].data,
                                            at->d_out.data, at->turned.data, NULL);
    return at->turned;
}

static void give_bias(const struct weft_nn_walked *at, const struct weft_nn_operand *dy)
{
    if (at->step->n_tensors <= BIAS || at->call->gradients[weft_nn_step_tensor(at, BIAS)] == NULL)
        return;
    if (!at->step->has_slope)
        weft_nn_step_kernels(at)->column_sums(dy->rows, dy->columns, dy->stride, dy->data,
                                              at->sums);
    weft_nn_step_give(at, BIAS, dy->columns, at->scale, at->sums);
}

enum weft_status weft_nn_cpu_product_backward(const struct weft_nn_walked *at,
                                              struct weft_error *err)
{
    const struct weft_nn_operand dy = turn_output(at);
    give_bias(at, &dy);
    WEFT_TRY(multiply_weight(at, &dy, err));
    return at->d_in[0].data == NULL ? WEFT_OK : multiply_input(at, &dy, err);
}
