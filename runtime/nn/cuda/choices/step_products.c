/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/nn/cuda/choices/step_products.h"

#include "layers/shared/place.h"

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
    const struct weft_product forward = weft_nn_forward_product(&at);
    const struct weft_product by_input = weft_nn_input_product(&at);
    struct weft_product by_weight = weft_nn_weight_product(&at);
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
