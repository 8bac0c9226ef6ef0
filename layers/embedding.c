#include "layers/embedding.h"

#include "layers/recipe/recipe.h"
#include "layers/shared/keys.h"

static const struct weft_field embedding_keys[] = {
    WEFT_ROW_VOCAB,
    WEFT_ROW_HIDDEN,
    {"positions", WEFT_FIELD_INTEGER, WEFT_KEY_AT(WEFT_EMBEDDING_POSITIONS), "0", 0,
     WEFT_INT32_MOST, NULL, NULL, "rows of the position table, at least seq_len; 0: no table"},
};

static enum weft_status embedding_shape(const struct weft_layer *layer, double residual_std,
                                        struct weft_layer_shape *out, struct weft_error *err)
{
    (void)residual_std, (void)err;
    const int64_t positions = weft_embedding_positions(layer);
    weft_add_matrix(out, "tokens", layer->vocab, layer->hidden, WEFT_INIT_STD);
    if (positions > 0) weft_add_matrix(out, "positions", positions, layer->hidden, WEFT_INIT_STD);
    return WEFT_OK;
}

static enum weft_status embedding_needs(struct weft_subject *subject, struct weft_layer_work *work,
                                        struct weft_error *err)
{
    const struct weft_layer *layer = subject->layer;
    const int64_t positions = weft_embedding_positions(layer);
    if (positions > 0 && subject->batch->seq_len > positions)
        return weft_layer_refuse(err, layer,
                                 "train.seq_len %lld is beyond its %lld positions; shorten seq_len "
                                 "or give it more positions",
                                 (long long)subject->batch->seq_len, (long long)positions);
    double elements = subject->t * subject->h;
    work->backward_reads_input = !layer->frozen;
    work->forward_flops = positions > 0 ? elements : 0;
    work->backward_flops = layer->frozen ? 0 : (positions > 0 ? 2 : 1) * elements;
    subject->weights = elements; /* only the rows of the batch's tokens */
    /* A token table's gradient is dense: backward writes the rows of absent tokens too. */
    subject->gradients = subject->h * (double)layer->vocab;
    return WEFT_OK;
}

static void embedding_sizes(const struct weft_layer *layer, struct weft_text *out)
{
    weft_text_addf(out, " vocab=%lld positions=%lld hidden=%lld", (long long)layer->vocab,
                   (long long)weft_embedding_positions(layer), (long long)layer->hidden);
}

static const struct weft_recipe_step embedding_steps[] = {
    {.op = &weft_op_embed,
     .in = {"x"},
     .out = {"y"},
     .columns = "hidden",
     .vocab = "vocab",
     .positions = "positions",
     .tensors = {"tokens", "positions"}},
};
static const struct weft_recipe embedding_recipe = {
    WEFT_STEPS(embedding_steps),
    .sizes = {{"vocab", "vocab"}, {"positions", "positions"}, {"hidden", "hidden"}}};

const struct weft_kind weft_kind_embedding = {
    .type = "embedding",
    .recipe = &embedding_recipe,
    .text = "token table, and position table when `positions` is not 0",
    WEFT_KEYS(embedding_keys),
    .trains = true,
    .by_rows = true,
    .input = WEFT_READS_TOKENS,
    .shape = embedding_shape,
    .needs = embedding_needs,
    .add_sizes = embedding_sizes,
};
