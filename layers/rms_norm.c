/* RMS normalisation. Tensor: 0 weight. Planning only. */
#include "layers/shared/keys.h"

static const struct weft_field rms_norm_keys[] = {WEFT_ROW_HIDDEN};

static enum weft_status rms_norm_shape(const struct weft_layer *layer, double residual_std,
                                       struct weft_layer_shape *out, struct weft_error *err)
{
    (void)residual_std, (void)err;
    weft_add_vector(out, "weight", layer->hidden, WEFT_INIT_ONE);
    return WEFT_OK;
}

static enum weft_status rms_norm_needs(struct weft_subject *subject, struct weft_layer_work *work,
                                       struct weft_error *err)
{
    (void)err;
    work->saved_bytes = weft_times(&subject->sizes, subject->rows, 4); /* rstd in fp32 */
    work->backward_temporary_bytes = weft_times(&subject->sizes, subject->layer->hidden, 4);
    work->backward_reads_input = true;
    work->forward_flops = 4 * subject->t * subject->h;
    work->backward_flops = 2 * work->forward_flops;
    subject->weights = subject->h;
    return WEFT_OK;
}

const struct weft_kind weft_kind_rms_norm = {
    .type = "rms_norm",
    .text = "RMS normalisation (planning only)",
    WEFT_KEYS(rms_norm_keys),
    .shape = rms_norm_shape,
    .needs = rms_norm_needs,
};
