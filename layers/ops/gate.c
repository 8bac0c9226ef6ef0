/* SPDX-License-Identifier: Apache-2.0 */
/* y = silu(gate) up, of the inputs gate and up; or with gelu. Backward works in place: the gradient
 * of y may lie in that of up. */
#include "layers/recipe/op.h"

static enum weft_status shape_gate(struct weft_walk *walk, struct weft_walk_step *step,
                                   struct weft_error *err)
{
    const int64_t gate = weft_span_width(&step->in[0]), up = weft_span_width(&step->in[1]);
    if (gate != up || step->in[0].value != step->in[1].value)
        return weft_step_refuse(walk, step, err,
                                "its inputs must be as many columns of one value, not %lld and "
                                "%lld",
                                (long long)gate, (long long)up);
    return weft_step_add_output(walk, step, step->rows, gate, err);
}

static unsigned gate_reads(const struct weft_walk *walk, const struct weft_walk_step *step)
{
    (void)walk, (void)step;
    return WEFT_STEP_IN0 | WEFT_STEP_IN1;
}

static double gate_flops(const struct weft_walk *walk, const struct weft_walk_step *step)
{
    (void)walk;
    return 6 * (double)step->rows * (double)weft_span_width(&step->in[0]);
}

const struct weft_op weft_op_gate = {
    .name = "gate",
    .n_in = 2,
    .kinds = 1u << WEFT_WORD_SILU | 1u << WEFT_WORD_GELU,
    .holds = 1,
    .shape = shape_gate,
    .reads = gate_reads,
    .flops = gate_flops,
};
