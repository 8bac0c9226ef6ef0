/* Normalises rows. Kind layer: tensors weight and bias, statistics mean and rstd. Kind rms: weight
 * and rstd. */
#include "layers/recipe/op.h"

static bool has_mean(const struct weft_walk_step *step)
{
    return step->from->kind == WEFT_WORD_LAYER;
}

static enum weft_status shape_norm(struct weft_walk *walk, struct weft_walk_step *step,
                                   struct weft_error *err)
{
    const int64_t width = weft_span_width(&step->in[0]);
    WEFT_TRY(weft_step_add_tensor(walk, step, width, 0, WEFT_INIT_ONE, 0, err));
    if (has_mean(step)) {
        WEFT_TRY(weft_step_add_tensor(walk, step, width, 0, WEFT_INIT_ZERO, 0, err));
        WEFT_TRY(weft_step_add_statistic(walk, step, "mean", step->rows, 1, WEFT_VALUE_F32, err));
    }
    WEFT_TRY(weft_step_add_statistic(walk, step, "rstd", step->rows, 1, WEFT_VALUE_F32, err));
    return weft_step_add_output(walk, step, step->rows, width, err);
}

static unsigned norm_reads(const struct weft_walk *walk, const struct weft_walk_step *step)
{
    (void)walk, (void)step;
    return WEFT_STEP_IN0 | WEFT_STEP_STATS;
}

static double norm_flops(const struct weft_walk *walk, const struct weft_walk_step *step)
{
    (void)walk;
    return (has_mean(step) ? 8 : 4) * (double)step->rows * (double)weft_span_width(&step->in[0]);
}

static void norm_scratch(struct weft_walk *walk, const struct weft_walk_step *step,
                         struct weft_step_scratch *out)
{
    const int64_t width = weft_span_width(&step->in[0]), sums = has_mean(step) ? 2 : 1;
    out->sums = weft_times(&walk->fits, weft_times(&walk->fits, sums, width), sizeof(float));
    out->gpu_backward = weft_times(&walk->fits, sums, weft_step_stripes(walk, step->rows, width));
}

const struct weft_op weft_op_norm = {
    .name = "norm",
    .n_in = 1,
    .kinds = 1u << WEFT_WORD_LAYER | 1u << WEFT_WORD_RMS,
    .adds = WEFT_STEP_IN0,
    .holds = WEFT_WALK_NONE,
    .shape = shape_norm,
    .reads = norm_reads,
    .flops = norm_flops,
    .scratch = norm_scratch,
};
