/* SPDX-License-Identifier: Apache-2.0 */
/* Normalises rows. Kind layer: tensors weight and bias, statistics mean and rstd. Kind rms: weight
 * and rstd; and `parts` of a row alone, which share the weight. `epsilon` joins the variance or the
 * mean of squares. With `shift` it
 * multiplies by shift + weight, and weights begin as 1 - shift, which is 0 or 1. */
#include "layers/recipe/op.h"

static bool has_mean(const struct weft_walk_step *step)
{
    return step->from->kind == WEFT_WORD_LAYER;
}

static int64_t parts_of(const struct weft_walk_step *step)
{
    return step->sizes.parts > 0 ? step->sizes.parts : 1;
}

/* Whether the recipe gives a number. A key of 0 was left out, as in Weft's own kinds. */
static bool gives_epsilon(const struct weft_walk *walk, const struct weft_walk_step *step)
{
    const char *text = step->from->epsilon;
    return text != NULL && weft_kind_key(walk->layer->kind, text) == NULL;
}

static enum weft_status shape_norm(struct weft_walk *walk, struct weft_walk_step *step,
                                   struct weft_error *err)
{
    const int64_t columns = weft_span_width(&step->in[0]), parts = parts_of(step);
    if (has_mean(step) ? step->from->parts != NULL || step->from->shift != NULL
                       : step->from->epsilon == NULL)
        return weft_step_refuse(walk, step, err,
                                "kind layer has no parts and no shift, and kind rms an epsilon");
    if (!(step->numbers.epsilon >= 0))
        return weft_step_refuse(walk, step, err, "\"epsilon\" is %g; it must be at least 0",
                                step->numbers.epsilon);
    if (has_mean(step) && step->numbers.epsilon == 0) {
        if (gives_epsilon(walk, step))
            return weft_step_refuse(walk, step, err,
                                    "\"epsilon\" is 0; in kind layer it must be above 0, or left "
                                    "out for 1e-05");
        step->numbers.epsilon = WEFT_USUAL_EPSILON;
    }
    if (step->numbers.shift != 0 && step->numbers.shift != 1)
        return weft_step_refuse(walk, step, err, "\"shift\" is %g; it must be 0 or 1",
                                step->numbers.shift);
    if (has_mean(step)) WEFT_TRY(weft_step_check_whole(walk, step, err));
    if (columns % parts != 0)
        return weft_step_refuse(walk, step, err, "%lld parts do not divide %lld columns",
                                (long long)parts, (long long)columns);
    WEFT_TRY(weft_step_add_tensor(walk, step, columns / parts, 0,
                                  step->numbers.shift != 0 ? WEFT_INIT_ZERO : WEFT_INIT_ONE, 0,
                                  err));
    if (has_mean(step)) {
        WEFT_TRY(weft_step_add_tensor(walk, step, columns, 0, WEFT_INIT_ZERO, 0, err));
        WEFT_TRY(weft_step_add_statistic(walk, step, "mean", step->rows, 1, WEFT_VALUE_F32, err));
    }
    WEFT_TRY(weft_step_add_statistic(walk, step, "rstd", step->rows, parts, WEFT_VALUE_F32, err));
    return weft_step_add_output(walk, step, step->rows, columns, err);
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
    const int64_t width = weft_span_width(&step->in[0]) / parts_of(step);
    const int64_t sums = has_mean(step) ? 2 : 1;
    out->sums = weft_times(&walk->fits, weft_times(&walk->fits, sums, width), sizeof(float));
    const int64_t rows = weft_times(&walk->fits, step->rows, parts_of(step));
    out->gpu_backward = weft_times(&walk->fits, sums, weft_step_stripes(walk, rows, width));
}

const struct weft_op weft_op_norm = {
    .name = "norm",
    .n_in = 1,
    .optional = WEFT_SIZE(parts),
    .numbers = WEFT_NUMBER(epsilon) | WEFT_NUMBER(shift),
    .kinds = 1u << WEFT_WORD_LAYER | 1u << WEFT_WORD_RMS,
    .tensors = {"weight", "bias"},
    .adds = WEFT_STEP_IN0,
    .holds = WEFT_WALK_NONE,
    .shape = shape_norm,
    .reads = norm_reads,
    .flops = norm_flops,
    .scratch = norm_scratch,
};
