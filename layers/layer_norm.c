/* Layer normalisation: 0 weight, 1 bias. Backward reads the input. */
#include "layers/recipe/recipe.h"
#include "layers/shared/keys.h"
#include "layers/shared/layout.h"
#include "layers/shared/scratch.h"

static const struct weft_field layer_norm_keys[] = {WEFT_ROW_HIDDEN};

static enum weft_status layer_norm_shape(const struct weft_layer *layer, double residual_std,
                                         struct weft_layer_shape *out, struct weft_error *err)
{
    (void)residual_std, (void)err;
    weft_add_vector(out, "weight", layer->hidden, WEFT_INIT_ONE);
    weft_add_vector(out, "bias", layer->hidden, WEFT_INIT_ZERO);
    return WEFT_OK;
}

static enum weft_status layer_norm_needs(struct weft_subject *subject, struct weft_layer_work *work,
                                         struct weft_error *err)
{
    (void)err;
    struct weft_layer_norm_layout layout = weft_layout_layer_norm(subject->layer, subject->batch);
    work->saved_bytes = layout.saved.bytes;
    work->backward_temporary_bytes = layout.backward.bytes;
    work->backward_scratch_bytes = weft_times(
        &subject->sizes, 2, weft_scratch_columns(subject, subject->rows, subject->layer->hidden));
    work->backward_reads_input = true;
    work->forward_flops = 8 * subject->t * subject->h;
    work->backward_flops = 2 * work->forward_flops;
    subject->weights = 2 * subject->h;
    return WEFT_OK;
}

static const struct weft_recipe_step layer_norm_steps[] = {
    {.op = &weft_op_norm,
     .in = {"x"},
     .out = {"y"},
     .kind = WEFT_WORD_LAYER,
     .tensors = {"weight", "bias"}},
};
static const struct weft_recipe layer_norm_recipe = {WEFT_STEPS(layer_norm_steps)};

const struct weft_kind weft_kind_layer_norm = {
    .type = "layer_norm",
    .recipe = &layer_norm_recipe,
    .text = "layer normalisation with weight and bias",
    WEFT_KEYS(layer_norm_keys),
    .trains = true,
    .by_rows = true,
    .shape = layer_norm_shape,
    .needs = layer_norm_needs,
};
