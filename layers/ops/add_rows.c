/* SPDX-License-Identifier: Apache-2.0 */
/* Adds a row of a table [positions, n] to each row: the one of its position in the sample. With
 * `vocab` the table has so many rows, and each row takes the first. With `first` a learned vector
 * takes the place of each sample's first input row. Backward needs the gradient alone. */
#include "layers/recipe/op.h"
#include "layers/shared/place.h"

static enum weft_status shape_add_rows(struct weft_walk *walk, struct weft_walk_step *step,
                                       struct weft_error *err)
{
    const int64_t columns = weft_span_width(&step->in[0]), positions = step->sizes.positions;
    WEFT_TRY(weft_step_check_whole(walk, step, err));
    WEFT_TRY(weft_step_check_rows(walk, step, err));
    if ((positions > 0) == (step->sizes.vocab > 0))
        return weft_step_refuse(walk, step, err,
                                "its table has \"positions\" or \"vocab\" rows: give one, above 0");
    if (positions > 0 && walk->batch.seq_len > positions)
        return weft_layer_refuse(err, walk->layer,
                                 "train.seq_len %lld is beyond its %lld positions; shorten seq_len "
                                 "or give it more positions",
                                 (long long)walk->batch.seq_len, (long long)positions);
    if (positions > 0) walk->most_rows = positions;
    WEFT_TRY(weft_step_add_tensor(walk, step, positions > 0 ? positions : step->sizes.vocab,
                                  columns, WEFT_INIT_NORMAL, WEFT_INIT_STD, err));
    if (step->sizes.first != 0)
        WEFT_TRY(weft_step_add_tensor(walk, step, columns, 0, WEFT_INIT_ZERO, 0, err));
    return weft_step_add_output(walk, step, step->rows, columns, err);
}

static unsigned add_rows_reads(const struct weft_walk *walk, const struct weft_walk_step *step)
{
    (void)walk, (void)step;
    return 0;
}

static double add_rows_flops(const struct weft_walk *walk, const struct weft_walk_step *step)
{
    (void)walk;
    return (double)step->rows * (double)weft_span_width(&step->in[0]);
}

/* A GPU adds all rows in stripes. */
static void add_rows_scratch(struct weft_walk *walk, const struct weft_walk_step *step,
                             struct weft_step_scratch *out)
{
    const int64_t columns = weft_span_width(&step->in[0]);
    int64_t sums = weft_times(&walk->fits, columns, (int64_t)sizeof(float));
    if (step->sizes.positions > 0) return;
    if (!weft_checked_round_up(sums, WEFT_LAYOUT_ALIGN_BYTES, &sums)) walk->fits.overflowed = true;
    out->gpu_backward = weft_plus(&walk->fits, sums, weft_step_stripes(walk, step->rows, columns));
}

const struct weft_op weft_op_add_rows = {
    .name = "add_rows",
    .n_in = 1,
    .optional = WEFT_SIZE(positions) | WEFT_SIZE(vocab) | WEFT_SIZE(first),
    .tensors = {"table", "first"},
    .counts = true,
    .holds = WEFT_WALK_NONE,
    .shape = shape_add_rows,
    .reads = add_rows_reads,
    .flops = add_rows_flops,
    .backward_flops = add_rows_flops,
    .scratch = add_rows_scratch,
};
