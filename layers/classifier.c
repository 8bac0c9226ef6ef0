/* SPDX-License-Identifier: Apache-2.0 */
/* Takes the mean over the sequence, then a product to the classes, then cross-entropy. Tensors: 0
 * weight [classes, hidden]; 1 bias. Backward needs only saved activations. */
#include "layers/recipe/recipe.h"
#include "layers/shared/keys.h"

static const struct weft_field classifier_keys[] = {
    {"classes", WEFT_FIELD_INTEGER, WEFT_LAYER_AT(outputs), NULL, 2, WEFT_WIDTH_MOST, NULL, NULL,
     "number of classes"},
    WEFT_ROW_HIDDEN,
    WEFT_ROW_BIAS,
};

static const struct weft_recipe_step classifier_steps[] = {
    {.op = &weft_op_mean_rows, .in = {"x"}, .out = {"pooled"}},
    {.op = &weft_op_product,
     .in = {"pooled"},
     .out = {"logits"},
     .columns = "classes",
     .bias = "bias",
     .tensors = {"weight", "bias"}},
    {.op = &weft_op_loss, .in = {"logits"}, .out = {"d_logits"}},
};
static const struct weft_recipe classifier_recipe = {
    WEFT_STEPS(classifier_steps), .sizes = {{"hidden", "hidden"}, {"classes", "classes"}}};

const struct weft_kind weft_kind_classifier = {
    .type = "classifier",
    .text = "mean over the sequence, product onto the classes, cross-entropy",
    WEFT_KEYS(classifier_keys),
    .trains = true,
    .loss = WEFT_LOSS_OF_SAMPLES,
    .outputs_given = true,
    WEFT_RECIPE(classifier_recipe),
};
