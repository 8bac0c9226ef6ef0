/* SPDX-License-Identifier: Apache-2.0 */
/* Shared parts of Gemma's kinds: norms that multiply by 1 + weight, GELU gates, and attention with
 * a scalar and a cap. */
#ifndef WEFT_LAYERS_FAMILIES_GEMMA_H
#define WEFT_LAYERS_FAMILIES_GEMMA_H

#include "layers/families/llama.h"

/* clang-format off */
#define WEFT_ROWS_GEMMA                                                                            \
    WEFT_ROWS_LLAMA,                                                                               \
    {"query_scalar", WEFT_FIELD_NUMBER, WEFT_KEY_AT(WEFT_BLOCK_QUERY_SCALAR), "0", 0, 1e9, NULL,   \
     NULL, "attention divides scores by its root; 0: head_dim"},                                   \
    {"attention_cap", WEFT_FIELD_NUMBER, WEFT_KEY_AT(WEFT_BLOCK_ATTENTION_CAP), "0", 0, 1e9,       \
     NULL, NULL, "scores x become cap tanh(x / cap); 0: none"}

#define WEFT_STEP_GEMMA_NORM(input, output, weight)                                                \
    {.op = &weft_op_norm, .in = {input}, .out = {output}, .kind = WEFT_WORD_RMS,                   \
     .epsilon = "eps", .shift = "1", .tensors = {weight}}
#define WEFT_STEP_GEMMA_HEADS_NORM(input, output, n_heads, weight)                                 \
    {.op = &weft_op_norm, .in = {input}, .out = {output}, .kind = WEFT_WORD_RMS,                   \
     .parts = n_heads, .epsilon = "eps", .shift = "1", .tensors = {weight}}
/* From attention to the output of a block with norms before and after both parts. */
#define WEFT_STEPS_GEMMA_END(queries, keys, values)                                                \
    WEFT_STEP_ATTEND(queries, keys, values, "query_scalar", "attention_cap"),                      \
    {.op = &weft_op_product,                                                                       \
     .in = {"attention"},                                                                          \
     .out = {"attended"},                                                                          \
     .columns = "hidden",                                                                          \
     .init = WEFT_WORD_RESIDUAL,                                                                   \
     .tensors = {"attn.o.weight"}},                                                                \
    WEFT_STEP_GEMMA_NORM("attended", "norm2", "post_norm.weight"),                                 \
    {.op = &weft_op_add, .in = {"norm2", "x"}, .out = {"residual"}},                               \
    WEFT_STEP_GEMMA_NORM("residual", "norm3", "pre_mlp_norm.weight"),                              \
    WEFT_STEPS_GATE("norm3", WEFT_WORD_GELU),                                                      \
    {.op = &weft_op_product,                                                                       \
     .in = {"inner"},                                                                              \
     .out = {"down"},                                                                              \
     .columns = "hidden",                                                                          \
     .init = WEFT_WORD_RESIDUAL,                                                                   \
     .tensors = {"mlp.down.weight"}},                                                              \
    WEFT_STEP_GEMMA_NORM("down", "norm4", "post_mlp_norm.weight"),                                 \
    {.op = &weft_op_add, .in = {"norm4", "residual"}, .out = {"y"}}
/* clang-format on */

#endif
