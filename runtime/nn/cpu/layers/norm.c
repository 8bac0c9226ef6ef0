#include "runtime/nn/cpu/layers/walk.h"

enum { WEIGHT, BIAS };
enum { MEAN, RSTD };

enum weft_status weft_nn_cpu_norm_forward(const struct weft_nn_cpu_step *at, struct weft_error *err)
{
    (void)err;
    weft_nn_step_kernels(at)->layer_norm(
        at->in[0].rows, at->in[0].columns, at->in[0].data, weft_nn_step_weight(at, WEIGHT),
        weft_nn_step_weight(at, BIAS), at->out[0].data, at->statistics[MEAN], at->statistics[RSTD]);
    return WEFT_OK;
}

enum weft_status weft_nn_cpu_norm_backward(const struct weft_nn_cpu_step *at,
                                           struct weft_error *err)
{
    (void)err;
    const int64_t width = at->in[0].columns;
    weft_nn_step_kernels(at)->layer_norm_backward(
        at->in[0].rows, width, at->in[0].data, weft_nn_step_weight(at, WEIGHT),
        at->statistics[MEAN], at->statistics[RSTD], at->d_out.data, at->old[0].data,
        at->d_in[0].data, at->sums);
    weft_nn_step_give(at, WEIGHT, width, 1, at->sums);
    weft_nn_step_give(at, BIAS, width, 1, at->sums + width);
    return WEFT_OK;
}
