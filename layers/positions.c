/* SPDX-License-Identifier: Apache-2.0 */
/* Kinds that add rows of a table: positions, with the class token of ViT, and token types. Every
 * token has type 0, so token_types adds the first row of its table to each row. */
#include "layers/recipe/recipe.h"
#include "layers/shared/keys.h"

enum { POSITIONS_ROWS, POSITIONS_CLASS_TOKEN };

static const struct weft_field positions_keys[] = {
    WEFT_ROW_HIDDEN,
    {"positions", WEFT_FIELD_INTEGER, WEFT_KEY_AT(POSITIONS_ROWS), NULL, 1, WEFT_INT32_MOST, NULL,
     NULL, "rows of the position table, at least seq_len"},
    {"class_token", WEFT_FIELD_BOOL, WEFT_KEY_AT(POSITIONS_CLASS_TOKEN), "null", 0, 0, NULL, NULL,
     "a learned row takes the place of each sample's first one, as in ViT"},
};

static const struct weft_recipe_step positions_steps[] = {
    {.op = &weft_op_add_rows,
     .in = {"x"},
     .out = {"y"},
     .positions = "positions",
     .first = "class_token",
     .tensors = {"table", "first"}},
};
static const struct weft_recipe positions_recipe = {
    WEFT_STEPS(positions_steps), .sizes = {{"hidden", "hidden"}, {"positions", "positions"}}};

const struct weft_kind weft_kind_positions = {
    .type = "positions",
    .text = "adds a learned row for each position",
    WEFT_KEYS(positions_keys),
    .trains = true,
    WEFT_RECIPE(positions_recipe),
};

static const struct weft_field token_types_keys[] = {
    WEFT_ROW_HIDDEN,
    {"types", WEFT_FIELD_INTEGER, WEFT_KEY_AT(POSITIONS_ROWS), NULL, 1, WEFT_INT32_MOST, NULL, NULL,
     "rows of the table of token types; every token has the first"},
};

static const struct weft_recipe_step token_types_steps[] = {
    {.op = &weft_op_add_rows, .in = {"x"}, .out = {"y"}, .vocab = "types", .tensors = {"table"}},
};
static const struct weft_recipe token_types_recipe = {
    WEFT_STEPS(token_types_steps), .sizes = {{"hidden", "hidden"}, {"types", "types"}}};

const struct weft_kind weft_kind_token_types = {
    .type = "token_types",
    .text = "adds the row of token type 0, as in BERT; other types are not read",
    WEFT_KEYS(token_types_keys),
    .trains = true,
    WEFT_RECIPE(token_types_recipe),
};
