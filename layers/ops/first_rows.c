/* SPDX-License-Identifier: Apache-2.0 */
/* The first row of each sample: [rows, n] to [samples, n]. */
#include "layers/recipe/op.h"

static enum weft_status shape_first_rows(struct weft_walk *walk, struct weft_walk_step *step,
                                         struct weft_error *err)
{
    WEFT_TRY(weft_step_check_whole(walk, step, err));
    WEFT_TRY(weft_step_check_rows(walk, step, err));
    return weft_step_add_output(walk, step, walk->batch.samples, weft_span_width(&step->in[0]),
                                err);
}

static unsigned first_rows_reads(const struct weft_walk *walk, const struct weft_walk_step *step)
{
    (void)walk, (void)step;
    return 0;
}

static double first_rows_flops(const struct weft_walk *walk, const struct weft_walk_step *step)
{
    (void)walk, (void)step;
    return 0;
}

const struct weft_op weft_op_first_rows = {
    .name = "first_rows",
    .n_in = 1,
    .counts = true,
    .mixes_rows = true,
    .pools = true,
    .holds = WEFT_WALK_NONE,
    .shape = shape_first_rows,
    .reads = first_rows_reads,
    .flops = first_rows_flops,
};
