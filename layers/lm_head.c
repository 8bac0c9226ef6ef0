/* SPDX-License-Identifier: Apache-2.0 */
/* Product to the vocabulary with cross-entropy. Tensors: 0 weight [vocab, hidden], or the
 * embedding's tokens if tied; 1 bias. Backward reads the input, unless the layer is frozen. */
#include "layers/recipe/recipe.h"
#include "layers/shared/keys.h"

enum { WEFT_HEAD_LOGIT_CAP };

static const struct weft_field lm_head_keys[] = {
    WEFT_ROW_VOCAB,
    WEFT_ROW_HIDDEN,
    WEFT_ROW_BIAS,
    WEFT_ROW_TIE,
    {"logit_cap", WEFT_FIELD_NUMBER, WEFT_KEY_AT(WEFT_HEAD_LOGIT_CAP), "0", 0, 1e9, NULL, NULL,
     "logits x become cap tanh(x / cap); 0: none"},
};

static void lm_head_complete(struct weft_layer *layer)
{
    layer->outputs = layer->vocab;
}

static const struct weft_recipe_step lm_head_steps[] = {
    {.op = &weft_op_product,
     .in = {"x"},
     .out = {"logits"},
     .columns = "vocab",
     .bias = "bias",
     .tensors = {"weight", "bias"}},
    {.op = &weft_op_loss, .in = {"logits"}, .out = {"d_logits"}, .cap = "logit_cap"},
};
static const struct weft_recipe lm_head_recipe = {
    WEFT_STEPS(lm_head_steps), .sizes = {{"vocab", "vocab"}, {"hidden", "hidden"}}};

const struct weft_kind weft_kind_lm_head = {
    .type = "lm_head",
    .text = "product onto the vocabulary with cross-entropy, a loss for each token",
    WEFT_KEYS(lm_head_keys),
    .trains = true,
    .loss = WEFT_LOSS_OF_ROWS,
    .ties = &weft_kind_embedding,
    .complete = lm_head_complete,
    WEFT_RECIPE(lm_head_recipe),
};
