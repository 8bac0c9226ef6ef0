/* SPDX-License-Identifier: Apache-2.0 */
/* Shared parts of the families after Llama: their keys, and the steps that they have in common. */
#ifndef WEFT_LAYERS_FAMILIES_LLAMA_H
#define WEFT_LAYERS_FAMILIES_LLAMA_H

#include "layers/recipe/recipe.h"
#include "layers/shared/block.h"
#include "layers/shared/rope.h"

/* clang-format off */
#define WEFT_ROW_EPS                                                                               \
    {"eps", WEFT_FIELD_NUMBER, WEFT_KEY_AT(WEFT_BLOCK_EPS), "1e-05", 0, 1, NULL, NULL,             \
     "added to the variance in layer norms, and to the mean of squares in RMS norms"}

/* Keys of attention, rotary positions and norms. */
#define WEFT_ROWS_LLAMA                                                                            \
    WEFT_ROW_HIDDEN, WEFT_ROW_HEADS, WEFT_ROW_FFN, WEFT_ROW_KV_HEADS,                              \
    {"head_dim", WEFT_FIELD_INTEGER, WEFT_KEY_AT(WEFT_BLOCK_HEAD_DIM), "null", 2,                  \
     WEFT_ROPE_MOST_SIZE, NULL, NULL,                                                              \
     "columns of a head, an even number; left out: hidden / heads"},                               \
    {"rope_base", WEFT_FIELD_NUMBER, WEFT_KEY_AT(WEFT_BLOCK_ROPE_BASE), "10000", 1, 1e12, NULL,    \
     NULL, "base of the wavelengths of rotary positions"},                                         \
    {"rope_factor", WEFT_FIELD_NUMBER, WEFT_KEY_AT(WEFT_BLOCK_ROPE_FACTOR), "0", 0, 1e6, NULL,     \
     NULL, "Llama 3's scaling: long waves turn so many times slower, at least 1; 0: no scaling"},  \
    {"rope_low", WEFT_FIELD_NUMBER, WEFT_KEY_AT(WEFT_BLOCK_ROPE_LOW), "1", 0, 1e6, NULL, NULL,     \
     "waves longer than rope_original / rope_low are scaled; above 0"},                            \
    {"rope_high", WEFT_FIELD_NUMBER, WEFT_KEY_AT(WEFT_BLOCK_ROPE_HIGH), "4", 0, 1e6, NULL, NULL,   \
     "waves shorter than rope_original / rope_high are not scaled; above rope_low"},               \
    {"rope_original", WEFT_FIELD_INTEGER, WEFT_KEY_AT(WEFT_BLOCK_ROPE_ORIGINAL), "8192", 0,        \
     WEFT_INT32_MOST, NULL, NULL, "sequence length before scaling"},                               \
    {"window", WEFT_FIELD_INTEGER, WEFT_KEY_AT(WEFT_BLOCK_WINDOW), "0", 0, WEFT_INT32_MOST, NULL,  \
     NULL, "tokens that attention sees at most, its own and earlier ones; 0: all"},         \
    WEFT_ROW_EPS
/* clang-format on */

/* The table of these keys, for kinds without others. */
enum { WEFT_LLAMA_KEYS = 12 };
extern const struct weft_field weft_llama_keys[WEFT_LLAMA_KEYS];

/* Ends of queries, keys and values in the columns of qkv. */
#define WEFT_LLAMA_DEFINITIONS                                                                     \
    {"q", "heads*head_dim"}, {"k", "q + kv_heads*head_dim"},                                       \
    {                                                                                              \
        "v", "k + kv_heads*head_dim"                                                               \
    }

#define WEFT_LLAMA_DEFAULTS                                                                        \
    {"kv_heads", "heads"},                                                                         \
    {                                                                                              \
        "head_dim", "hidden/heads"                                                                 \
    }

#define WEFT_STEP_RMS_NORM(input, output, weight)                                                  \
    {                                                                                              \
        .op = &weft_op_norm, .in = {input}, .out = {output}, .kind = WEFT_WORD_RMS,                \
        .epsilon = "eps", .tensors = {                                                             \
            weight                                                                                 \
        }                                                                                          \
    }
#define WEFT_STEP_LLAMA_ROPE(input, output)                                                        \
    {                                                                                              \
        .op = &weft_op_rope, .in = {input}, .out = {output}, .head_dim = "head_dim",               \
        .base = "rope_base", .factor = "rope_factor", .low = "rope_low", .high = "rope_high",      \
        .original = "rope_original"                                                                \
    }
/* clang-format off */
/* Queries, keys and values of the input, without biases. */
#define WEFT_STEP_LLAMA_QKV(input)                                                                 \
    {.op = &weft_op_product,                                                                       \
     .in = {input},                                                                                \
     .out = {"qkv"},                                                                               \
     .columns = "v",                                                                               \
     .tensors = {"attn.qkv.weight"},                                                               \
     .from = "attn.q:q attn.k:k attn.v:v"}
/* Causal attention within the window; by and most: expressions of scalar and cap, or NULL. */
#define WEFT_STEP_ATTEND(queries, keys, values, by, most)                                          \
    {.op = &weft_op_attend,                                                                        \
     .in = {queries, keys, values},                                                                \
     .out = {"attention"},                                                                         \
     .causal = "1",                                                                                \
     .heads = "heads",                                                                             \
     .kv_heads = "kv_heads",                                                                       \
     .head_dim = "head_dim",                                                                       \
     .save = WEFT_WORD_LOG_SUMS,                                                                   \
     .window = "window",                                                                           \
     .scalar = by,                                                                                 \
     .cap = most}
#define WEFT_STEP_LLAMA_ATTEND(queries, keys, values)                                              \
    WEFT_STEP_ATTEND(queries, keys, values, NULL, NULL)
#define WEFT_STEPS_GATE(input, word)                                                               \
    {.op = &weft_op_product,                                                                       \
     .in = {input},                                                                                \
     .out = {"gate_up"},                                                                           \
     .columns = "2*ffn",                                                                           \
     .tensors = {"mlp.gate_up.weight"},                                                            \
     .from = "mlp.gate:ffn mlp.up:2*ffn"},                                                         \
    {.op = &weft_op_gate,                                                                          \
     .in = {"gate_up[0:ffn]", "gate_up[ffn:2*ffn]"},                                               \
     .out = {"inner"},                                                                             \
     .kind = word}
#define WEFT_STEPS_LLAMA_GATE(input) WEFT_STEPS_GATE(input, WEFT_WORD_SILU)
/* From attention to the output of the block. */
#define WEFT_STEPS_LLAMA_END(queries, keys, values)                                                \
    WEFT_STEP_LLAMA_ATTEND(queries, keys, values),                                                 \
    {.op = &weft_op_product,                                                                       \
     .in = {"attention"},                                                                          \
     .out = {"residual"},                                                                          \
     .columns = "hidden",                                                                          \
     .add = "x",                                                                                   \
     .init = WEFT_WORD_RESIDUAL,                                                                   \
     .tensors = {"attn.o.weight"}},                                                                \
    WEFT_STEP_RMS_NORM("residual", "norm2", "post_norm.weight"),                                   \
    WEFT_STEPS_LLAMA_GATE("norm2"),                                                                \
    {.op = &weft_op_product,                                                                       \
     .in = {"inner"},                                                                              \
     .out = {"y"},                                                                                 \
     .columns = "hidden",                                                                          \
     .add = "residual",                                                                            \
     .init = WEFT_WORD_RESIDUAL,                                                                   \
     .tensors = {"mlp.down.weight"}}
/* clang-format on */

/* Functions of the kinds, and with saved activations by level. */
#define WEFT_LLAMA_FUNCTIONS(table)                                                                \
    .recipe = &(table), .shape = weft_recipe_shape, .needs = weft_recipe_needs,                    \
    .parts = weft_recipe_parts, .closes_residual = true, .trains = true,                           \
    .complete = weft_recipe_complete, .check = weft_llama_check,                                   \
    .add_sizes = weft_llama_add_sizes, .name_kept = weft_recipe_name_kept
#define WEFT_LLAMA(table)                                                                          \
    WEFT_LLAMA_FUNCTIONS(table),                                                                   \
        .keeps = {"norms (rstd, output), q, k, v, attention (log of row sums, output), residual, " \
                  "gate, up, "                                                                     \
                  "their product",                                                                 \
                  [WEFT_RECOMPUTE_SELECTIVE] = "q, k, v, residual, gate, up",                      \
                  [WEFT_RECOMPUTE_WHOLE] = "the layer's input alone"}
int32_t weft_llama_check(const struct weft_layer *layer, struct weft_fault faults[WEFT_FAULTS]);
/* Appends " hidden= heads= kv_heads= ffn=", " head_dim=" if it is not hidden / heads, " window=" if
 * there is one, " capped" with a cap of scores, and " qkv_bias" with biases. Time depends on no
 * other key. */
void weft_llama_add_sizes(const struct weft_layer *layer, struct weft_text *out);

#endif
