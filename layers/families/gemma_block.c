/* SPDX-License-Identifier: Apache-2.0 */
/* Gemma's block: Llama's, with norms that multiply by 1 + weight and a GELU gate. */
#include "layers/families/gemma.h"

static const struct weft_recipe_step gemma_block_steps[] = {
    WEFT_STEP_GEMMA_NORM("x", "norm1", "input_norm.weight"),
    WEFT_STEP_LLAMA_QKV("norm1"),
    WEFT_STEP_LLAMA_ROPE("qkv[0:k]", "turned"),
    WEFT_STEP_LLAMA_ATTEND("turned[0:q]", "turned[q:k]", "turned[k:v]"),
    {.op = &weft_op_product,
     .in = {"attention"},
     .out = {"residual"},
     .columns = "hidden",
     .add = "x",
     .init = WEFT_WORD_RESIDUAL,
     .tensors = {"attn.o.weight"}},
    WEFT_STEP_GEMMA_NORM("residual", "norm2", "post_norm.weight"),
    WEFT_STEPS_GATE("norm2", WEFT_WORD_GELU),
    {.op = &weft_op_product,
     .in = {"inner"},
     .out = {"y"},
     .columns = "hidden",
     .add = "residual",
     .init = WEFT_WORD_RESIDUAL,
     .tensors = {"mlp.down.weight"}},
};
static const struct weft_recipe gemma_block_recipe = {
    WEFT_STEPS(gemma_block_steps), .recomputes = true, .definitions = {WEFT_LLAMA_DEFINITIONS},
    .defaults = {WEFT_LLAMA_DEFAULTS}};

const struct weft_kind weft_kind_gemma_block = {
    .type = "gemma_block",
    .text = "Gemma block: Llama's, with norms of 1 + weight and a GELU gate",
    WEFT_KEYS(weft_llama_keys),
    WEFT_LLAMA(gemma_block_recipe),
};
