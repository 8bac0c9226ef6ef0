/* SPDX-License-Identifier: Apache-2.0 */
/* Cross-entropy with the call's targets, of logits that `cap` may bound. Logits, the result of a
 * product, become in place the gradient of the loss: the probabilities, minus 1 at the target.
 * Backward of the product applies the scale of the loss.
 *
 * Rows of logits begin at multiples of WEFT_LAYOUT_ROW_BYTES from the first row: a GPU's fast
 * products need aligned rows, and an odd vocabulary would take nearly twice the time. */
#include "layers/recipe/layout.h"
#include "layers/recipe/op.h"

enum { SCALE_BYTES = 64 }; /* the place of a GPU's scale */

static enum weft_status shape_loss(struct weft_walk *walk, struct weft_walk_step *step,
                                   struct weft_error *err)
{
    struct weft_value *logits = &walk->values[step->in[0].value];
    if (logits->maker == WEFT_WALK_NONE || !walk->steps[logits->maker].op->has_weight ||
        walk->steps[logits->maker].add.value != WEFT_WALK_NONE ||
        weft_span_width(&step->in[0]) != logits->columns)
        return weft_step_refuse(walk, step, err,
                                "its input must be the whole result of a product that adds no "
                                "value; the product takes the scale of the loss");
    if (!(step->numbers.cap >= 0))
        return weft_step_refuse(walk, step, err, "\"cap\" is %g; it must be above 0, or 0 for none",
                                step->numbers.cap);
    const int64_t unit = WEFT_LAYOUT_ROW_BYTES / weft_dtype_bytes(walk->batch.compute);
    logits->gap = (unit - logits->columns % unit) % unit;
    WEFT_TRY(weft_step_add_output(walk, step, logits->rows, logits->columns, err));
    walk->values[step->out[0]].gap = logits->gap;
    return WEFT_OK;
}

static unsigned loss_reads(const struct weft_walk *walk, const struct weft_walk_step *step)
{
    (void)walk, (void)step;
    return WEFT_STEP_OUT0;
}

static double loss_flops(const struct weft_walk *walk, const struct weft_walk_step *step)
{
    (void)walk, (void)step;
    return 0;
}

static void loss_scratch(struct weft_walk *walk, const struct weft_walk_step *step,
                         struct weft_step_scratch *out)
{
    out->gpu_forward = weft_times(&walk->fits, step->rows, (int64_t)sizeof(double));
    out->gpu_own = SCALE_BYTES;
}

const struct weft_op weft_op_loss = {
    .name = "loss",
    .n_in = 1,
    .numbers = WEFT_NUMBER(cap),
    .in_place = true,
    .is_loss = true,
    .holds = WEFT_WALK_NONE,
    .shape = shape_loss,
    .reads = loss_reads,
    .flops = loss_flops,
    .scratch = loss_scratch,
};
