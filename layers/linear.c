/* A matrix product. Tensors: 0 weight [outputs, hidden]; 1 bias if it has one. Backward reads the
 * input, unless the layer is frozen. */
#include <math.h>

#include "layers/recipe/recipe.h"
#include "layers/shared/keys.h"
#include "layers/shared/layout.h"
#include "layers/shared/scratch.h"

static const struct weft_field linear_keys[] = {
    WEFT_ROW_HIDDEN,
    {"outputs", WEFT_FIELD_INTEGER, WEFT_LAYER_AT(outputs), NULL, 1, WEFT_WIDTH_MOST, NULL, NULL,
     "output width"},
    WEFT_ROW_BIAS,
};

static enum weft_status linear_shape(const struct weft_layer *layer, double residual_std,
                                     struct weft_layer_shape *out, struct weft_error *err)
{
    (void)residual_std, (void)err;
    weft_add_matrix(out, "weight", layer->outputs, layer->hidden, 1 / sqrt((double)layer->hidden));
    if (layer->bias) weft_add_vector(out, "bias", layer->outputs, WEFT_INIT_ZERO);
    return WEFT_OK;
}

static enum weft_status linear_needs(struct weft_subject *subject, struct weft_layer_work *work,
                                     struct weft_error *err)
{
    (void)err;
    struct weft_linear_layout layout = weft_layout_linear(subject->layer, subject->batch);
    subject->weights = subject->h * (double)subject->layer->outputs;
    work->backward_temporary_bytes = layout.backward.bytes;
    if (subject->layer->bias)
        work->backward_scratch_bytes =
            weft_scratch_columns(subject, subject->rows, subject->layer->outputs);
    work->backward_reads_input = !subject->layer->frozen;
    work->forward_flops = 2 * subject->t * subject->weights;
    work->backward_flops = subject->backward_products * work->forward_flops;
    return WEFT_OK;
}

static void linear_sizes(const struct weft_layer *layer, struct weft_text *out)
{
    weft_text_addf(out, " inputs=%lld outputs=%lld", (long long)layer->hidden,
                   (long long)layer->outputs);
}

static const struct weft_recipe_step linear_steps[] = {
    {.op = &weft_op_product,
     .in = {"x"},
     .out = {"y"},
     .columns = "outputs",
     .bias = "bias",
     .init = WEFT_WORD_FAN_IN,
     .tensors = {"weight", "bias"}},
};
static const struct weft_recipe linear_recipe = {
    WEFT_STEPS(linear_steps), .sizes = {{"inputs", "hidden"}, {"outputs", "outputs"}}};

const struct weft_kind weft_kind_linear = {
    .type = "linear",
    .recipe = &linear_recipe,
    .text = "matrix product",
    WEFT_KEYS(linear_keys),
    .trains = true,
    .by_rows = true,
    .input = WEFT_READS_NUMBERS,
    .outputs_given = true,
    .shape = linear_shape,
    .needs = linear_needs,
    .add_sizes = linear_sizes,
};
