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

enum { GELU_ERF };

static const struct weft_field gelu_keys[] = {
    WEFT_ROW_HIDDEN,
    {"erf", WEFT_FIELD_BOOL, WEFT_KEY_AT(GELU_ERF), "null", 0, 0, NULL, NULL,
     "GELU with the error function, as in BERT; false: the tanh form"},
};

static const struct weft_recipe_step gelu_steps[] = {
    {.op = &weft_op_activate,
     .in = {"x"},
     .out = {"y"},
     .when = "erf == 0",
     .kind = WEFT_WORD_GELU},
    {.op = &weft_op_activate, .in = {"x"}, .out = {"y"}, .when = "erf", .kind = WEFT_WORD_GELU_ERF},
};
static const struct weft_recipe gelu_recipe = {WEFT_STEPS(gelu_steps),
                                               .sizes = {{"hidden", "hidden"}}};

static void gelu_add_sizes(const struct weft_layer *layer, struct weft_text *out)
{
    weft_recipe_add_sizes(layer, out);
    if (layer->keys[GELU_ERF].flag) weft_text_add(out, " erf");
}

const struct weft_kind weft_kind_gelu = {
    .type = "gelu",
    .text = "GELU, in its tanh form or with the error function",
    WEFT_KEYS(gelu_keys),
    .trains = true,
    .recipe = &gelu_recipe,
    .shape = weft_recipe_shape,
    .needs = weft_recipe_needs,
    .parts = weft_recipe_parts,
    .name_kept = weft_recipe_name_kept,
    .add_sizes = gelu_add_sizes,
};
