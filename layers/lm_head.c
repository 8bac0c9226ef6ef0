/* Product to the vocabulary with cross-entropy. Tensors: 0 weight [vocab, hidden], or the
 * embedding's tokens if tied; 1 bias. Backward reads the input, unless the layer is frozen. */
#include "layers/recipe/recipe.h"
#include "layers/shared/keys.h"
#include "layers/shared/layout.h"
#include "layers/shared/scratch.h"

static const struct weft_field lm_head_keys[] = {
    WEFT_ROW_VOCAB,
    WEFT_ROW_HIDDEN,
    WEFT_ROW_BIAS,
    WEFT_ROW_TIE,
};

static void lm_head_complete(struct weft_layer *layer)
{
    layer->outputs = layer->vocab;
}

static enum weft_status lm_head_shape(const struct weft_layer *layer, double residual_std,
                                      struct weft_layer_shape *out, struct weft_error *err)
{
    (void)residual_std, (void)err;
    weft_add_matrix(out, "weight", layer->vocab, layer->hidden, WEFT_INIT_STD);
    if (layer->bias) weft_add_vector(out, "bias", layer->vocab, WEFT_INIT_ZERO);
    return WEFT_OK;
}

static enum weft_status lm_head_needs(struct weft_subject *subject, struct weft_layer_work *work,
                                      struct weft_error *err)
{
    (void)err;
    struct weft_lm_head_layout layout = weft_layout_lm_head(subject->layer, subject->batch);
    subject->weights = subject->h * (double)subject->layer->vocab;
    work->saved_bytes = layout.saved.bytes;
    work->backward_temporary_bytes = layout.backward.bytes;
    weft_scratch_classes(subject, subject->rows, subject->layer->vocab, work);
    work->backward_reads_input = !subject->layer->frozen;
    work->forward_flops = 2 * subject->t * subject->weights;
    work->backward_flops = subject->backward_products * work->forward_flops;
    return WEFT_OK;
}

static void lm_head_sizes(const struct weft_layer *layer, struct weft_text *out)
{
    weft_text_addf(out, " vocab=%lld hidden=%lld", (long long)layer->outputs,
                   (long long)layer->hidden);
}

static const struct weft_recipe_step lm_head_steps[] = {
    {.op = &weft_op_product,
     .in = {"x"},
     .out = {"logits"},
     .columns = "vocab",
     .bias = "bias",
     .tensors = {"weight", "bias"}},
    {.op = &weft_op_loss, .in = {"logits"}, .out = {"d_logits"}},
};
static const struct weft_recipe lm_head_recipe = {WEFT_STEPS(lm_head_steps)};

const struct weft_kind weft_kind_lm_head = {
    .type = "lm_head",
    .recipe = &lm_head_recipe,
    .text = "product onto the vocabulary with cross-entropy, a loss for each token",
    WEFT_KEYS(lm_head_keys),
    .trains = true,
    .by_rows = true,
    .loss = WEFT_LOSS_OF_ROWS,
    .ties = &weft_kind_embedding,
    .complete = lm_head_complete,
    .shape = lm_head_shape,
    .needs = lm_head_needs,
    .add_sizes = lm_head_sizes,
};
