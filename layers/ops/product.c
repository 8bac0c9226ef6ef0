/* SPDX-License-Identifier: Apache-2.0 */
/* y = x W^T (+ bias) (+ add). Tensors: weight [columns, inputs], bias. With `then`, the second
 * output is an activation of the first. The product of a loss pads its rows (loss.c). */
#include <math.h>

#include "layers/recipe/op.h"

static double std_of(const struct weft_walk *walk, const struct weft_walk_step *step)
{
    if (step->from->init == WEFT_WORD_FAN_IN)
        return 1 / sqrt((double)weft_span_width(&step->in[0]));
    return step->from->init == WEFT_WORD_RESIDUAL ? walk->residual_std : WEFT_INIT_STD;
}

static enum weft_status shape_product(struct weft_walk *walk, struct weft_walk_step *step,
                                      struct weft_error *err)
{
    const int64_t columns = step->sizes.columns;
    WEFT_TRY(weft_step_add_tensor(walk, step, columns, weft_span_width(&step->in[0]),
                                  WEFT_INIT_NORMAL, std_of(walk, step), err));
    if (step->sizes.bias != 0)
        WEFT_TRY(weft_step_add_tensor(walk, step, columns, 0, WEFT_INIT_ZERO, 0, err));
    WEFT_TRY(weft_step_add_output(walk, step, step->rows, columns, err));
    if (step->from->then == WEFT_WORD_NONE) return WEFT_OK;
    if (step->from->then != WEFT_WORD_GELU)
        return weft_step_refuse(walk, step, err, "\"then\" must be gelu");
    return weft_step_add_output(walk, step, step->rows, columns, err);
}

static unsigned product_reads(const struct weft_walk *walk, const struct weft_walk_step *step)
{
    (void)walk;
    return WEFT_STEP_IN0 | (step->from->then != WEFT_WORD_NONE ? WEFT_STEP_OUT0 : 0);
}

static double product_flops(const struct weft_walk *walk, const struct weft_walk_step *step)
{
    (void)walk;
    return 2 * (double)step->rows * (double)step->sizes.columns *
           (double)weft_span_width(&step->in[0]);
}

static double product_backward_flops(const struct weft_walk *walk,
                                     const struct weft_walk_step *step)
{
    return (walk->layer->frozen ? 1 : 2) * product_flops(walk, step);
}

static void product_scratch(struct weft_walk *walk, const struct weft_walk_step *step,
                            struct weft_step_scratch *out)
{
    if (step->sizes.bias == 0) return;
    out->sums = weft_times(&walk->fits, step->sizes.columns, (int64_t)sizeof(float));
    out->gpu_backward = weft_step_stripes(walk, step->rows, step->sizes.columns);
}

const struct weft_op weft_op_product = {
    .name = "product",
    .n_in = 1,
    .required = WEFT_SIZE(columns),
    .optional = WEFT_SIZE(bias),
    .tensors = {"weight", "bias"},
    .adds_value = true,
    .has_weight = true,
    .counts = true,
    .adds = WEFT_STEP_IN0,
    .holds = WEFT_WALK_NONE,
    .shape = shape_product,
    .reads = product_reads,
    .flops = product_flops,
    .backward_flops = product_backward_flops,
    .scratch = product_scratch,
};
