/* SPDX-License-Identifier: Apache-2.0 */
/* Products of a layer that a library may compute, for choices of algorithms. */
#ifndef WEFT_RUNTIME_NN_CUDA_CHOICES_STEP_PRODUCTS_H
#define WEFT_RUNTIME_NN_CUDA_CHOICES_STEP_PRODUCTS_H

#include "runtime/nn/cuda/choices/multiply.h"
#include "runtime/nn/step_products.h"

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
