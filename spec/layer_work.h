/* The work of one layer in the making: what the functions of the single types fill in for
 * weft_layer_work. Private to spec/. */
#ifndef WEFT_SPEC_LAYER_WORK_H
#define WEFT_SPEC_LAYER_WORK_H

#include "base/checked.h"
#include "spec/layer.h"

/* Arithmetic on sizes that remembers whether anything overflowed; such a result is 0. */
struct weft_sizes {
    bool overflowed;
};

static inline int64_t weft_times(struct weft_sizes *sizes, int64_t a, int64_t b)
{
    int64_t out = 0;
    sizes->overflowed |= !weft_checked_mul(a, b, &out);
    return out;
}

static inline int64_t weft_plus(struct weft_sizes *sizes, int64_t a, int64_t b)
{
    int64_t out = 0;
    sizes->overflowed |= !weft_checked_add(a, b, &out);
    return out;
}

/* A layer and a batch, with the figures that every type needs; flops are doubles on purpose. */
struct weft_subject {
    const struct weft_layer *layer;
    const struct weft_batch *batch;
    const struct weft_layer_needs *needs; /* of a supplied layer */
    struct weft_sizes sizes;
    int64_t rows, element_bytes;
    double t, s, h, f;        /* rows, seq_len, hidden, ffn */
    double backward_products; /* products a forward product costs in backward: by its input, and
                                 by its weight unless that is frozen */
};

/* Types without kernels, whose buffers are those that the usual kernels need. Each fills in buffers
 * but the output, and flops, and returns the elements of parameters that forward reads. */
double weft_work_llama_block(struct weft_subject *subject, struct weft_layer_work *work);
double weft_work_encoder_block(struct weft_subject *subject, struct weft_layer_work *work);
double weft_work_moe_block(struct weft_subject *subject, struct weft_layer_work *work);
double weft_work_conv2d(struct weft_subject *subject, struct weft_layer_work *work);
double weft_work_bottleneck(struct weft_subject *subject, struct weft_layer_work *work);
double weft_work_pool2d(struct weft_subject *subject, struct weft_layer_work *work);

#endif
