/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/shared/block.h"

#include <stdio.h>

/* Widest head of attention on tensor cores, and elements of one copy. */
enum { MOST_HEAD = 128, HEAD_UNIT = 8 };

void weft_block_complete(struct weft_layer *layer)
{
    union weft_key *keys = layer->keys;
    layer->outputs = layer->hidden;
    if (keys[WEFT_BLOCK_KV_HEADS].integer == 0)
        keys[WEFT_BLOCK_KV_HEADS].integer = keys[WEFT_BLOCK_HEADS].integer;
}

int32_t weft_block_check(const struct weft_layer *layer, struct weft_fault faults[WEFT_FAULTS])
{
    long long hidden = layer->hidden, heads = weft_block_key(layer, WEFT_BLOCK_HEADS);
    long long kv_heads = weft_block_key(layer, WEFT_BLOCK_KV_HEADS);
    int32_t n = 0;
    if (heads < 1 || hidden < 1 || kv_heads < 1) return 0;
    if (hidden % heads != 0) {
        faults[n].key = "heads";
        snprintf(faults[n++].text, sizeof faults[0].text,
                 "hidden %lld is not a multiple of heads %lld; every head needs the same whole "
                 "number of columns",
                 hidden, heads);
    }
    if (kv_heads > heads) {
        faults[n].key = "kv_heads";
        snprintf(faults[n++].text, sizeof faults[0].text,
                 "kv_heads is %lld; it must be from 1 to %lld", kv_heads, heads);
    } else if (heads % kv_heads != 0) {
        faults[n].key = "kv_heads";
        snprintf(faults[n++].text, sizeof faults[0].text,
                 "heads %lld is not a multiple of kv_heads %lld", heads, kv_heads);
    }
    return n;
}

void weft_block_add_sizes(const struct weft_layer *layer, struct weft_text *out)
{
    weft_text_addf(out, " hidden=%lld heads=%lld ffn=%lld", (long long)layer->hidden,
                   (long long)weft_block_key(layer, WEFT_BLOCK_HEADS),
                   (long long)weft_block_key(layer, WEFT_BLOCK_FFN));
}

void weft_block_add_shared_sizes(const struct weft_layer *layer, struct weft_text *out)
{
    weft_text_addf(out, " hidden=%lld heads=%lld kv_heads=%lld ffn=%lld", (long long)layer->hidden,
                   (long long)weft_block_key(layer, WEFT_BLOCK_HEADS),
                   (long long)weft_block_key(layer, WEFT_BLOCK_KV_HEADS),
                   (long long)weft_block_key(layer, WEFT_BLOCK_FFN));
}

enum weft_status weft_block_shape(const struct weft_layer *layer, double residual_std,
                                  struct weft_layer_shape *out, struct weft_error *err)
{
    (void)err;
    int64_t h = layer->hidden, f = weft_block_key(layer, WEFT_BLOCK_FFN), h3 = weft_size(3, h);
    weft_add_vector(out, "ln1.weight", h, WEFT_INIT_ONE);
    weft_add_vector(out, "ln1.bias", h, WEFT_INIT_ZERO);
    weft_add_matrix(out, "attn.qkv.weight", h3, h, WEFT_INIT_STD);
    weft_add_vector(out, "attn.qkv.bias", h3, WEFT_INIT_ZERO);
    weft_add_matrix(out, "attn.proj.weight", h, h, residual_std);
    weft_add_vector(out, "attn.proj.bias", h, WEFT_INIT_ZERO);
    weft_add_vector(out, "ln2.weight", h, WEFT_INIT_ONE);
    weft_add_vector(out, "ln2.bias", h, WEFT_INIT_ZERO);
    weft_add_matrix(out, "mlp.fc.weight", f, h, WEFT_INIT_STD);
    weft_add_vector(out, "mlp.fc.bias", f, WEFT_INIT_ZERO);
    weft_add_matrix(out, "mlp.proj.weight", h, f, residual_std);
    weft_add_vector(out, "mlp.proj.bias", h, WEFT_INIT_ZERO);
    return WEFT_OK;
}

void weft_block_add_attention(const struct weft_layer *layer, double residual_std,
                              struct weft_layer_shape *out)
{
    int64_t h = layer->hidden, kv = weft_block_kv_width(layer);
    weft_add_vector(out, "input_norm.weight", h, WEFT_INIT_ONE);
    weft_add_matrix(out, "attn.q.weight", h, h, WEFT_INIT_STD);
    weft_add_matrix(out, "attn.k.weight", kv, h, WEFT_INIT_STD);
    weft_add_matrix(out, "attn.v.weight", kv, h, WEFT_INIT_STD);
    weft_add_matrix(out, "attn.o.weight", h, h, residual_std);
    weft_add_vector(out, "post_norm.weight", h, WEFT_INIT_ONE);
}

bool weft_heads_use_tensor_cores(const struct weft_batch *batch, int64_t head_dim)
{
    return batch->compute != WEFT_F32 && batch->seq_len > 1 && head_dim > 0 &&
           head_dim <= MOST_HEAD && head_dim % HEAD_UNIT == 0;
}

static int64_t head_dim_of(const struct weft_layer *layer)
{
    const int64_t heads = weft_block_key(layer, WEFT_BLOCK_HEADS);
    return heads > 0 ? layer->hidden / heads : 0;
}

bool weft_block_uses_tensor_cores(const struct weft_layer *layer, const struct weft_batch *batch)
{
    return weft_heads_use_tensor_cores(batch, head_dim_of(layer));
}

bool weft_block_saves_statistics(const struct weft_layer *layer, const struct weft_batch *batch)
{
    return batch->on_gpu && !batch->plain && weft_block_uses_tensor_cores(layer, batch);
}

int64_t weft_block_kv_width(const struct weft_layer *layer)
{
    return layer->hidden / weft_block_key(layer, WEFT_BLOCK_HEADS) *
           weft_block_key(layer, WEFT_BLOCK_KV_HEADS);
}

int64_t weft_block_saved_attention(struct weft_subject *subject)
{
    struct weft_sizes *sizes = &subject->sizes;
    return weft_plus(sizes, weft_times(sizes, 5, subject->layer->hidden),
                     weft_times(sizes, 2, weft_block_kv_width(subject->layer)));
}

int64_t weft_block_temporary_row(struct weft_subject *subject, int64_t inner)
{
    struct weft_sizes *sizes = &subject->sizes;
    int64_t h = subject->layer->hidden;
    int64_t qkv = weft_plus(sizes, h, weft_times(sizes, 2, weft_block_kv_width(subject->layer)));
    return weft_plus(sizes, inner > qkv ? inner : qkv, weft_times(sizes, 2, h));
}

void weft_block_set_buffers(struct weft_subject *subject, int64_t saved, int64_t f32,
                            int64_t temporary, struct weft_layer_work *work)
{
    struct weft_sizes *sizes = &subject->sizes;
    int64_t saved_row_bytes = weft_plus(sizes, weft_times(sizes, saved, subject->element_bytes),
                                        weft_times(sizes, f32, (int64_t)sizeof(float)));
    work->saved_bytes = weft_times(sizes, subject->rows, saved_row_bytes);
    work->backward_temporary_bytes =
        weft_times(sizes, subject->rows, weft_times(sizes, temporary, subject->element_bytes));
    work->backward_reads_input = true; /* the first norm reads it */
}

void weft_block_set_flops(struct weft_subject *subject, double used, double attention,
                          struct weft_layer_work *work)
{
    work->forward_flops = 2 * subject->t * used + attention;
    work->backward_flops = subject->backward_products * 2 * subject->t * used + 2 * attention;
}

int64_t weft_block_products(struct weft_subject *subject)
{
    struct weft_sizes *sizes = &subject->sizes;
    return weft_plus(sizes, weft_times(sizes, 2, subject->layer->hidden),
                     weft_times(sizes, 2, weft_block_kv_width(subject->layer)));
}

void weft_block_set_splits(struct weft_subject *subject, int64_t products, double last,
                           double attention, struct weft_layer_work *work)
{
    struct weft_sizes *sizes = &subject->sizes;
    const int64_t kept =
        weft_times(sizes, subject->rows, weft_times(sizes, products, subject->element_bytes));
    work->splits[WEFT_RECOMPUTE_SELECTIVE] = (struct weft_layer_split){
        true, kept, kept < 0 ? -1 : work->saved_bytes - kept, attention, 0};
    work->splits[WEFT_RECOMPUTE_WHOLE] = (struct weft_layer_split){
        true, 0, work->saved_bytes, work->forward_flops - 2 * subject->t * last, 0};
}
