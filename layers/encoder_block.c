/* SPDX-License-Identifier: Apache-2.0 */
/* A block of BERT or ViT. It differs from transformer_block in two ways: every token attends to all
 * tokens, so attention costs twice as much, and no probabilities are saved. Planning only. */
#include "layers/shared/block.h"

static const struct weft_field encoder_block_keys[] = {WEFT_ROW_HIDDEN, WEFT_ROW_HEADS,
                                                       WEFT_ROW_FFN};

static enum weft_status encoder_block_needs(struct weft_subject *subject,
                                            struct weft_layer_work *work, struct weft_error *err)
{
    (void)err;
    const struct weft_layer *layer = subject->layer;
    struct weft_sizes *sizes = &subject->sizes;
    int64_t f = weft_block_key(layer, WEFT_BLOCK_FFN);
    double h = subject->h, weights = 4 * h * h + 2 * h * (double)f;
    /* before and after GELU; mean and rstd of two norms, and the logs of row sums */
    weft_block_set_buffers(
        subject, weft_plus(sizes, weft_block_saved_attention(subject), weft_times(sizes, 2, f)),
        weft_plus(sizes, 4, weft_block_key(layer, WEFT_BLOCK_HEADS)),
        weft_block_temporary_row(subject, f), work);
    const double attention = 4 * subject->t * subject->s * h;
    weft_block_set_flops(subject, weights, attention, work);
    weft_block_set_splits(subject,
                          weft_plus(sizes, weft_block_products(subject),
                                    weft_times(sizes, subject->batch->on_gpu ? 2 : 1, f)),
                          h * (double)f, attention, work);
    subject->weights = weights;
    return WEFT_OK;
}

const struct weft_kind weft_kind_encoder_block = {
    .type = "encoder_block",
    .text = "block of BERT or ViT: attention over the whole sequence, GELU (planning only)",
    WEFT_KEYS(encoder_block_keys),
    .closes_residual = true,
    .complete = weft_block_complete,
    .check = weft_block_check,
    .shape = weft_block_shape,
    .needs = encoder_block_needs,
    .keeps = {"both norms (mean, rstd, output), q, k, v, attention (log of row sums, output), "
              "residual, fc, GELU",
              [WEFT_RECOMPUTE_SELECTIVE] = "q, k, v, residual, fc",
              [WEFT_RECOMPUTE_WHOLE] = "the layer's input alone"},
    .add_sizes = weft_block_add_sizes,
};
