/* SPDX-License-Identifier: Apache-2.0 */
/* Products of a recipe's step, described once for choices and for the walk. Without a gradient's
 * address the description has NULL there. */
#ifndef WEFT_RUNTIME_NN_CUDA_CHOICES_STEP_PRODUCTS_H
#define WEFT_RUNTIME_NN_CUDA_CHOICES_STEP_PRODUCTS_H

#include "runtime/nn/cuda/choices/multiply.h"
#include "runtime/nn/step.h"

/* The gradient of the product itself, which backward turns an activation's into. */
struct weft_nn_operand weft_cuda_product_gradient(const struct weft_nn_walked *at);
/* y = x W^T, then the finish. */
struct weft_product weft_cuda_forward_product(const struct weft_nn_walked *at);
/* dx = dy W, with an old gradient or the slope of an activation. */
struct weft_product weft_cuda_input_product(const struct weft_nn_walked *at);
/* The gradient dy^T x of the weight. */
struct weft_product weft_cuda_weight_product(const struct weft_nn_walked *at);

/* Calls `add` for each product of a layer with a recipe that a library may compute, in order of the
 * steps: forward, by input, by weight, and by weight with a gradient in f32. Layers that cannot be
 * walked have none. */
typedef enum weft_status weft_cuda_add_key_fn(void *context, const struct weft_cuda_key *key,
                                              struct weft_error *err);
WEFT_MUST_USE enum weft_status weft_cuda_step_products(const struct weft_layer *layer,
                                                       const struct weft_batch *batch,
                                                       weft_cuda_add_key_fn *add, void *context,
                                                       struct weft_error *err);

#endif
