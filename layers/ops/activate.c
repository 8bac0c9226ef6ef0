/* SPDX-License-Identifier: Apache-2.0 */
/* y = f(x). The derivatives of ReLU and tanh follow from the output, which the next layer often
 * saves anyway. Those of GELU and of ReLU's square need the input. */
#include "layers/recipe/op.h"

static enum weft_status shape_activate(struct weft_walk *walk, struct weft_walk_step *step,
                                       struct weft_error *err)
{
    WEFT_TRY(weft_step_check_whole(walk, step, err));
    return weft_step_add_output(walk, step, step->rows, weft_span_width(&step->in[0]), err);
}

static unsigned activate_reads(const struct weft_walk *walk, const struct weft_walk_step *step)
{
    (void)walk;
    const bool by_output = step->from->kind == WEFT_WORD_RELU || step->from->kind == WEFT_WORD_TANH;
    return by_output ? WEFT_STEP_OUT0 : WEFT_STEP_IN0;
}

static double activate_flops(const struct weft_walk *walk, const struct weft_walk_step *step)
{
    (void)walk;
    const bool relu =
        step->from->kind == WEFT_WORD_RELU || step->from->kind == WEFT_WORD_SQUARED_RELU;
    return (relu ? 1 : 8) * (double)step->rows * (double)weft_span_width(&step->in[0]);
}

const struct weft_op weft_op_activate = {
    .name = "activate",
    .n_in = 1,
    .kinds = 1u << WEFT_WORD_GELU | 1u << WEFT_WORD_RELU | 1u << WEFT_WORD_SQUARED_RELU |
             1u << WEFT_WORD_GELU_ERF | 1u << WEFT_WORD_TANH,
    .holds = WEFT_WALK_NONE,
    .shape = shape_activate,
    .reads = activate_reads,
    .flops = activate_flops,
};
