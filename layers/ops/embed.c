/* SPDX-License-Identifier: Apache-2.0 */
/* Looks up tokens. Tensors: tokens [vocab, columns], whose rows `scale` multiplies; positions
 * [positions, columns], added if there are any. Backward reads the tokens, unless the layer is
 * frozen. */
#include "layers/recipe/op.h"

static enum weft_status shape_embed(struct weft_walk *walk, struct weft_walk_step *step,
                                    struct weft_error *err)
{
    const int64_t columns = step->sizes.columns, positions = step->sizes.positions;
    if (positions > 0 && walk->batch.seq_len > positions)
        return weft_layer_refuse(err, walk->layer,
                                 "train.seq_len %lld is beyond its %lld positions; shorten seq_len "
                                 "or give it more positions",
                                 (long long)walk->batch.seq_len, (long long)positions);
    if (!(step->numbers.scale >= 0))
        return weft_step_refuse(walk, step, err, "\"scale\" is %g; it must be above 0, or 0 for 1",
                                step->numbers.scale);
    WEFT_TRY(weft_step_add_tensor(walk, step, step->sizes.vocab, columns, WEFT_INIT_NORMAL,
                                  WEFT_INIT_STD, err));
    walk->most_rows = positions;
    if (positions > 0)
        WEFT_TRY(weft_step_add_tensor(walk, step, positions, columns, WEFT_INIT_NORMAL,
                                      WEFT_INIT_STD, err));
    return weft_step_add_output(walk, step, step->rows, columns, err);
}

static unsigned embed_reads(const struct weft_walk *walk, const struct weft_walk_step *step)
{
    (void)step;
    return walk->layer->frozen ? 0 : WEFT_STEP_IN0;
}

/* Only the rows of the batch's tokens. */
static double embed_weights(const struct weft_walk *walk, const struct weft_walk_step *step)
{
    (void)walk;
    return (double)step->rows * (double)step->sizes.columns;
}

/* A token table's gradient is dense: backward writes the rows of absent tokens too. */
static double embed_gradients(const struct weft_walk *walk, const struct weft_walk_step *step)
{
    (void)walk;
    return (double)step->sizes.columns * (double)step->sizes.vocab;
}

static double embed_flops(const struct weft_walk *walk, const struct weft_walk_step *step)
{
    return step->sizes.positions > 0 ? embed_weights(walk, step) : 0;
}

static double embed_backward_flops(const struct weft_walk *walk, const struct weft_walk_step *step)
{
    if (walk->layer->frozen) return 0;
    return (step->sizes.positions > 0 ? 2 : 1) * embed_weights(walk, step);
}

const struct weft_op weft_op_embed = {
    .name = "embed",
    .n_in = 1,
    .required = WEFT_SIZE(columns) | WEFT_SIZE(vocab),
    .optional = WEFT_SIZE(positions),
    .numbers = WEFT_NUMBER(scale),
    .tensors = {"tokens", "positions"},
    .reads_tokens = true,
    .counts = true,
    .holds = WEFT_WALK_NONE,
    .shape = shape_embed,
    .reads = embed_reads,
    .flops = embed_flops,
    .backward_flops = embed_backward_flops,
    .weights = embed_weights,
    .gradients = embed_gradients,
};
