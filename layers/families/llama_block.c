/* SPDX-License-Identifier: Apache-2.0 */
/* Llama's block: RMS norms, rotary positions, keys and values that heads share, a gated MLP. With
 * qkv_bias it is Qwen 2's, with a window Mistral's. */
#include "layers/families/llama.h"

static const struct weft_field llama_block_keys[] = {
    WEFT_ROWS_LLAMA,
    {"qkv_bias", WEFT_FIELD_BOOL, WEFT_KEY_AT(WEFT_BLOCK_QKV_BIAS), "false", 0, 0, NULL, NULL,
     "queries, keys and values have biases, as in Qwen2"},
};

static const struct weft_recipe_step llama_block_steps[] = {
    WEFT_STEP_RMS_NORM("x", "norm1", "input_norm.weight"),
    {.op = &weft_op_product,
     .in = {"norm1"},
     .out = {"qkv"},
     .columns = "v",
     .bias = "qkv_bias",
     .tensors = {"attn.qkv.weight", "attn.qkv.bias"},
     .from = "attn.q:q attn.k:k attn.v:v"},
    WEFT_STEP_LLAMA_ROPE("qkv[0:k]", "turned"),
    WEFT_STEPS_LLAMA_END("turned[0:q]", "turned[q:k]", "turned[k:v]"),
};
static const struct weft_recipe llama_block_recipe = {
    WEFT_STEPS(llama_block_steps), .recomputes = true, .definitions = {WEFT_LLAMA_DEFINITIONS},
    .defaults = {WEFT_LLAMA_DEFAULTS}};

const struct weft_kind weft_kind_llama_block = {
    .type = "llama_block",
    .text = "Llama block: RMS norms, rotary positions, shared keys and values, gated MLP",
    WEFT_KEYS(llama_block_keys),
    WEFT_LLAMA(llama_block_recipe),
};
