/* SPDX-License-Identifier: Apache-2.0 */
/* Shared parts of layers on images, for planning only. A row is channels x image x image numbers.
 * `image` is the side of a square. */
#ifndef WEFT_LAYERS_SHARED_IMAGE_H
#define WEFT_LAYERS_SHARED_IMAGE_H

#include "layers/shared/keys.h"

enum {
    WEFT_IMAGE_SIDE,
    WEFT_IMAGE_CHANNELS,
    WEFT_IMAGE_FILTERS, /* equals channels if the kind has no such key */
    WEFT_IMAGE_STRIDE,
    WEFT_IMAGE_KERNEL,
    WEFT_IMAGE_WIDTH,
    WEFT_IMAGE_NORM /* flag */
};
/* Larger than any real image, yet small enough that the sizes of a layer are exact in 63 bits. */
enum { WEFT_IMAGE_MOST_SIDE = 65536, WEFT_IMAGE_MOST_MAPS = 1 << 20 };

static inline int64_t weft_image_key(const struct weft_layer *layer, int key)
{
    return layer->keys[key].integer;
}

#define WEFT_ROW_IMAGE                                                                             \
    {                                                                                              \
        "image", WEFT_FIELD_INTEGER, WEFT_KEY_AT(WEFT_IMAGE_SIDE), NULL, 1, WEFT_IMAGE_MOST_SIDE,  \
            NULL, NULL, "side of the square input image"                                           \
    }
#define WEFT_ROW_CHANNELS                                                                          \
    {                                                                                              \
        "channels", WEFT_FIELD_INTEGER, WEFT_KEY_AT(WEFT_IMAGE_CHANNELS), NULL, 1,                 \
            WEFT_IMAGE_MOST_MAPS, NULL, NULL, "input maps"                                         \
    }
#define WEFT_ROW_FILTERS                                                                           \
    {                                                                                              \
        "filters", WEFT_FIELD_INTEGER, WEFT_KEY_AT(WEFT_IMAGE_FILTERS), NULL, 1,                   \
            WEFT_IMAGE_MOST_MAPS, NULL, NULL, "output maps"                                        \
    }
#define WEFT_ROW_STRIDE(fallback)                                                                  \
    {                                                                                              \
        "stride", WEFT_FIELD_INTEGER, WEFT_KEY_AT(WEFT_IMAGE_STRIDE), fallback, 1,                 \
            WEFT_IMAGE_MOST_SIDE, NULL, NULL,                                                      \
            "the output image has side image / stride, rounded up"                                 \
    }

/* Side of the output square: image / stride, rounded up. Padding is assumed, as in PyTorch's ResNet
 * and VGG. */
int64_t weft_image_side(const struct weft_layer *layer);

/* Functions of a kind. `complete` sets the widths of rows. `check` reports a stride that exceeds
 * the image, and returns the number of faults. */
void weft_image_complete(struct weft_layer *layer);
int32_t weft_image_check(const struct weft_layer *layer, struct weft_fault faults[WEFT_FAULTS]);
/* Appends " inputs= outputs= image= channels=". */
void weft_image_add_sizes(const struct weft_layer *layer, struct weft_text *out);

/* Add the weight of a convolution, and weight and bias of a norm over the batch. */
void weft_image_add_filters(struct weft_layer_shape *out, const char *name, int64_t filters,
                            int64_t inputs);
void weft_image_add_norm(struct weft_layer_shape *out, const char *weight, const char *bias,
                         int64_t length);

/* Elements of all rows, with `maps` squares of side^2 each. */
int64_t weft_image_elements(struct weft_subject *subject, int64_t maps, int64_t side);
/* Multiply-adds of a convolution's forward: one for each weight at each place of its output. He et
 * al. 2016, table 1, counts the same way. */
double weft_image_convolution(const struct weft_subject *subject, double weights, int64_t side);

#endif
