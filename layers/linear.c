/* SPDX-License-Identifier: Apache-2.0 */
/* A matrix product. Tensors: 0 weight [outputs, hidden]; 1 bias if it has one. Backward reads the
 * input, unless the layer is frozen. */
#include <stdio.h>

#include "layers/recipe/recipe.h"
#include "layers/shared/keys.h"

enum { LINEAR_PATCH };

static const struct weft_field linear_keys[] = {
    WEFT_ROW_HIDDEN,
    {"outputs", WEFT_FIELD_INTEGER, WEFT_LAYER_AT(outputs), NULL, 1, WEFT_WIDTH_MOST, NULL, NULL,
     "output width"},
    WEFT_ROW_BIAS,
    {"patch", WEFT_FIELD_INTEGER, WEFT_KEY_AT(LINEAR_PATCH), "null", 0, 4096, NULL, NULL,
     "each input row is a square patch of an image with so many pixels a side: all pixels of a "
     "channel, row by row, then the next channel's. No number depends on it. Files of Hugging "
     "Face's ViT need it"},
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

static int32_t check_patch(const struct weft_layer *layer, struct weft_fault faults[WEFT_FAULTS])
{
    const long long hidden = layer->hidden, patch = layer->keys[LINEAR_PATCH].integer;
    if (patch < 1 || hidden % (patch * patch) == 0) return 0;
    faults[0].key = "patch";
    snprintf(faults[0].text, sizeof faults[0].text,
             "hidden %lld is not a multiple of the %lld pixels of a patch; every channel of a "
             "patch has so many numbers",
             hidden, patch * patch);
    return 1;
}

const struct weft_kind weft_kind_linear = {
    .type = "linear",
    .text = "matrix product",
    WEFT_KEYS(linear_keys),
    .trains = true,
    .input = WEFT_READS_NUMBERS,
    .outputs_given = true,
    .check = check_patch,
    WEFT_RECIPE(linear_recipe),
};
