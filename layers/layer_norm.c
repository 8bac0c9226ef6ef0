/* SPDX-License-Identifier: Apache-2.0 */
/* Layer normalisation: 0 weight, 1 bias. Backward reads the input. */
#include "layers/recipe/recipe.h"
#include "layers/shared/block.h"

static const struct weft_field layer_norm_keys[] = {WEFT_ROW_HIDDEN, WEFT_ROW_LAYER_EPS};

static const struct weft_recipe_step layer_norm_steps[] = {
    {.op = &weft_op_norm,
     .in = {"x"},
     .out = {"y"},
     .kind = WEFT_WORD_LAYER,
     .epsilon = "eps",
     .tensors = {"weight", "bias"}},
};
static const struct weft_recipe layer_norm_recipe = {WEFT_STEPS(layer_norm_steps),
                                                     .sizes = {{"hidden", "hidden"}}};

const struct weft_kind weft_kind_layer_norm = {
    .type = "layer_norm",
    .text = "layer normalisation with weight and bias",
    WEFT_KEYS(layer_norm_keys),
    .trains = true,
    WEFT_RECIPE(layer_norm_recipe),
};
