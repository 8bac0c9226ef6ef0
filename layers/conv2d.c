/* SPDX-License-Identifier: Apache-2.0 */
/* Convolution, normalised over the batch if `norm` is set, with ReLU in place. Tensors: 0 weight
 * [filters, channels * kernel^2]; 1 bias if it has one; norm.weight and norm.bias if it is
 * normalised. Planning only.
 */
#include "layers/shared/image.h"

static const struct weft_field conv2d_keys[] = {
    WEFT_ROW_IMAGE,
    WEFT_ROW_CHANNELS,
    WEFT_ROW_FILTERS,
    {"kernel", WEFT_FIELD_INTEGER, WEFT_KEY_AT(WEFT_IMAGE_KERNEL), NULL, 1, WEFT_IMAGE_MOST_SIDE,
     NULL, NULL, "side of the square that each output reads"},
    WEFT_ROW_STRIDE("1"),
    WEFT_ROW_BIAS,
    {"norm", WEFT_FIELD_BOOL, WEFT_KEY_AT(WEFT_IMAGE_NORM), "false", 0, 0, NULL, NULL,
     "normalised over the batch, with weight and bias"},
};

static enum weft_status conv2d_shape(const struct weft_layer *layer, double residual_std,
                                     struct weft_layer_shape *out, struct weft_error *err)
{
    (void)residual_std, (void)err;
    int64_t filters = weft_image_key(layer, WEFT_IMAGE_FILTERS);
    int64_t kernel = weft_image_key(layer, WEFT_IMAGE_KERNEL);
    weft_image_add_filters(out, "weight", filters,
                           weft_size(weft_image_key(layer, WEFT_IMAGE_CHANNELS), kernel * kernel));
    if (layer->bias) weft_add_vector(out, "bias", filters, WEFT_INIT_ZERO);
    if (layer->keys[WEFT_IMAGE_NORM].flag)
        weft_image_add_norm(out, "norm.weight", "norm.bias", filters);
    return WEFT_OK;
}

/* Normalisation saves its input and two numbers for each filter. */
static enum weft_status conv2d_needs(struct weft_subject *subject, struct weft_layer_work *work,
                                     struct weft_error *err)
{
    (void)err;
    const struct weft_layer *layer = subject->layer;
    struct weft_sizes *sizes = &subject->sizes;
    int64_t side = weft_image_side(layer), filters = weft_image_key(layer, WEFT_IMAGE_FILTERS);
    int64_t kernel = weft_image_key(layer, WEFT_IMAGE_KERNEL);
    bool norm = layer->keys[WEFT_IMAGE_NORM].flag;
    double weights = (double)weft_image_key(layer, WEFT_IMAGE_CHANNELS) * (double)filters *
                     (double)(kernel * kernel);
    double products = weft_image_convolution(subject, weights, side);
    int64_t out_bytes =
        weft_times(sizes, weft_image_elements(subject, filters, side), subject->element_bytes);
    if (norm)
        work->saved_bytes =
            weft_plus(sizes, out_bytes, weft_times(sizes, filters, 2 * (int64_t)sizeof(float)));
    work->backward_temporary_bytes = out_bytes; /* gradient before ReLU */
    work->backward_reads_input = !layer->frozen;
    work->backward_reads_output = true;
    work->forward_flops = 2 * products;
    work->backward_flops = 2 * subject->backward_products * products;
    subject->weights = weights + (norm ? 2 : 0) * (double)filters;
    return WEFT_OK;
}

static void conv2d_sizes(const struct weft_layer *layer, struct weft_text *out)
{
    weft_image_add_sizes(layer, out);
    weft_text_addf(out, " filters=%lld kernel=%lld%s stride=%lld",
                   (long long)weft_image_key(layer, WEFT_IMAGE_FILTERS),
                   (long long)weft_image_key(layer, WEFT_IMAGE_KERNEL),
                   layer->keys[WEFT_IMAGE_NORM].flag ? " norm" : "",
                   (long long)weft_image_key(layer, WEFT_IMAGE_STRIDE));
}

const struct weft_kind weft_kind_conv2d = {
    .type = "conv2d",
    .text = "convolution, padded, with ReLU (planning only)",
    WEFT_KEYS(conv2d_keys),
    .complete = weft_image_complete,
    .check = weft_image_check,
    .shape = conv2d_shape,
    .needs = conv2d_needs,
    .add_sizes = conv2d_sizes,
};
