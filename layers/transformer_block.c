/* SPDX-License-Identifier: Apache-2.0 */
/* GPT-2's block: pre-norm, causal attention, tanh GELU. Backward reads the input. */
#include "layers/recipe/recipe.h"
#include "layers/shared/block.h"

static const struct weft_field transformer_block_keys[] = {WEFT_ROW_HIDDEN, WEFT_ROW_HEADS,
                                                           WEFT_ROW_FFN, WEFT_ROW_LAYER_EPS};

static const struct weft_recipe_step transformer_block_steps[] = {
    {.op = &weft_op_norm,
     .in = {"x"},
     .out = {"ln1"},
     .kind = WEFT_WORD_LAYER,
     .epsilon = "eps",
     .tensors = {"ln1.weight", "ln1.bias"}},
    {.op = &weft_op_product,
     .in = {"ln1"},
     .out = {"qkv"},
     .columns = "3*hidden",
     .bias = "1",
     .tensors = {"attn.qkv.weight", "attn.qkv.bias"}},
    {.op = &weft_op_attend,
     .in = {"qkv[0:hidden]", "qkv[hidden:2*hidden]", "qkv[2*hidden:3*hidden]"},
     .out = {"attention"},
     .causal = "1",
     .heads = "heads",
     .kv_heads = "heads",
     .head_dim = "hidden/heads"},
    {.op = &weft_op_product,
     .in = {"attention"},
     .out = {"residual"},
     .columns = "hidden",
     .bias = "1",
     .add = "x",
     .init = WEFT_WORD_RESIDUAL,
     .tensors = {"attn.proj.weight", "attn.proj.bias"}},
    {.op = &weft_op_norm,
     .in = {"residual"},
     .out = {"ln2"},
     .kind = WEFT_WORD_LAYER,
     .epsilon = "eps",
     .tensors = {"ln2.weight", "ln2.bias"}},
    {.op = &weft_op_product,
     .in = {"ln2"},
     .out = {"fc", "gelu"},
     .columns = "ffn",
     .bias = "1",
     .then = WEFT_WORD_GELU,
     .tensors = {"mlp.fc.weight", "mlp.fc.bias"}},
    {.op = &weft_op_product,
     .in = {"gelu"},
     .out = {"y"},
     .columns = "hidden",
     .bias = "1",
     .add = "residual",
     .init = WEFT_WORD_RESIDUAL,
     .tensors = {"mlp.proj.weight", "mlp.proj.bias"}},
};
static const struct weft_recipe transformer_block_recipe = {
    WEFT_STEPS(transformer_block_steps), .recomputes = true,
    .sizes = {{"hidden", "hidden"}, {"heads", "heads"}, {"ffn", "ffn"}}};

const struct weft_kind weft_kind_transformer_block = {
    .type = "transformer_block",
    .text = "GPT-2 block: pre-norm, causal attention, GELU",
    WEFT_KEYS(transformer_block_keys),
    .trains = true,
    .closes_residual = true,
    .complete = weft_block_complete,
    .check = weft_block_check,
    WEFT_RECIPE(transformer_block_recipe),
    .keeps = {"ln1 (mean, rstd, output), q, k, v, attention (probabilities or statistics, output), "
              "residual, ln2 (mean, rstd, output), fc, GELU",
              [WEFT_RECOMPUTE_SELECTIVE] = "q, k, v, residual, fc (on a GPU GELU too)",
              [WEFT_RECOMPUTE_WHOLE] = "the layer's input alone"},
};
