/* SPDX-License-Identifier: Apache-2.0 */
/* Qwen 3's block: Llama's, with RMS norms of each head of queries and keys. */
#include "layers/families/llama.h"

static const struct weft_recipe_step qwen3_block_steps[] = {
    WEFT_STEP_RMS_NORM("x", "norm1", "input_norm.weight"),
    WEFT_STEP_LLAMA_QKV("norm1"),
    {.op = &weft_op_norm,
     .in = {"qkv[0:q]"},
     .out = {"queries"},
     .kind = WEFT_WORD_RMS,
     .parts = "heads",
     .epsilon = "eps",
     .tensors = {"attn.q_norm.weight"}},
    {.op = &weft_op_norm,
     .in = {"qkv[q:k]"},
     .out = {"keys"},
     .kind = WEFT_WORD_RMS,
     .parts = "kv_heads",
     .epsilon = "eps",
     .tensors = {"attn.k_norm.weight"}},
    WEFT_STEP_LLAMA_ROPE("queries", "turned_queries"),
    WEFT_STEP_LLAMA_ROPE("keys", "turned_keys"),
    WEFT_STEPS_LLAMA_END("turned_queries", "turned_keys", "qkv[k:v]"),
};
static const struct weft_recipe qwen3_block_recipe = {
    WEFT_STEPS(qwen3_block_steps), .recomputes = true, .definitions = {WEFT_LLAMA_DEFINITIONS},
    .defaults = {WEFT_LLAMA_DEFAULTS}};

const struct weft_kind weft_kind_qwen3_block = {
    .type = "qwen3_block",
    .text = "Qwen 3 block: Llama's, with an RMS norm of each head of queries and keys",
    WEFT_KEYS(weft_llama_keys),
    WEFT_LLAMA(qwen3_block_recipe),
};
