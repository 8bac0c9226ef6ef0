/* Takes the mean over the sequence, then a product to the classes, then cross-entropy. Tensors: 0
 * weight [classes, hidden]; 1 bias. Backward needs only saved activations. */
#include "layers/recipe/recipe.h"
#include "layers/shared/keys.h"
#include "layers/shared/layout.h"
#include "layers/shared/scratch.h"

static const struct weft_field classifier_keys[] = {
    {"classes", WEFT_FIELD_INTEGER, WEFT_LAYER_AT(outputs), NULL, 2, WEFT_WIDTH_MOST, NULL, NULL,
     "number of classes"},
    WEFT_ROW_HIDDEN,
    WEFT_ROW_BIAS,
};

static enum weft_status classifier_shape(const struct weft_layer *layer, double residual_std,
                                         struct weft_layer_shape *out, struct weft_error *err)
{
    (void)residual_std, (void)err;
    weft_add_matrix(out, "weight", layer->outputs, layer->hidden, WEFT_INIT_STD);
    if (layer->bias) weft_add_vector(out, "bias", layer->outputs, WEFT_INIT_ZERO);
    return WEFT_OK;
}

static enum weft_status classifier_needs(struct weft_subject *subject, struct weft_layer_work *work,
                                         struct weft_error *err)
{
    (void)err;
    struct weft_classifier_layout layout = weft_layout_classifier(subject->layer, subject->batch);
    subject->weights = subject->h * (double)subject->layer->outputs;
    double products = 2 * (double)subject->batch->samples * subject->weights;
    work->saved_bytes = layout.saved.bytes; /* has the pooled rows: backward needs no input */
    work->backward_temporary_bytes = layout.backward.bytes;
    weft_scratch_classes(subject, subject->batch->samples, subject->layer->outputs, work);
    work->forward_flops = products + subject->t * subject->h;
    work->backward_flops = subject->backward_products * products + subject->t * subject->h;
    return WEFT_OK;
}

static void classifier_sizes(const struct weft_layer *layer, struct weft_text *out)
{
    weft_text_addf(out, " hidden=%lld classes=%lld", (long long)layer->hidden,
                   (long long)layer->outputs);
}

static const struct weft_recipe_step classifier_steps[] = {
    {.op = &weft_op_mean_rows, .in = {"x"}, .out = {"pooled"}},
    {.op = &weft_op_product,
     .in = {"pooled"},
     .out = {"logits"},
     .columns = "classes",
     .bias = "bias",
     .tensors = {"weight", "bias"}},
    {.op = &weft_op_loss, .in = {"logits"}, .out = {"d_logits"}},
};
static const struct weft_recipe classifier_recipe = {
    WEFT_STEPS(classifier_steps), .sizes = {{"hidden", "hidden"}, {"classes", "classes"}}};

const struct weft_kind weft_kind_classifier = {
    .type = "classifier",
    .recipe = &classifier_recipe,
    .text = "mean over the sequence, product onto the classes, cross-entropy",
    WEFT_KEYS(classifier_keys),
    .trains = true,
    .loss = WEFT_LOSS_OF_SAMPLES,
    .outputs_given = true,
    .shape = classifier_shape,
    .needs = classifier_needs,
    .add_sizes = classifier_sizes,
};
