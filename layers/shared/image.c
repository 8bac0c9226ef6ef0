/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/shared/image.h"

#include <math.h>
#include <stdio.h>

int64_t weft_image_side(const struct weft_layer *layer)
{
    int64_t image = weft_image_key(layer, WEFT_IMAGE_SIDE);
    int64_t stride = weft_image_key(layer, WEFT_IMAGE_STRIDE);
    return image / stride + (image % stride != 0);
}

/* Sizes are checked later, so the stride may still be 0 here. */
void weft_image_complete(struct weft_layer *layer)
{
    int64_t image = weft_image_key(layer, WEFT_IMAGE_SIDE);
    int64_t channels = weft_image_key(layer, WEFT_IMAGE_CHANNELS);
    if (weft_kind_key(layer->kind, "filters") == NULL)
        layer->keys[WEFT_IMAGE_FILTERS].integer = channels;
    layer->hidden = weft_size(channels, weft_size(image, image));
    int64_t side = weft_image_key(layer, WEFT_IMAGE_STRIDE) > 0 ? weft_image_side(layer) : -1;
    layer->outputs = weft_size(weft_image_key(layer, WEFT_IMAGE_FILTERS), weft_size(side, side));
}

int32_t weft_image_check(const struct weft_layer *layer, struct weft_fault faults[WEFT_FAULTS])
{
    long long image = weft_image_key(layer, WEFT_IMAGE_SIDE);
    long long stride = weft_image_key(layer, WEFT_IMAGE_STRIDE);
    if (image < 1 || stride <= image) return 0;
    faults[0].key = "stride";
    snprintf(faults[0].text, sizeof faults[0].text, "stride is %lld; it must be from 1 to %lld",
             stride, image);
    return 1;
}

void weft_image_add_sizes(const struct weft_layer *layer, struct weft_text *out)
{
    weft_text_addf(out, " inputs=%lld outputs=%lld image=%lld channels=%lld",
                   (long long)layer->hidden, (long long)layer->outputs,
                   (long long)weft_image_key(layer, WEFT_IMAGE_SIDE),
                   (long long)weft_image_key(layer, WEFT_IMAGE_CHANNELS));
}

/* He et al. 2015, equation 10: this std keeps the variance through a ReLU. */
void weft_image_add_filters(struct weft_layer_shape *out, const char *name, int64_t filters,
                            int64_t inputs)
{
    weft_add_matrix(out, name, filters, inputs, sqrt(2 / (double)inputs));
}

void weft_image_add_norm(struct weft_layer_shape *out, const char *weight, const char *bias,
                         int64_t length)
{
    weft_add_vector(out, weight, length, WEFT_INIT_ONE);
    weft_add_vector(out, bias, length, WEFT_INIT_ZERO);
}

int64_t weft_image_elements(struct weft_subject *subject, int64_t maps, int64_t side)
{
    struct weft_sizes *sizes = &subject->sizes;
    return weft_times(sizes, subject->rows, weft_times(sizes, maps, weft_times(sizes, side, side)));
}

double weft_image_convolution(const struct weft_subject *subject, double weights, int64_t side)
{
    return subject->t * weights * (double)side * (double)side;
}
