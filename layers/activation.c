/* SPDX-License-Identifier: Apache-2.0 */
/* relu and gelu, without parameters. ReLU's derivative follows from its output, which the next
 * layer often saves anyway. GELU's derivative needs its input. */
#include "layers/recipe/recipe.h"
#include "layers/shared/keys.h"

static const struct weft_field activation_keys[] = {WEFT_ROW_HIDDEN};

static const struct weft_recipe_step relu_steps[] = {
    {.op = &weft_op_activate, .in = {"x"}, .out = {"y"}, .kind = WEFT_WORD_RELU},
};
static const struct weft_recipe relu_recipe = {WEFT_STEPS(relu_steps)};

const struct weft_kind weft_kind_relu = {
    .type = "relu",
    .text = "max(x, 0)",
    WEFT_KEYS(activation_keys),
    .trains = true,
    WEFT_RECIPE(relu_recipe),
};

static const struct weft_recipe_step gelu_steps[] = {
    {.op = &weft_op_activate, .in = {"x"}, .out = {"y"}, .kind = WEFT_WORD_GELU},
};
static const struct weft_recipe gelu_recipe = {WEFT_STEPS(gelu_steps)};

const struct weft_kind weft_kind_gelu = {
    .type = "gelu",
    .text = "GELU, tanh form",
    WEFT_KEYS(activation_keys),
    .trains = true,
    WEFT_RECIPE(gelu_recipe),
};
