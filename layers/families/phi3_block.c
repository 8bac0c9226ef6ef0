/* SPDX-License-Identifier: Apache-2.0 */
/* Phi-3's block: Llama's, without biases. Its files have queries, keys and values as one matrix,
 * and both halves of the MLP's first product too. */
#include "layers/families/llama.h"

static const struct weft_recipe_step phi3_block_steps[] = {
    WEFT_STEP_RMS_NORM("x", "norm1", "input_norm.weight"),
    WEFT_STEP_LLAMA_QKV("norm1"),
    WEFT_STEP_LLAMA_ROPE("qkv[0:k]", "turned"),
    WEFT_STEPS_LLAMA_END("turned[0:q]", "turned[q:k]", "turned[k:v]"),
};
static const struct weft_recipe phi3_block_recipe = {
    WEFT_STEPS(phi3_block_steps), .recomputes = true, .definitions = {WEFT_LLAMA_DEFINITIONS},
    .defaults = {WEFT_LLAMA_DEFAULTS}};

const struct weft_kind weft_kind_phi3_block = {
    .type = "phi3_block",
    .text = "Phi-3 block: Llama's, with fused matrices in its files",
    WEFT_KEYS(weft_llama_keys),
    WEFT_LLAMA(phi3_block_recipe),
};
