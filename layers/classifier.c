/* SPDX-License-Identifier: Apache-2.0 */
/* Takes the mean over the sequence or its first row, then a product to the classes, then
 * cross-entropy. Tensors: weight [classes, hidden] and bias; before them those of the pooler, a
 * product with tanh. Backward needs only saved activations. */
#include "layers/recipe/recipe.h"
#include "layers/shared/keys.h"

enum { CLASSIFIER_FIRST, CLASSIFIER_POOLER };

static const struct weft_field classifier_keys[] = {
    {"classes", WEFT_FIELD_INTEGER, WEFT_LAYER_AT(outputs), NULL, 2, WEFT_WIDTH_MOST, NULL, NULL,
     "number of classes"},
    WEFT_ROW_HIDDEN,
    WEFT_ROW_BIAS,
    {"first", WEFT_FIELD_BOOL, WEFT_KEY_AT(CLASSIFIER_FIRST), "null", 0, 0, NULL, NULL,
     "the first row of a sample is classified; false: the mean of its rows"},
    {"pooler", WEFT_FIELD_BOOL, WEFT_KEY_AT(CLASSIFIER_POOLER), "null", 0, 0, NULL, NULL,
     "a product with tanh comes before the classes, as in BERT"},
};

static const struct weft_recipe_step classifier_steps[] = {
    {.op = &weft_op_mean_rows, .in = {"x"}, .out = {"pooled"}, .when = "first == 0"},
    {.op = &weft_op_first_rows, .in = {"x"}, .out = {"pooled"}, .when = "first"},
    {.op = &weft_op_product,
     .in = {"pooled"},
     .out = {"dense"},
     .when = "pooler",
     .columns = "hidden",
     .bias = "1",
     .tensors = {"pooler.weight", "pooler.bias"}},
    {.op = &weft_op_activate,
     .in = {"dense"},
     .out = {"turned"},
     .when = "pooler",
     .kind = WEFT_WORD_TANH},
    {.op = &weft_op_product,
     .in = {"pooled"},
     .out = {"logits"},
     .when = "pooler == 0",
     .columns = "classes",
     .bias = "bias",
     .tensors = {"weight", "bias"}},
    {.op = &weft_op_product,
     .in = {"turned"},
     .out = {"logits"},
     .when = "pooler",
     .columns = "classes",
     .bias = "bias",
     .tensors = {"weight", "bias"}},
    {.op = &weft_op_loss, .in = {"logits"}, .out = {"d_logits"}},
};
static const struct weft_recipe classifier_recipe = {
    WEFT_STEPS(classifier_steps), .sizes = {{"hidden", "hidden"}, {"classes", "classes"}}};

static void add_sizes(const struct weft_layer *layer, struct weft_text *out)
{
    weft_recipe_add_sizes(layer, out);
    if (layer->keys[CLASSIFIER_FIRST].flag) weft_text_add(out, " first");
    if (layer->keys[CLASSIFIER_POOLER].flag) weft_text_add(out, " pooler");
}

const struct weft_kind weft_kind_classifier = {
    .type = "classifier",
    .text = "mean over the sequence or its first row, product onto the classes, cross-entropy",
    WEFT_KEYS(classifier_keys),
    .trains = true,
    .loss = WEFT_LOSS_OF_SAMPLES,
    .outputs_given = true,
    .recipe = &classifier_recipe,
    .shape = weft_recipe_shape,
    .needs = weft_recipe_needs,
    .parts = weft_recipe_parts,
    .name_kept = weft_recipe_name_kept,
    .add_sizes = add_sizes,
};
