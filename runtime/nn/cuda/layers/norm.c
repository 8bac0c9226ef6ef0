/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/nn/cuda/layers/walk.h"

enum { WEIGHT, BIAS };
enum { MEAN, RSTD };

/* Kind rms has only rstd. */
static struct weft_cuda_rms rms_of(const struct weft_nn_walked *at)
{
    const int64_t parts = at->step->sizes.parts > 0 ? at->step->sizes.parts : 1;
    return (struct weft_cuda_rms){.rows = at->in[0].rows,
                                  .parts = parts,
                                  .width = at->in[0].columns / parts,
                                  .x_stride = at->in[0].stride,
                                  .y_stride = at->out[0].stride,
                                  .x = at->in[0].data,
                                  .weight = weft_nn_step_weight(at, WEIGHT),
                                  .shift = (float)at->step->numbers.shift};
}

int weft_cuda_norm_forward(const struct weft_cuda_walked *s)
{
    const struct weft_nn_walked *at = s->at;
    if (at->step->from->kind == WEFT_WORD_RMS) {
        const struct weft_cuda_rms rms = rms_of(at);
        return weft_cuda_rms_norm(weft_cuda_step_dtype(s), &rms, (float)at->step->numbers.epsilon,
                                  at->out[0].data, at->statistics[0], s->on);
    }
    return weft_cuda_layer_norm(weft_cuda_step_dtype(s), at->in[0].rows, at->in[0].columns,
                                (float)at->step->numbers.epsilon, at->in[0].data,
                                weft_nn_step_weight(at, WEIGHT), weft_nn_step_weight(at, BIAS),
                                at->out[0].data, at->statistics[MEAN], at->statistics[RSTD], s->on);
}

static int rms_backward(const struct weft_cuda_walked *s, void *workspace)
{
    const struct weft_nn_walked *at = s->at;
    const struct weft_cuda_rms rms = rms_of(at);
    const int code = weft_cuda_rms_norm_backward(weft_cuda_step_dtype(s), &rms, at->statistics[0],
                                                 at->d_out.data, at->old[0].data, at->d_in[0].data,
                                                 at->sums, workspace, s->on);
    return code != 0 ? code : weft_cuda_give(s, WEIGHT, rms.width, at->sums);
}

int weft_cuda_norm_backward(const struct weft_cuda_walked *s)
{
    const struct weft_nn_walked *at = s->at;
    const int64_t width = at->in[0].columns;
    void *workspace = s->cuda->plain ? NULL : s->scratch;
    if (at->step->from->kind == WEFT_WORD_RMS) return rms_backward(s, workspace);
    const struct weft_cuda_norm norm = {.rows = at->in[0].rows,
                                        .width = width,
                                        .x = at->in[0].data,
                                        .weight = weft_nn_step_weight(at, WEIGHT),
                                        .mean = at->statistics[MEAN],
                                        .rstd = at->statistics[RSTD],
                                        .dy = at->d_out.data,
                                        .residual = at->old[0].data};
    int code = weft_cuda_layer_norm_backward(weft_cuda_step_dtype(s), &norm, at->d_in[0].data,
                                             at->sums, workspace, s->on);
    if (code == 0) code = weft_cuda_give(s, WEIGHT, width, at->sums);
    return code != 0 ? code : weft_cuda_give(s, BIAS, width, at->sums + width);
}
