#include "layers/shared/scratch.h"

#include "layers/shared/block.h"

/* Equal to those of runtime/nn/cuda: rows of a stripe, and the scale's place. */
enum { STRIPE_ROWS = 128, SCALE_BYTES = 64 };

static int64_t larger_of(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

int64_t weft_scratch_columns(struct weft_subject *subject, int64_t rows, int64_t width)
{
    const int64_t stripes = rows / STRIPE_ROWS + (rows % STRIPE_ROWS > 0);
    return weft_times(&subject->sizes, weft_times(&subject->sizes, stripes, width),
                      (int64_t)sizeof(float));
}

int64_t weft_scratch_block(struct weft_subject *subject)
{
    struct weft_sizes *sizes = &subject->sizes;
    const struct weft_layer *layer = subject->layer;
    const int64_t h = layer->hidden, heads = weft_block_key(layer, WEFT_BLOCK_HEADS);
    const int64_t width = larger_of(weft_block_key(layer, WEFT_BLOCK_FFN), weft_times(sizes, 3, h));
    const int64_t row_bytes =
        !subject->batch->plain && weft_block_uses_tensor_cores(layer, subject->batch)
            ? (int64_t)sizeof(float)
            : weft_times(sizes, subject->batch->seq_len, subject->element_bytes);
    const int64_t of_heads = weft_times(sizes, weft_times(sizes, heads, subject->rows), row_bytes);
    const int64_t of_norm = weft_times(sizes, 2, weft_scratch_columns(subject, subject->rows, h));
    return larger_of(of_heads,
                     larger_of(of_norm, weft_scratch_columns(subject, subject->rows, width)));
}

void weft_scratch_classes(struct weft_subject *subject, int64_t rows, int64_t outputs,
                          struct weft_layer_work *work)
{
    struct weft_sizes *sizes = &subject->sizes;
    const int64_t sums = subject->layer->bias ? weft_scratch_columns(subject, rows, outputs) : 0;
    work->forward_scratch_bytes = weft_times(sizes, rows, (int64_t)sizeof(double));
    work->backward_scratch_bytes = weft_plus(sizes, SCALE_BYTES, sums);
}
