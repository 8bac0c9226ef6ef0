#include "layers/shared/layout.h"

#include "base/checked.h"
#include "layers/shared/block.h"

/* Hands out parts one after another. `bytes` becomes -1 on overflow and stays -1. */
struct cursor {
    int64_t bytes;
};

enum { F32_BYTES = 4 };

/* a * b as the rows or columns of a part, or -1 on overflow, which `add_part` refuses. */
static int64_t checked_product(int64_t a, int64_t b)
{
    int64_t out;
    return weft_checked_mul(a, b, &out) ? out : -1;
}

/* Bytes of rows x columns elements of `size` bytes, or -1 on overflow. */
static int64_t bytes_of(int64_t rows, int64_t columns, int64_t size)
{
    return checked_product(checked_product(rows, columns), size);
}

/* Offset of a part of rows x columns elements of `size` bytes. */
static int64_t add_part(struct cursor *cursor, int64_t rows, int64_t columns, int64_t size)
{
    int64_t offset = cursor->bytes, length = bytes_of(rows, columns, size);
    if (offset < 0) return -1;
    if (!weft_checked_round_up(length, WEFT_LAYOUT_ALIGN_BYTES, &length) ||
        !weft_checked_add(offset, length, &cursor->bytes)) {
        cursor->bytes = -1;
        return -1;
    }
    return offset;
}

/* Elements between rows of logits. */
static int64_t gap_of_logits(int64_t classes, enum weft_dtype dtype)
{
    const int64_t unit = WEFT_LAYOUT_ROW_BYTES / weft_dtype_bytes(dtype);
    return (unit - classes % unit) % unit;
}

/* a + b as the columns of a part, or -1 on overflow. */
static int64_t checked_sum(int64_t a, int64_t b)
{
    int64_t out;
    return weft_checked_add(a, b, &out) ? out : -1;
}

static int64_t rows_of(const struct weft_batch *batch)
{
    return checked_product(batch->samples, batch->seq_len);
}

/* Steps of a block's backward, by the forward's part that they undo. A step reads the gradient of
 * its output, and writes that of its input. LN1 also reads the residual's gradient. */
enum { AT_GELU, AT_FC, AT_LN2, AT_PROJECTION, AT_ATTENTION, AT_QKV, AT_LN1 };
enum { D_FC, D_LN2, D_RESIDUAL, D_ATTENTION, D_QKV, D_LN1, GRADIENTS };

struct weft_transformer_block_layout weft_layout_transformer_block(const struct weft_layer *layer,
                                                                   const struct weft_batch *batch,
                                                                   enum weft_recompute level)
{
    int64_t size = weft_dtype_bytes(batch->compute), rows = rows_of(batch), s = batch->seq_len;
    int64_t h = layer->hidden, h3 = checked_product(3, h),
            f = weft_block_key(layer, WEFT_BLOCK_FFN);
    int64_t widest = h3 < 0 || h3 > f ? h3 : f;
    int64_t heads = checked_product(batch->samples, weft_block_key(layer, WEFT_BLOCK_HEADS));
    struct weft_transformer_block_layout out;

    /* Results of products with weights, and all other parts. A GPU's product may compute GELU with
     * other bits than GELU alone, so both are kept or dropped together there. */
    struct cursor kept = {0}, dropped = {0};
    struct cursor *products = level == WEFT_RECOMPUTE_WHOLE ? &dropped : &kept;
    struct cursor *others = level == WEFT_RECOMPUTE_NONE ? &kept : &dropped;
    out.saved.ln1_mean = add_part(others, rows, 1, F32_BYTES);
    out.saved.ln1_rstd = add_part(others, rows, 1, F32_BYTES);
    out.saved.ln1_out = add_part(others, rows, h, size);
    out.saved.qkv = add_part(products, rows, h3, size);
    const bool statistics = weft_block_saves_statistics(layer, batch);
    out.saved.probabilities = add_part(others, checked_product(heads, s), statistics ? 1 : s,
                                       statistics ? F32_BYTES : size);
    out.saved.attention = add_part(others, rows, h, size);
    out.saved.residual = add_part(products, rows, h, size);
    out.saved.ln2_mean = add_part(others, rows, 1, F32_BYTES);
    out.saved.ln2_rstd = add_part(others, rows, 1, F32_BYTES);
    out.saved.ln2_out = add_part(others, rows, h, size);
    out.saved.fc = add_part(products, rows, f, size);
    out.saved.gelu = add_part(batch->on_gpu ? products : others, rows, f, size);
    out.saved.bytes = kept.bytes;
    out.saved.dropped_bytes = dropped.bytes;

    const int64_t row_bytes = bytes_of(rows, h, size);
    struct weft_part gradients[] = {
        [D_FC] = {bytes_of(rows, f, size), AT_GELU, AT_FC, 0},
        [D_LN2] = {row_bytes, AT_FC, AT_LN2, 0},
        [D_RESIDUAL] = {row_bytes, AT_LN2, AT_LN1, 0},
        [D_ATTENTION] = {row_bytes, AT_PROJECTION, AT_ATTENTION, 0},
        [D_QKV] = {bytes_of(rows, h3, size), AT_ATTENTION, AT_QKV, 0},
        [D_LN1] = {row_bytes, AT_QKV, AT_LN1, 0},
    };
    struct cursor backward = {weft_place_parts(gradients, GRADIENTS)};
    out.backward.d_fc = gradients[D_FC].offset;
    out.backward.d_qkv = gradients[D_QKV].offset;
    out.backward.d_ln2 = gradients[D_LN2].offset;
    out.backward.d_attention = gradients[D_ATTENTION].offset;
    out.backward.d_ln1 = gradients[D_LN1].offset;
    out.backward.d_residual = gradients[D_RESIDUAL].offset;
    out.backward.d_scores = add_part(&backward, s, s, size);
    out.backward.sums = add_part(&backward, 1, widest, F32_BYTES);
    out.backward.bytes = backward.bytes;
    return out;
}

struct weft_layer_norm_layout weft_layout_layer_norm(const struct weft_layer *layer,
                                                     const struct weft_batch *batch)
{
    struct weft_layer_norm_layout out;
    struct cursor saved = {0}, backward = {0};
    out.saved.mean = add_part(&saved, rows_of(batch), 1, F32_BYTES);
    out.saved.rstd = add_part(&saved, rows_of(batch), 1, F32_BYTES);
    out.saved.bytes = saved.bytes;
    out.backward.sums = add_part(&backward, 2, layer->hidden, F32_BYTES);
    out.backward.bytes = backward.bytes;
    return out;
}

struct weft_linear_layout weft_layout_linear(const struct weft_layer *layer,
                                             const struct weft_batch *batch)
{
    (void)batch;
    struct weft_linear_layout out;
    struct cursor backward = {0};
    out.backward.sums = add_part(&backward, layer->bias ? 1 : 0, layer->outputs, F32_BYTES);
    out.backward.bytes = backward.bytes;
    return out;
}

struct weft_lm_head_layout weft_layout_lm_head(const struct weft_layer *layer,
                                               const struct weft_batch *batch)
{
    struct weft_lm_head_layout out;
    struct cursor saved = {0}, backward = {0};
    out.gap = gap_of_logits(layer->vocab, batch->compute);
    out.saved.d_logits = add_part(&saved, rows_of(batch), checked_sum(layer->vocab, out.gap),
                                  weft_dtype_bytes(batch->compute));
    out.saved.bytes = saved.bytes;
    out.backward.sums = add_part(&backward, layer->bias ? 1 : 0, layer->vocab, F32_BYTES);
    out.backward.bytes = backward.bytes;
    return out;
}

struct weft_classifier_layout weft_layout_classifier(const struct weft_layer *layer,
                                                     const struct weft_batch *batch)
{
    int64_t size = weft_dtype_bytes(batch->compute);
    struct weft_classifier_layout out;
    struct cursor saved = {0}, backward = {0};
    out.gap = gap_of_logits(layer->outputs, batch->compute);
    out.saved.pooled = add_part(&saved, batch->samples, layer->hidden, size);
    out.saved.d_logits =
        add_part(&saved, batch->samples, checked_sum(layer->outputs, out.gap), size);
    out.saved.bytes = saved.bytes;
    out.backward.d_pooled = add_part(&backward, batch->samples, layer->hidden, size);
    out.backward.sums = add_part(&backward, layer->bias ? 1 : 0, layer->outputs, F32_BYTES);
    out.backward.bytes = backward.bytes;
    return out;
}
