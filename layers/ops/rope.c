/* SPDX-License-Identifier: Apache-2.0 */
/* Turns each head of the input's columns by its row's position (layers/shared/rope.h): pairs (j, j
 * + head_dim / 2), as in Hugging Face's Llama. The output is the input's whole value, in place, and
 * backward turns back. `factor` 0: no scaling. */
#include "layers/shared/rope.h"
#include "layers/recipe/op.h"

static enum weft_status check_numbers(const struct weft_walk *walk,
                                      const struct weft_walk_step *step, struct weft_error *err)
{
    const struct weft_step_numbers *n = &step->numbers;
    if (!(n->base >= 1))
        return weft_step_refuse(walk, step, err, "\"base\" is %g; it must be at least 1", n->base);
    if (n->factor == 0) return WEFT_OK;
    if (!(n->factor >= 1))
        return weft_step_refuse(walk, step, err, "\"factor\" is %g; it must be at least 1, or 0",
                                n->factor);
    if (!(n->low > 0) || !(n->low < n->high))
        return weft_step_refuse(walk, step, err,
                                "\"low\" is %g and \"high\" is %g; they must be above 0, and low "
                                "below high",
                                n->low, n->high);
    if (step->sizes.original < 1)
        return weft_step_refuse(walk, step, err,
                                "\"original\" is missing: the sequence length before scaling");
    return WEFT_OK;
}

static enum weft_status shape_rope(struct weft_walk *walk, struct weft_walk_step *step,
                                   struct weft_error *err)
{
    const int64_t size = step->sizes.head_dim;
    const struct weft_value *in = &walk->values[step->in[0].value];
    WEFT_TRY(weft_step_check_rows(walk, step, err));
    if (size < 2 || size % 2 != 0 || size > WEFT_ROPE_MOST_SIZE)
        return weft_step_refuse(walk, step, err,
                                "head_dim is %lld; it must be even, and at most %d",
                                (long long)size, WEFT_ROPE_MOST_SIZE);
    if (weft_span_width(&step->in[0]) % size != 0)
        return weft_step_refuse(walk, step, err, "head_dim %lld does not divide its %lld columns",
                                (long long)size, (long long)weft_span_width(&step->in[0]));
    WEFT_TRY(check_numbers(walk, step, err));
    return weft_step_add_output(walk, step, step->rows, in->columns, err);
}

static unsigned rope_reads(const struct weft_walk *walk, const struct weft_walk_step *step)
{
    (void)walk, (void)step;
    return 0;
}

static double rope_flops(const struct weft_walk *walk, const struct weft_walk_step *step)
{
    (void)walk;
    return 6 * (double)step->rows * (double)weft_span_width(&step->in[0]);
}

const struct weft_op weft_op_rope = {
    .name = "rope",
    .n_in = 1,
    .required = WEFT_SIZE(head_dim),
    .optional = WEFT_SIZE(original),
    .numbers = WEFT_NUMBER(base) | WEFT_NUMBER(factor) | WEFT_NUMBER(low) | WEFT_NUMBER(high),
    .in_place = true,
    .holds = WEFT_WALK_NONE,
    .shape = shape_rope,
    .reads = rope_reads,
    .flops = rope_flops,
};
