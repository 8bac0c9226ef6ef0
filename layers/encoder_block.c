/* SPDX-License-Identifier: Apache-2.0 */
/* A block of BERT or ViT: every token attends to all tokens of its sample, and GELU has the error
 * function. Norms come before attention and MLP as in ViT, or with `post_norm` after the sums as in
 * BERT. No probabilities are saved. */
#include "layers/recipe/recipe.h"
#include "layers/shared/block.h"

static const struct weft_field encoder_block_keys[] = {
    WEFT_ROW_HIDDEN,
    WEFT_ROW_HEADS,
    WEFT_ROW_FFN,
    {"post_norm", WEFT_FIELD_BOOL, WEFT_KEY_AT(WEFT_BLOCK_POST_NORM), "null", 0, 0, NULL, NULL,
     "norms follow the sums of attention and MLP, as in BERT; false: they come first"},
    WEFT_ROW_LAYER_EPS,
};

/* clang-format off */
#define PRE  "post_norm == 0"
#define POST "post_norm"
#define NORM(order, input, output, name)                                                           \
    {.op = &weft_op_norm, .in = {input}, .out = {output}, .when = order, .kind = WEFT_WORD_LAYER,  \
     .epsilon = "eps", .tensors = {name ".weight", name ".bias"}}
#define PRODUCT(order, input, output, width, name)                                                 \
    .op = &weft_op_product, .in = {input}, .out = {output}, .when = order, .columns = width,       \
    .bias = "1", .tensors = {name ".weight", name ".bias"}

static const struct weft_recipe_step encoder_block_steps[] = {
    NORM(PRE, "x", "ln1", "ln1"),
    {PRODUCT(PRE, "ln1", "qkv", "3*hidden", "attn.qkv"),
     .from = "attn.q:hidden attn.k:2*hidden attn.v:3*hidden"},
    {PRODUCT(POST, "x", "qkv", "3*hidden", "attn.qkv"),
     .from = "attn.q:hidden attn.k:2*hidden attn.v:3*hidden"},
    {.op = &weft_op_attend,
     .in = {"qkv[0:hidden]", "qkv[hidden:2*hidden]", "qkv[2*hidden:3*hidden]"},
     .out = {"attention"},
     .heads = "heads",
     .kv_heads = "heads",
     .head_dim = "hidden/heads",
     .save = WEFT_WORD_LOG_SUMS},
    {PRODUCT(NULL, "attention", "residual", "hidden", "attn.proj"), .add = "x",
     .init = WEFT_WORD_RESIDUAL},
    NORM(PRE, "residual", "ln2", "ln2"),
    NORM(POST, "residual", "ln1", "ln1"),
    {PRODUCT(PRE, "ln2", "fc", "ffn", "mlp.fc")},
    {PRODUCT(POST, "ln1", "fc", "ffn", "mlp.fc")},
    {.op = &weft_op_activate, .in = {"fc"}, .out = {"gelu"}, .kind = WEFT_WORD_GELU_ERF},
    {PRODUCT(PRE, "gelu", "y", "hidden", "mlp.proj"), .add = "residual",
     .init = WEFT_WORD_RESIDUAL},
    {PRODUCT(POST, "gelu", "sum", "hidden", "mlp.proj"), .add = "ln1", .init = WEFT_WORD_RESIDUAL},
    NORM(POST, "sum", "y", "ln2"),
};
/* clang-format on */
static const struct weft_recipe encoder_block_recipe = {WEFT_STEPS(encoder_block_steps),
                                                        .recomputes = true};

static void add_sizes(const struct weft_layer *layer, struct weft_text *out)
{
    weft_block_add_sizes(layer, out);
    if (layer->keys[WEFT_BLOCK_POST_NORM].flag) weft_text_add(out, " post_norm");
}

const struct weft_kind weft_kind_encoder_block = {
    .type = "encoder_block",
    .text = "block of BERT or ViT: attention over the whole sequence, GELU with the error function",
    WEFT_KEYS(encoder_block_keys),
    .trains = true,
    .closes_residual = true,
    .complete = weft_block_complete,
    .check = weft_block_check,
    .recipe = &encoder_block_recipe,
    .shape = weft_recipe_shape,
    .needs = weft_recipe_needs,
    .parts = weft_recipe_parts,
    .name_kept = weft_recipe_name_kept,
    .keeps = {"both norms (mean, rstd, output), q, k, v, attention (log of row sums, output), "
              "residual, fc, GELU",
              [WEFT_RECOMPUTE_SELECTIVE] = "q, k, v, residual, fc",
              [WEFT_RECOMPUTE_WHOLE] = "the layer's input alone"},
    .add_sizes = add_sizes,
};
