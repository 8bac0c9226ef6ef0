/* SPDX-License-Identifier: Apache-2.0 */
/* Products of a recipe's step, for all back ends. Without a gradient's address the product has NULL
 * there. */
#ifndef WEFT_RUNTIME_NN_STEP_PRODUCTS_H
#define WEFT_RUNTIME_NN_STEP_PRODUCTS_H

#include "runtime/nn/product.h"
#include "runtime/nn/step.h"

enum { WEFT_STEP_WEIGHT, WEFT_STEP_BIAS }; /* tensors of a product's step */

/* The gradient of the product itself, which backward turns an activation's into. A later product
 * may have turned it already. */
struct weft_nn_operand weft_nn_step_gradient(const struct weft_nn_walked *at);
/* True if weft_nn_step_gradient is the activation's, turned in this step. */
bool weft_nn_step_turns(const struct weft_nn_walked *at);

/* y = x W^T, then the finish. */
struct weft_product weft_nn_forward_product(const struct weft_nn_walked *at);
/* dx = scale dy W, with an old gradient or the slope of an activation. */
struct weft_product weft_nn_input_product(const struct weft_nn_walked *at);
/* The gradient of the weight, scale dy^T x. */
struct weft_product weft_nn_weight_product(const struct weft_nn_walked *at);

#endif
