#include "runtime/nn/cpu/cpu.h"

static int64_t rows_of(const struct weft_nn_call *call)
{
    return call->batch.samples * call->batch.seq_len;
}

enum weft_status weft_nn_cpu_relu_forward(const struct weft_nn_cpu *cpu,
                                          const struct weft_nn_call *call, struct weft_error *err)
{
    (void)err;
    weft_nn_kernels(cpu, call)->relu(rows_of(call) * call->layer->hidden, call->input,
                                     call->output);
    return WEFT_OK;
}

enum weft_status weft_nn_cpu_relu_backward(const struct weft_nn_cpu *cpu,
                                           const struct weft_nn_call *call, struct weft_error *err)
{
    (void)err;
    if (!call->input_gradient) return WEFT_OK;
    weft_nn_kernels(cpu, call)->relu_backward(rows_of(call) * call->layer->hidden, call->output,
                                              call->output_gradient, call->input_gradient);
    return WEFT_OK;
}

enum weft_status weft_nn_cpu_gelu_forward(const struct weft_nn_cpu *cpu,
                                          const struct weft_nn_call *call, struct weft_error *err)
{
    (void)err;
    weft_nn_kernels(cpu, call)->gelu(rows_of(call) * call->layer->hidden, call->input,
                                     call->output);
    return WEFT_OK;
}

enum weft_status weft_nn_cpu_gelu_backward(const struct weft_nn_cpu *cpu,
                                           const struct weft_nn_call *call, struct weft_error *err)
{
    (void)err;
    if (!call->input_gradient) return WEFT_OK;
    weft_nn_kernels(cpu, call)->gelu_backward(rows_of(call), call->layer->hidden, call->input,
                                              call->output_gradient, call->input_gradient, NULL);
    return WEFT_OK;
}
