/* SPDX-License-Identifier: Apache-2.0 */
/* Gemma 3's block: Gemma 2's, with norms of each head of queries and keys. */
#include "layers/families/gemma.h"

static const struct weft_field gemma3_block_keys[] = {WEFT_ROWS_GEMMA};

static const struct weft_recipe_step gemma3_block_steps[] = {
    WEFT_STEP_GEMMA_NORM("x", "norm1", "input_norm.weight"),
    WEFT_STEP_LLAMA_QKV("norm1"),
    WEFT_STEP_GEMMA_HEADS_NORM("qkv[0:q]", "queries", "heads", "attn.q_norm.weight"),
    WEFT_STEP_GEMMA_HEADS_NORM("qkv[q:k]", "keys", "kv_heads", "attn.k_norm.weight"),
    WEFT_STEP_LLAMA_ROPE("queries", "turned_queries"),
    WEFT_STEP_LLAMA_ROPE("keys", "turned_keys"),
    WEFT_STEPS_GEMMA_END("turned_queries", "turned_keys", "qkv[k:v]"),
};
static const struct weft_recipe gemma3_block_recipe = {
    WEFT_STEPS(gemma3_block_steps), .recomputes = true, .definitions = {WEFT_LLAMA_DEFINITIONS},
    .defaults = {WEFT_LLAMA_DEFAULTS}};

const struct weft_kind weft_kind_gemma3_block = {
    .type = "gemma3_block",
    .text = "Gemma 3 block: Gemma 2's, with a norm of each head of queries and keys",
    WEFT_KEYS(gemma3_block_keys),
    WEFT_LLAMA_FUNCTIONS(gemma3_block_recipe),
    .keeps = {"q, k, v, norms (rstd, output), attention (log of row sums, output), results of "
              "products, residual, gate, up, their product",
              [WEFT_RECOMPUTE_SELECTIVE] = "q, k, v, results of products, gate, up",
              [WEFT_RECOMPUTE_WHOLE] = "the layer's input alone"},
};
