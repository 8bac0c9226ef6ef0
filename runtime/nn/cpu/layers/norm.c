/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/nn/cpu/layers/walk.h"

enum { WEIGHT, BIAS };
enum { MEAN, RSTD };

/* Kind rms has only rstd. */
static struct weft_parts parts_of(const struct weft_nn_walked *at)
{
    const int64_t parts = at->step->sizes.parts > 0 ? at->step->sizes.parts : 1;
    return (struct weft_parts){.rows = at->in[0].rows,
                               .parts = parts,
                               .width = at->in[0].columns / parts,
                               .x_stride = at->in[0].stride,
                               .y_stride = at->out[0].stride,
                               .shift = (float)at->step->numbers.shift};
}

static enum weft_status rms_backward(const struct weft_nn_walked *at)
{
    const struct weft_parts parts = parts_of(at);
    weft_nn_step_kernels(at)->rms_norm_backward(
        &parts, at->in[0].data, weft_nn_step_weight(at, WEIGHT), at->statistics[0], at->d_out.data,
        at->old[0].data, at->d_in[0].data, at->sums);
    weft_nn_step_give(at, WEIGHT, parts.width, 1, at->sums);
    return WEFT_OK;
}

enum weft_status weft_nn_cpu_norm_forward(const struct weft_nn_walked *at, struct weft_error *err)
{
    (void)err;
    if (at->step->from->kind == WEFT_WORD_RMS) {
        const struct weft_parts parts = parts_of(at);
        weft_nn_step_kernels(at)->rms_norm(&parts, (float)at->step->numbers.epsilon, at->in[0].data,
                                           weft_nn_step_weight(at, WEIGHT), at->out[0].data,
                                           at->statistics[0]);
        return WEFT_OK;
    }
    weft_nn_step_kernels(at)->layer_norm(
        at->in[0].rows, at->in[0].columns, (float)at->step->numbers.epsilon, at->in[0].data,
        weft_nn_step_weight(at, WEIGHT), weft_nn_step_weight(at, BIAS), at->out[0].data,
        at->statistics[MEAN], at->statistics[RSTD]);
    return WEFT_OK;
}

enum weft_status weft_nn_cpu_norm_backward(const struct weft_nn_walked *at, struct weft_error *err)
{
    (void)err;
    if (at->step->from->kind == WEFT_WORD_RMS) return rms_backward(at);
    const int64_t width = at->in[0].columns;
    weft_nn_step_kernels(at)->layer_norm_backward(
        at->in[0].rows, width, at->in[0].data, weft_nn_step_weight(at, WEIGHT),
        at->statistics[MEAN], at->statistics[RSTD], at->d_out.data, at->old[0].data,
        at->d_in[0].data, at->sums);
    weft_nn_step_give(at, WEIGHT, width, 1, at->sums);
    weft_nn_step_give(at, BIAS, width, 1, at->sums + width);
    return WEFT_OK;
}
