/* SPDX-License-Identifier: Apache-2.0 */
/* Shared parts of transformer blocks: their keys, and the needs of attention. Unless a kind states
 * otherwise, attention saves the log of each row's sum in fp32 and no probabilities (Dao et al.
 * 2022, section 3.2). Other operands of gradients are saved, as in PyTorch's autograd. */
#ifndef WEFT_LAYERS_SHARED_BLOCK_H
#define WEFT_LAYERS_SHARED_BLOCK_H

#include "layers/shared/keys.h"

enum {
    WEFT_BLOCK_HEADS,
    WEFT_BLOCK_FFN,
    WEFT_BLOCK_KV_HEADS, /* equals heads if the kind has no such key, or if it is left out */
    WEFT_BLOCK_EXPERTS,
    WEFT_BLOCK_ACTIVE_EXPERTS,
    WEFT_BLOCK_QKV_BIAS, /* a flag */
    WEFT_BLOCK_HEAD_DIM, /* equals hidden / heads if it is left out */
    WEFT_BLOCK_WINDOW,   /* 0: none */
    WEFT_BLOCK_EPS,      /* a number, as those of rope but the last */
    WEFT_BLOCK_ROPE_BASE,
    WEFT_BLOCK_ROPE_FACTOR,
    WEFT_BLOCK_ROPE_LOW,
    WEFT_BLOCK_ROPE_HIGH,
    WEFT_BLOCK_ROPE_ORIGINAL,
    WEFT_BLOCK_QUERY_SCALAR,                   /* a number; 0: head_dim */
    WEFT_BLOCK_ATTENTION_CAP,                  /* a number; 0: none */
    WEFT_BLOCK_POST_NORM = WEFT_BLOCK_QKV_BIAS /* a flag, of kinds without a bias of qkv */
};

static inline int64_t weft_block_key(const struct weft_layer *layer, int key)
{
    return layer->keys[key].integer;
}

#define WEFT_ROW_HEADS                                                                             \
    {                                                                                              \
        "heads", WEFT_FIELD_INTEGER, WEFT_KEY_AT(WEFT_BLOCK_HEADS), NULL, 1, WEFT_WIDTH_MOST,      \
            NULL, NULL, "attention heads; they divide hidden"                                      \
    }
#define WEFT_ROW_FFN                                                                               \
    {                                                                                              \
        "ffn", WEFT_FIELD_INTEGER, WEFT_KEY_AT(WEFT_BLOCK_FFN), NULL, 1, WEFT_INT32_MOST, NULL,    \
            NULL, "width between the two products of the feed-forward part"                        \
    }
#define WEFT_ROW_KV_HEADS                                                                          \
    {                                                                                              \
        "kv_heads", WEFT_FIELD_INTEGER, WEFT_KEY_AT(WEFT_BLOCK_KV_HEADS), "null", 1,               \
            WEFT_WIDTH_MOST, NULL, NULL,                                                           \
            "heads of keys and values; they divide heads; left out: equal to heads"                \
    }

/* clang-format off */
#define WEFT_ROW_LAYER_EPS                                                                         \
    {"eps", WEFT_FIELD_NUMBER, WEFT_KEY_AT(WEFT_BLOCK_EPS), "null", 0, 1, NULL, NULL,              \
     "added to the variance in layer norms, and to the mean of squares in RMS norms; " \
     "left out: 1e-05"}
/* clang-format on */

/* Functions of a kind. `complete` sets outputs and kv_heads. `check` reports heads that do not
 * divide hidden, or kv_heads that do not divide heads. It returns the number of faults. */
void weft_block_complete(struct weft_layer *layer);
int32_t weft_block_check(const struct weft_layer *layer, struct weft_fault faults[WEFT_FAULTS]);
/* Appends " hidden= heads= ffn=". */
void weft_block_add_sizes(const struct weft_layer *layer, struct weft_text *out);
/* Appends " hidden= heads= kv_heads= ffn=". */
void weft_block_add_shared_sizes(const struct weft_layer *layer, struct weft_text *out);

/* GPT-2's tensors: 0 ln1.weight, 1 ln1.bias, 2 attn.qkv.weight [3h, h], 3 attn.qkv.bias,
 * 4 attn.proj.weight [h, h], 5 attn.proj.bias, 6 ln2.weight, 7 ln2.bias, 8 mlp.fc.weight [ffn, h],
 * 9 mlp.fc.bias, 10 mlp.proj.weight [h, ffn], 11 mlp.proj.bias. */
enum weft_status weft_block_shape(const struct weft_layer *layer, double residual_std,
                                  struct weft_layer_shape *out, struct weft_error *err);
/* Adds Llama's tensors up to the MLP or the experts: 0 input_norm, 1 q [h, h], 2 k [kv_heads * d,
 * h], 3 v, 4 o [h, h], 5 post_norm, with d = h / heads. */
void weft_block_add_attention(const struct weft_layer *layer, double residual_std,
                              struct weft_layer_shape *out);

/* True if a GPU's tensor cores compute attention, unless products are plain: it has 16 bits,
 * several rows, and heads of a width that they can load. */
bool weft_heads_use_tensor_cores(const struct weft_batch *batch, int64_t head_dim);
/* The same of a transformer_block. */
bool weft_block_uses_tensor_cores(const struct weft_layer *layer, const struct weft_batch *batch);
/* True if its attention saves its rows' statistics, for which the plan reserves memory. Otherwise
 * it saves probabilities. */
bool weft_block_saves_statistics(const struct weft_layer *layer, const struct weft_batch *batch);

/* Width of keys, and of values. */
int64_t weft_block_kv_width(const struct weft_layer *layer);
/* Saved elements of a row, for attention and the norms around it: norm, q, attention, residual,
 * norm, k, v. */
int64_t weft_block_saved_attention(struct weft_subject *subject);
/* Temporary elements of a row in backward. The feed-forward part, of `inner` elements, runs before
 * attention and shares its bytes. Two more rows hold gradients of the residual stream. */
int64_t weft_block_temporary_row(struct weft_subject *subject, int64_t inner);
/* Sets the sizes of buffers from the saved and temporary elements and the saved fp32 numbers of a
 * row. */
void weft_block_set_buffers(struct weft_subject *subject, int64_t saved, int64_t f32,
                            int64_t temporary, struct weft_layer_work *work);
/* Sets the levels of recomputation, after the buffers and flops. Selective keeps `products`
 * elements of a row, results of products with weights, and restores attention, norms and
 * elementwise parts. Whole repeats the forward without `last`, the weights of its last product. */
void weft_block_set_splits(struct weft_subject *subject, int64_t products, double last,
                           double attention, struct weft_layer_work *work);
/* Elements of a row that products of the attention part write: q, k, v and the residual. */
int64_t weft_block_products(struct weft_subject *subject);
/* Sets the flops of products with `used` weights and of attention's products. */
void weft_block_set_flops(struct weft_subject *subject, double used, double attention,
                          struct weft_layer_work *work);

#endif
