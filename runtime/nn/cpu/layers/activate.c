#include "runtime/nn/cpu/layers/walk.h"

static bool is_relu(const struct weft_nn_cpu_step *at)
{
    return at->step->from->kind == WEFT_WORD_RELU;
}

enum weft_status weft_nn_cpu_activate_forward(const struct weft_nn_cpu_step *at,
                                              struct weft_error *err)
{
    (void)err;
    const struct weft_layer_kernels *kernels = weft_nn_step_kernels(at);
    const int64_t n = at->in[0].rows * at->in[0].columns;
    (is_relu(at) ? kernels->relu : kernels->gelu)(n, at->in[0].data, at->out[0].data);
    return WEFT_OK;
}

enum weft_status weft_nn_cpu_activate_backward(const struct weft_nn_cpu_step *at,
                                               struct weft_error *err)
{
    (void)err;
    const struct weft_layer_kernels *kernels = weft_nn_step_kernels(at);
    const int64_t rows = at->in[0].rows, columns = at->in[0].columns;
    if (is_relu(at))
        kernels->relu_backward(rows * columns, at->out[0].data, at->d_out.data, at->d_in[0].data);
    else
        kernels->gelu_backward(rows, columns, at->in[0].data, at->d_out.data, at->d_in[0].data,
                               NULL);
    return WEFT_OK;
}
