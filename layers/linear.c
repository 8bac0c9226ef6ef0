/* SPDX-License-Identifier: Apache-2.0 */
/* A matrix product. Tensors: 0 weight [outputs, hidden]; 1 bias if it has one. Backward reads the
 * input, unless the layer is frozen. */
#include "layers/recipe/recipe.h"
#include "layers/shared/keys.h"

static const struct weft_field linear_keys[] = {
    WEFT_ROW_HIDDEN,
    {"outputs", WEFT_FIELD_INTEGER, WEFT_LAYER_AT(outputs), NULL, 1, WEFT_WIDTH_MOST, NULL, NULL,
     "output width"},
    WEFT_ROW_BIAS,
};

static const struct weft_recipe_step linear_steps[] = {
    {.op = &weft_op_product,
     .in = {"x"},
     .out = {"y"},
     .columns = "outputs",
     .bias = "bias",
     .init = WEFT_WORD_FAN_IN,
     .tensors = {"weight", "bias"}},
};
static const struct weft_recipe linear_recipe = {
    WEFT_STEPS(linear_steps), .sizes = {{"inputs", "hidden"}, {"outputs", "outputs"}}};

const struct weft_kind weft_kind_linear = {
    .type = "linear",
    .text = "matrix product",
    WEFT_KEYS(linear_keys),
    .trains = true,
    .input = WEFT_READS_NUMBERS,
    .outputs_given = true,
    WEFT_RECIPE(linear_recipe),
};
