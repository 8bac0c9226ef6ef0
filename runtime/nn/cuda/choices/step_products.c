/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/nn/cuda/choices/step_products.h"

#include "layers/shared/place.h"

enum { WEIGHT, BIAS };

struct weft_nn_operand weft_cuda_product_gradient(const struct weft_nn_walked *at)
{
    return at->step->n_out == 1 || at->step->has_slope ? at->d_out : at->turned;
}

struct weft_product weft_cuda_forward_product(const struct weft_nn_walked *at)
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
                                 .b = weft_nn_step_weight(at, WEIGHT),
                                 .b_stride = x->columns,
                                 .alpha = 1,
                                 .c = y->data,
                                 .c_stride = y->stride,
                                 .finish = {.bias = weft_nn_step_weight(at, BIAS),
                                            .residual = at->add.data,
                                            .gelu = at->out[1].data}};
}

struct weft_product weft_cuda_input_product(const struct weft_nn_walked *at)
{
    const enum weft_dtype dtype = at->call->batch.compute;
    const struct weft_nn_operand dy = weft_cuda_product_gradient(at), *dx = &at->d_in[0];
    const bool adds = at->old[0].data != NULL && at->old[0].data == dx->data;
    return (struct weft_product){
        .dtype = dtype,
        .c_dtype = dtype,
        .m = dx->rows,
        .n = dx->columns,
        .k = dy.columns,
        .a = dy.data,
        .a_stride = dy.stride,
        .b = weft_nn_step_weight(at, WEIGHT),
        .b_stride = dx->columns,
        .alpha = 1,
        .accumulate = adds,
        .c = dx->data,
        .c_stride = dx->stride,
        .finish = {.residual = adds ? NULL : at->old[0].data, .gelu_input = at->slope.data}};
}

struct weft_product weft_cuda_weight_product(const struct weft_nn_walked *at)
{
    const struct weft_nn_call *call = at->call;
    const struct weft_nn_operand dy = weft_cuda_product_gradient(at), *x = &at->in[0];
    const int32_t tensor = weft_nn_step_tensor(at, WEIGHT);
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
                                 .alpha = 1,
                                 .accumulate = call->accumulate[tensor],
                                 .c = call->gradients[tensor],
                                 .c_stride = x->columns};
}

/* A call whose operands are not read. Their addresses only show which there are: offsets are
 * multiples of WEFT_LAYOUT_ALIGN_BYTES, so parts of two buffers never have one address. */
static struct weft_nn_call call_of(const struct weft_layer *layer, const struct weft_batch *batch)
{
    static char somewhere[WEFT_LAYOUT_ALIGN_BYTES];
    struct weft_nn_call call = {.layer = layer,
                                .batch = *batch,
                                .gradient_dtype = batch->compute,
                                .input = somewhere,
                                .output = somewhere + 1,
                                .saved = somewhere + 2,
                                .temporary = somewhere + 3,
                                .output_gradient = somewhere + 4,
                                .input_gradient = somewhere + 5};
    for (int i = 0; i < WEFT_LAYER_TENSORS; i++) {
        call.tensors[i] = somewhere + 6;
        call.gradients[i] = somewhere + 7;
    }
    return call;
}

static enum weft_status add_product(const struct weft_product *product, bool timed,
                                    weft_cuda_add_key_fn *add, void *context,
                                    struct weft_error *err)
{
    if (!weft_cuda_has_dense_b(product)) return WEFT_OK;
    const struct weft_cuda_key key = weft_cuda_key_of(product, timed);
    return add(context, &key, err);
}

static enum weft_status add_step(const struct weft_nn_pass *pass, const struct weft_walk_step *step,
                                 weft_cuda_add_key_fn *add, void *context, struct weft_error *err)
{
    const struct weft_nn_walked at = weft_nn_step_backward(pass, step);
    const bool timed = step->d_out == WEFT_GRADIENT_SAVED;
    const struct weft_product forward = weft_cuda_forward_product(&at);
    const struct weft_product by_input = weft_cuda_input_product(&at);
    struct weft_product by_weight = weft_cuda_weight_product(&at);
    WEFT_TRY(add_product(&forward, false, add, context, err));
    WEFT_TRY(add_product(&by_input, timed, add, context, err));
    WEFT_TRY(add_product(&by_weight, timed, add, context, err));
    by_weight.c_dtype = WEFT_F32;
    return add_product(&by_weight, timed, add, context, err);
}

enum weft_status weft_cuda_step_products(const struct weft_layer *layer,
                                         const struct weft_batch *batch, weft_cuda_add_key_fn *add,
                                         void *context, struct weft_error *err)
{
    struct weft_walk walk;
    struct weft_error unsaid = {0};
    if (layer->kind->recipe == NULL ||
        weft_walk_derive(layer, batch, WEFT_RECOMPUTE_NONE, &walk, &unsaid) != WEFT_OK)
        return WEFT_OK;
    const struct weft_nn_call call = call_of(layer, batch);
    const struct weft_nn_pass pass = weft_nn_pass_of(&call, &walk, true);
    for (int32_t i = 0; i < walk.n_steps; i++)
        if (walk.steps[i].op->has_weight)
            WEFT_TRY(add_step(&pass, &walk.steps[i], add, context, err));
    return WEFT_OK;
}
