/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/embedding.h"

#include "layers/recipe/recipe.h"
#include "layers/shared/keys.h"

static const struct weft_field embedding_keys[] = {
    WEFT_ROW_VOCAB,
    WEFT_ROW_HIDDEN,
    {"positions", WEFT_FIELD_INTEGER, WEFT_KEY_AT(WEFT_EMBEDDING_POSITIONS), "0", 0,
     WEFT_INT32_MOST, NULL, NULL, "rows of the position table, at least seq_len; 0: no table"},
    {"scale", WEFT_FIELD_NUMBER, WEFT_KEY_AT(WEFT_EMBEDDING_SCALE), "0", 0, 1e9, NULL, NULL,
     "multiplies rows of the token table; 0: they stay as they are"},
};

static const struct weft_recipe_step embedding_steps[] = {
    {.op = &weft_op_embed,
     .in = {"x"},
     .out = {"y"},
     .columns = "hidden",
     .vocab = "vocab",
     .positions = "positions",
     .scale = "scale",
     .tensors = {"tokens", "positions"}},
};
static const struct weft_recipe embedding_recipe = {
    WEFT_STEPS(embedding_steps),
    .sizes = {{"vocab", "vocab"}, {"positions", "positions"}, {"hidden", "hidden"}}};

const struct weft_kind weft_kind_embedding = {
    .type = "embedding",
    .text = "token table, and position table when `positions` is not 0",
    WEFT_KEYS(embedding_keys),
    .trains = true,
    .input = WEFT_READS_TOKENS,
    WEFT_RECIPE(embedding_recipe),
};
