/* SPDX-License-Identifier: Apache-2.0 */
/* Gemma 2's block: Gemma's, with norms after attention and MLP too, and a cap of scores. */
#include "layers/families/gemma.h"

static const struct weft_field gemma2_block_keys[] = {WEFT_ROWS_GEMMA};

static const struct weft_recipe_step gemma2_block_steps[] = {
    WEFT_STEP_GEMMA_NORM("x", "norm1", "input_norm.weight"),
    WEFT_STEP_LLAMA_QKV("norm1"),
    WEFT_STEP_LLAMA_ROPE("qkv[0:k]", "turned"),
    WEFT_STEPS_GEMMA_END("turned[0:q]", "turned[q:k]", "turned[k:v]"),
};
static const struct weft_recipe gemma2_block_recipe = {
    WEFT_STEPS(gemma2_block_steps), .recomputes = true, .definitions = {WEFT_LLAMA_DEFINITIONS},
    .defaults = {WEFT_LLAMA_DEFAULTS}};

const struct weft_kind weft_kind_gemma2_block = {
    .type = "gemma2_block",
    .text = "Gemma 2 block: Gemma's, with norms after attention and MLP, and capped scores",
    WEFT_KEYS(gemma2_block_keys),
    WEFT_LLAMA_FUNCTIONS(gemma2_block_recipe),
    .keeps = {"q, k, v, norms (rstd, output), attention (log of row sums, output), results of "
              "products, residual, gate, up, their product",
              [WEFT_RECOMPUTE_SELECTIVE] = "q, k, v, results of products, gate, up",
              [WEFT_RECOMPUTE_WHOLE] = "the layer's input alone"},
};
