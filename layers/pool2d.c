/* SPDX-License-Identifier: Apache-2.0 */
/* The largest number, or the mean, of each window, without parameters. Planning only. */
#include "layers/shared/image.h"

static const struct weft_field pool2d_keys[] = {WEFT_ROW_IMAGE, WEFT_ROW_CHANNELS,
                                                WEFT_ROW_STRIDE(NULL)};

/* Forward makes one comparison or addition for each input number. It saves the position of each
 * window's largest number in 4 bytes. */
static enum weft_status pool2d_needs(struct weft_subject *subject, struct weft_layer_work *work,
                                     struct weft_error *err)
{
    (void)err;
    const struct weft_layer *layer = subject->layer;
    int64_t outputs = weft_image_elements(subject, weft_image_key(layer, WEFT_IMAGE_CHANNELS),
                                          weft_image_side(layer));
    work->saved_bytes = weft_times(&subject->sizes, outputs, (int64_t)sizeof(int32_t));
    work->forward_flops = subject->t * subject->h;
    work->backward_flops = subject->t * subject->h;
    return WEFT_OK;
}

static void pool2d_sizes(const struct weft_layer *layer, struct weft_text *out)
{
    weft_image_add_sizes(layer, out);
    weft_text_addf(out, " stride=%lld", (long long)weft_image_key(layer, WEFT_IMAGE_STRIDE));
}

const struct weft_kind weft_kind_pool2d = {
    .type = "pool2d",
    .text = "largest or mean of each window (planning only)",
    WEFT_KEYS(pool2d_keys),
    .complete = weft_image_complete,
    .check = weft_image_check,
    .needs = pool2d_needs,
    .add_sizes = pool2d_sizes,
};
