/* SPDX-License-Identifier: Apache-2.0 */
/* y = a + b, of values of one shape. Both inputs have the output's gradient as their own. */
#include "layers/recipe/op.h"

static enum weft_status shape_add(struct weft_walk *walk, struct weft_walk_step *step,
                                  struct weft_error *err)
{
    const struct weft_value *a = &walk->values[step->in[0].value];
    const struct weft_value *b = &walk->values[step->in[1].value];
    const int64_t columns = weft_span_width(&step->in[0]);
    if (columns != a->columns || weft_span_width(&step->in[1]) != b->columns ||
        columns != b->columns || a->rows != b->rows)
        return weft_step_refuse(walk, step, err,
                                "its inputs must be whole values of one shape, not %lld and %lld "
                                "columns of \"%s\" and \"%s\"",
                                (long long)columns, (long long)weft_span_width(&step->in[1]),
                                a->name, b->name);
    return weft_step_add_output(walk, step, step->rows, columns, err);
}

static unsigned add_reads(const struct weft_walk *walk, const struct weft_walk_step *step)
{
    (void)walk, (void)step;
    return 0;
}

static double add_flops(const struct weft_walk *walk, const struct weft_walk_step *step)
{
    (void)walk;
    return (double)step->rows * (double)weft_span_width(&step->in[0]);
}

const struct weft_op weft_op_add = {
    .name = "add",
    .n_in = 2,
    .sums = true,
    .holds = WEFT_WALK_NONE,
    .shape = shape_add,
    .reads = add_reads,
    .flops = add_flops,
};
