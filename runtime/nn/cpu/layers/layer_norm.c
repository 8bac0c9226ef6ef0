#include "layers/shared/layout.h"
#include "runtime/nn/cpu/cpu.h"

enum weft_status weft_nn_cpu_layer_norm_forward(const struct weft_nn_cpu *cpu,
                                                const struct weft_nn_call *call,
                                                struct weft_error *err)
{
    (void)err;
    const struct weft_layer_norm_layout layout = weft_layout_layer_norm(call->layer, &call->batch);
    weft_nn_kernels(cpu, call)->layer_norm(
        call->batch.samples * call->batch.seq_len, call->layer->hidden, call->input,
        call->tensors[0], call->tensors[1], call->output,
        weft_nn_part(call->saved, layout.saved.mean), weft_nn_part(call->saved, layout.saved.rstd));
    return WEFT_OK;
}

enum weft_status weft_nn_cpu_layer_norm_backward(const struct weft_nn_cpu *cpu,
                                                 const struct weft_nn_call *call,
                                                 struct weft_error *err)
{
    (void)err;
    const struct weft_layer_norm_layout layout = weft_layout_layer_norm(call->layer, &call->batch);
    const int64_t width = call->layer->hidden;
    float *sums = weft_nn_part(call->temporary, layout.backward.sums);
    weft_nn_kernels(cpu, call)->layer_norm_backward(
        call->batch.samples * call->batch.seq_len, width, call->input, call->tensors[0],
        weft_nn_part(call->saved, layout.saved.mean), weft_nn_part(call->saved, layout.saved.rstd),
        call->output_gradient, NULL, call->input_gradient, sums);
    weft_nn_cpu_give(cpu, call, 0, width, 1, sums);
    weft_nn_cpu_give(cpu, call, 1, width, 1, sums + width);
    return WEFT_OK;
}
