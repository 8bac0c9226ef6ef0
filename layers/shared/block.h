/* What blocks of transformers share: their keys, and attention's part of what they need. Attention
 * keeps the log of each row's sum in fp32 instead of probabilities (Dao et al. 2022, section 3.2)
 * where it says nothing else; where the next layer's or an inner product's gradient needs an
 * operand, it is saved (as PyTorch's autograd does). */
#ifndef WEFT_LAYERS_SHARED_BLOCK_H
#define WEFT_LAYERS_SHARED_BLOCK_H

#include "layers/shared/keys.h"

enum {
    WEFT_BLOCK_HEADS,
    WEFT_BLOCK_FFN,
    WEFT_BLOCK_KV_HEADS, /* as many as heads where it is no key, or not given */
    WEFT_BLOCK_EXPERTS,
    WEFT_BLOCK_ACTIVE_EXPERTS
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
            "heads of keys and values; they divide heads, and are as many when left out"           \
    }

/* A kind's functions: outputs and kv_heads; whether heads divide what they must. */
void weft_block_complete(struct weft_layer *layer);
int32_t weft_block_check(const struct weft_layer *layer, struct weft_fault faults[WEFT_FAULTS]);
/* " hidden= heads= ffn=" */
void weft_block_add_sizes(const struct weft_layer *layer, struct weft_text *out);
/* " hidden= heads= kv_heads= ffn=" */
void weft_block_add_llama_sizes(const struct weft_layer *layer, struct weft_text *out);

/* GPT-2's tensors: 0 ln1.weight, 1 ln1.bias, 2 attn.qkv.weight [3h, h], 3 attn.qkv.bias,
 * 4 attn.proj.weight [h, h], 5 attn.proj.bias, 6 ln2.weight, 7 ln2.bias, 8 mlp.fc.weight [ffn, h],
 * 9 mlp.fc.bias, 10 mlp.proj.weight [h, ffn], 11 mlp.proj.bias. */
enum weft_status weft_block_shape(const struct weft_layer *layer, double residual_std,
                                  struct weft_layer_shape *out, struct weft_error *err);
/* Llama's, before the MLP or the experts: 0 input_norm, 1 q [h, h], 2 k [kv_heads * d, h], 3 v,
 * 4 o [h, h], 5 post_norm, with d = h / heads. */
void weft_block_add_attention(const struct weft_layer *layer, double residual_std,
                              struct weft_layer_shape *out);

/* Keys and values' width. */
int64_t weft_block_kv_width(const struct weft_layer *layer);
/* Elements of a row that attention and the norms around it save: norm, q, attention, residual,
 * norm; k, v. */
int64_t weft_block_saved_attention(struct weft_subject *subject);
/* Backward of a feed-forward part of `inner` elements a row, then of attention, in the same bytes;
 * beside them the gradients of two rows of the stream. */
int64_t weft_block_temporary_row(struct weft_subject *subject, int64_t inner);
/* Saved and temporary elements of every row, and fp32 numbers of every row. */
void weft_block_set_buffers(struct weft_subject *subject, int64_t saved, int64_t f32,
                            int64_t temporary, struct weft_layer_work *work);
/* Flops of products with `used` of the weights and of attention products. */
void weft_block_set_flops(struct weft_subject *subject, double used, double attention,
                          struct weft_layer_work *work);

#endif
