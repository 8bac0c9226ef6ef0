/* Llama's block: RMS norms, shared keys and values, a gated MLP. Tensors: those of attention
 * (shared/block.h), 6 gate [ffn, h], 7 up [ffn, h], 8 down [h, ffn], and Qwen2's biases: 9 q [h],
 * 10 k [kv_heads * d], 11 v. Planning only. */
#include "layers/shared/block.h"

static const struct weft_field llama_block_keys[] = {
    WEFT_ROW_HIDDEN,
    WEFT_ROW_HEADS,
    WEFT_ROW_FFN,
    WEFT_ROW_KV_HEADS,
    {"qkv_bias", WEFT_FIELD_BOOL, WEFT_KEY_AT(WEFT_BLOCK_QKV_BIAS), "false", 0, 0, NULL, NULL,
     "queries, keys and values have biases, as in Qwen2"},
};

static enum weft_status llama_block_shape(const struct weft_layer *layer, double residual_std,
                                          struct weft_layer_shape *out, struct weft_error *err)
{
    (void)err;
    int64_t h = layer->hidden, f = weft_block_key(layer, WEFT_BLOCK_FFN);
    weft_block_add_attention(layer, residual_std, out);
    weft_add_matrix(out, "mlp.gate.weight", f, h, WEFT_INIT_STD);
    weft_add_matrix(out, "mlp.up.weight", f, h, WEFT_INIT_STD);
    weft_add_matrix(out, "mlp.down.weight", h, f, residual_std);
    if (!layer->keys[WEFT_BLOCK_QKV_BIAS].flag) return WEFT_OK;
    weft_add_vector(out, "attn.q.bias", h, WEFT_INIT_ZERO);
    weft_add_vector(out, "attn.k.bias", weft_block_kv_width(layer), WEFT_INIT_ZERO);
    weft_add_vector(out, "attn.v.bias", weft_block_kv_width(layer), WEFT_INIT_ZERO);
    return WEFT_OK;
}

static enum weft_status llama_block_needs(struct weft_subject *subject,
                                          struct weft_layer_work *work, struct weft_error *err)
{
    (void)err;
    const struct weft_layer *layer = subject->layer;
    struct weft_sizes *sizes = &subject->sizes;
    int64_t f = weft_block_key(layer, WEFT_BLOCK_FFN);
    double h = subject->h, kv = (double)weft_block_kv_width(layer);
    double weights = h * (2 * h + 2 * kv + 3 * (double)f);
    double biases = layer->keys[WEFT_BLOCK_QKV_BIAS].flag ? h + 2 * kv : 0;
    /* gate, up, and their product; rstd of two norms, and the logs of row sums */
    weft_block_set_buffers(
        subject, weft_plus(sizes, weft_block_saved_attention(subject), weft_times(sizes, 3, f)),
        weft_plus(sizes, 2, weft_block_key(layer, WEFT_BLOCK_HEADS)),
        weft_block_temporary_row(subject, weft_times(sizes, 2, f)), work);
    const double attention = 2 * subject->t * subject->s * h;
    weft_block_set_flops(subject, weights, attention, work);
    weft_block_set_splits(subject,
                          weft_plus(sizes, weft_block_products(subject), weft_times(sizes, 2, f)),
                          h * (double)f, attention, work);
    subject->weights = weights + biases;
    return WEFT_OK;
}

const struct weft_kind weft_kind_llama_block = {
    .type = "llama_block",
    .text = "Llama block (planning only)",
    WEFT_KEYS(llama_block_keys),
    .closes_residual = true,
    .complete = weft_block_complete,
    .check = weft_block_check,
    .shape = llama_block_shape,
    .needs = llama_block_needs,
    .keeps = {"both norms (rstd, output), q, k, v, attention (log of row sums, output), residual, "
              "gate, up, their product",
              "q, k, v, residual, gate, up", "the layer's input alone"},
    .add_sizes = weft_block_add_llama_sizes,
};
