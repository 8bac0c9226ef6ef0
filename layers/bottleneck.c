/* SPDX-License-Identifier: Apache-2.0 */
/* ResNet-50's block (He et al. 2016, figure 5): a 1x1 convolution to `width` maps, a 3x3 one with
 * the stride, and a 1x1 one to `filters` maps. Each is normalised, and the input is added. Where
 * shapes differ, the input passes through a normalised 1x1 convolution. The stride is at the 3x3
 * convolution, as in PyTorch. Planning only.
 *
 * Tensors: 0 conv1 [width, channels], 1 norm1.weight, 2 norm1.bias, 3 conv2 [width, 9 * width], 4,
 * 5 norm2, 6 conv3 [filters, width], 7, 8 norm3. With a projection also 9 shortcut [filters,
 * channels], 10, 11 shortcut.norm. */
#include "layers/shared/image.h"

static const struct weft_field bottleneck_keys[] = {
    WEFT_ROW_IMAGE,
    WEFT_ROW_CHANNELS,
    {"width", WEFT_FIELD_INTEGER, WEFT_KEY_AT(WEFT_IMAGE_WIDTH), NULL, 1, WEFT_IMAGE_MOST_MAPS,
     NULL, NULL, "maps between the products of the block"},
    WEFT_ROW_FILTERS,
    WEFT_ROW_STRIDE("1"),
};

/* True if input and output differ in shape, so that the shortcut needs a product. */
static bool has_projection(const struct weft_layer *layer)
{
    return weft_image_key(layer, WEFT_IMAGE_STRIDE) != 1 ||
           weft_image_key(layer, WEFT_IMAGE_CHANNELS) != weft_image_key(layer, WEFT_IMAGE_FILTERS);
}

static enum weft_status bottleneck_shape(const struct weft_layer *layer, double residual_std,
                                         struct weft_layer_shape *out, struct weft_error *err)
{
    (void)residual_std, (void)err;
    int64_t c = weft_image_key(layer, WEFT_IMAGE_CHANNELS);
    int64_t w = weft_image_key(layer, WEFT_IMAGE_WIDTH);
    int64_t f = weft_image_key(layer, WEFT_IMAGE_FILTERS);
    weft_image_add_filters(out, "conv1.weight", w, c);
    weft_image_add_norm(out, "norm1.weight", "norm1.bias", w);
    weft_image_add_filters(out, "conv2.weight", w, weft_size(9, w));
    weft_image_add_norm(out, "norm2.weight", "norm2.bias", w);
    weft_image_add_filters(out, "conv3.weight", f, w);
    weft_image_add_norm(out, "norm3.weight", "norm3.bias", f);
    if (!has_projection(layer)) return WEFT_OK;
    weft_image_add_filters(out, "shortcut.weight", f, c);
    weft_image_add_norm(out, "shortcut.norm.weight", "shortcut.norm.bias", f);
    return WEFT_OK;
}

static enum weft_status bottleneck_needs(struct weft_subject *subject, struct weft_layer_work *work,
                                         struct weft_error *err)
{
    (void)err;
    const struct weft_layer *layer = subject->layer;
    struct weft_sizes *sizes = &subject->sizes;
    int64_t in = weft_image_key(layer, WEFT_IMAGE_SIDE), out = weft_image_side(layer);
    int64_t w = weft_image_key(layer, WEFT_IMAGE_WIDTH);
    int64_t f = weft_image_key(layer, WEFT_IMAGE_FILTERS);
    bool projected = has_projection(layer);
    double c = (double)weft_image_key(layer, WEFT_IMAGE_CHANNELS), width = (double)w;
    double filters = (double)f;
    double products = weft_image_convolution(subject, c * width, in) +
                      weft_image_convolution(subject, 9 * width * width, out) +
                      weft_image_convolution(subject, width * filters, out) +
                      (projected ? weft_image_convolution(subject, c * filters, out) : 0);
    /* Inner maps are saved before and after normalisation and ReLU, outer maps only before. */
    int64_t inner =
        weft_plus(sizes, weft_image_elements(subject, w, in), weft_image_elements(subject, w, out));
    int64_t outer = weft_image_elements(subject, f, out);
    int64_t saved = weft_plus(sizes, weft_times(sizes, 2, inner),
                              projected ? weft_times(sizes, 2, outer) : outer);
    int64_t maps =
        weft_plus(sizes, weft_times(sizes, 2, w), projected ? weft_times(sizes, 2, f) : f);
    work->saved_bytes = weft_plus(sizes, weft_times(sizes, saved, subject->element_bytes),
                                  weft_times(sizes, maps, 2 * (int64_t)sizeof(float)));
    work->backward_temporary_bytes =
        weft_times(sizes, weft_plus(sizes, inner, outer), subject->element_bytes);
    work->backward_reads_input = true;
    work->backward_reads_output = true; /* the last ReLU */
    work->forward_flops = 2 * products;
    work->backward_flops = 2 * subject->backward_products * products;
    subject->weights = c * width + 9 * width * width + width * filters +
                       (projected ? c * filters : 0) + 2 * (double)maps;
    return WEFT_OK;
}

static void bottleneck_sizes(const struct weft_layer *layer, struct weft_text *out)
{
    weft_image_add_sizes(layer, out);
    weft_text_addf(out, " filters=%lld width=%lld stride=%lld",
                   (long long)weft_image_key(layer, WEFT_IMAGE_FILTERS),
                   (long long)weft_image_key(layer, WEFT_IMAGE_WIDTH),
                   (long long)weft_image_key(layer, WEFT_IMAGE_STRIDE));
}

const struct weft_kind weft_kind_bottleneck = {
    .type = "bottleneck",
    .text = "residual block of ResNet-50: three normalised convolutions and a shortcut (planning "
            "only)",
    WEFT_KEYS(bottleneck_keys),
    .complete = weft_image_complete,
    .check = weft_image_check,
    .shape = bottleneck_shape,
    .needs = bottleneck_needs,
    .add_sizes = bottleneck_sizes,
};
