/* SPDX-License-Identifier: Apache-2.0 */
/* OLMo 2's block: norms after attention and MLP, before the sums, and of whole queries and keys.
 * Otherwise it is Llama's. */
#include "layers/families/llama.h"

static const struct weft_recipe_step olmo2_block_steps[] = {
    WEFT_STEP_LLAMA_QKV("x"),
    WEFT_STEP_RMS_NORM("qkv[0:q]", "queries", "attn.q_norm.weight"),
    WEFT_STEP_RMS_NORM("qkv[q:k]", "keys", "attn.k_norm.weight"),
    WEFT_STEP_LLAMA_ROPE("queries", "turned_queries"),
    WEFT_STEP_LLAMA_ROPE("keys", "turned_keys"),
    WEFT_STEP_LLAMA_ATTEND("turned_queries", "turned_keys", "qkv[k:v]"),
    {.op = &weft_op_product,
     .in = {"attention"},
     .out = {"attended"},
     .columns = "hidden",
     .init = WEFT_WORD_RESIDUAL,
     .tensors = {"attn.o.weight"}},
    WEFT_STEP_RMS_NORM("attended", "norm1", "post_norm.weight"),
    {.op = &weft_op_add, .in = {"norm1", "x"}, .out = {"residual"}},
    WEFT_STEPS_LLAMA_GATE("residual"),
    {.op = &weft_op_product,
     .in = {"inner"},
     .out = {"down"},
     .columns = "hidden",
     .init = WEFT_WORD_RESIDUAL,
     .tensors = {"mlp.down.weight"}},
    WEFT_STEP_RMS_NORM("down", "norm2", "post_mlp_norm.weight"),
    {.op = &weft_op_add, .in = {"norm2", "residual"}, .out = {"y"}},
};
static const struct weft_recipe olmo2_block_recipe = {
    WEFT_STEPS(olmo2_block_steps), .recomputes = true, .definitions = {WEFT_LLAMA_DEFINITIONS},
    .defaults = {WEFT_LLAMA_DEFAULTS}};

const struct weft_kind weft_kind_olmo2_block = {
    .type = "olmo2_block",
    .text = "OLMo 2 block: Llama's, with norms of queries and keys, and after attention and MLP",
    WEFT_KEYS(weft_llama_keys),
    WEFT_LLAMA_FUNCTIONS(olmo2_block_recipe),
    .keeps = {"q, k, v, norms (rstd), attention (log of row sums, output), results of products, "
              "residual, gate, up, their product",
              [WEFT_RECOMPUTE_SELECTIVE] = "q, k, v, results of products, gate, up",
              [WEFT_RECOMPUTE_WHOLE] = "the layer's input alone"},
};
