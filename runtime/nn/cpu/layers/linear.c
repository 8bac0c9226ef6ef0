#include "layers/shared/layout.h"
#include "runtime/nn/cpu/cpu.h"

enum weft_status weft_nn_cpu_map(const struct weft_nn_cpu *cpu, const struct weft_nn_linear *linear,
                                 const struct weft_product_finish *finish, void *y,
                                 struct weft_error *err)
{
    const struct weft_product product = {.transpose_b = true,
                                         .dtype = linear->dtype,
                                         .c_dtype = linear->dtype,
                                         .m = linear->rows,
                                         .n = linear->outputs,
                                         .k = linear->inputs,
                                         .a = linear->x,
                                         .a_stride = linear->inputs,
                                         .b = linear->weight,
                                         .b_stride = linear->inputs,
                                         .alpha = 1,
                                         .c = y,
                                         .c_stride = linear->outputs + linear->gap,
                                         .finish = *finish};
    return weft_gemm_run(cpu->gemm, &product, err);
}

enum weft_status weft_nn_cpu_map_input(const struct weft_nn_cpu *cpu,
                                       const struct weft_nn_linear *linear, float alpha,
                                       const struct weft_product_finish *finish, const void *dy,
                                       void *dx, struct weft_error *err)
{
    const struct weft_product product = {.dtype = linear->dtype,
                                         .c_dtype = linear->dtype,
                                         .m = linear->rows,
                                         .n = linear->inputs,
                                         .k = linear->outputs,
                                         .a = dy,
                                         .a_stride = linear->outputs + linear->gap,
                                         .b = linear->weight,
                                         .b_stride = linear->inputs,
                                         .alpha = alpha,
                                         .c = dx,
                                         .c_stride = linear->inputs,
                                         .finish = *finish};
    return weft_gemm_run(cpu->gemm, &product, err);
}

enum weft_status weft_nn_cpu_map_weight(const struct weft_nn_cpu *cpu,
                                        const struct weft_nn_linear *linear, float alpha,
                                        const void *dy, const struct weft_nn_call *call, int tensor,
                                        struct weft_error *err)
{
    if (!call->gradients[tensor]) return WEFT_OK;
    const struct weft_product product = {.transpose_a = true,
                                         .dtype = linear->dtype,
                                         .c_dtype = call->gradient_dtype,
                                         .m = linear->outputs,
                                         .n = linear->inputs,
                                         .k = linear->rows,
                                         .a = dy,
                                         .a_stride = linear->outputs + linear->gap,
                                         .b = linear->x,
                                         .b_stride = linear->inputs,
                                         .alpha = alpha,
                                         .accumulate = call->accumulate[tensor],
                                         .c = call->gradients[tensor],
                                         .c_stride = linear->inputs};
    return weft_gemm_run(cpu->gemm, &product, err);
}

void weft_nn_cpu_give(const struct weft_nn_cpu *cpu, const struct weft_nn_call *call, int tensor,
                      int64_t n, float alpha, const float *sums)
{
    if (!call->gradients[tensor]) return;
    cpu->kernels->layers[call->gradient_dtype]->add_to(n, alpha, sums, call->accumulate[tensor],
                                                       call->gradients[tensor]);
}

void weft_nn_cpu_map_bias(const struct weft_nn_cpu *cpu, const struct weft_nn_linear *linear,
                          float alpha, const void *dy, const struct weft_nn_call *call, int tensor,
                          float *sums)
{
    if (!call->gradients[tensor]) return;
    cpu->kernels->layers[linear->dtype]->column_sums(linear->rows, linear->outputs,
                                                     linear->outputs + linear->gap, dy, sums);
    weft_nn_cpu_give(cpu, call, tensor, linear->outputs, alpha, sums);
}

static struct weft_nn_linear linear_of(const struct weft_nn_call *call)
{
    return (struct weft_nn_linear){.dtype = call->batch.compute,
                                   .rows = call->batch.samples * call->batch.seq_len,
                                   .inputs = call->layer->hidden,
                                   .outputs = call->layer->outputs,
                                   .x = call->input,
                                   .weight = call->tensors[0]};
}

enum weft_status weft_nn_cpu_linear_forward(const struct weft_nn_cpu *cpu,
                                            const struct weft_nn_call *call, struct weft_error *err)
{
    const struct weft_nn_linear linear = linear_of(call);
    const struct weft_product_finish finish = {.bias = call->layer->bias ? call->tensors[1] : NULL};
    return weft_nn_cpu_map(cpu, &linear, &finish, call->output, err);
}

enum weft_status weft_nn_cpu_linear_backward(const struct weft_nn_cpu *cpu,
                                             const struct weft_nn_call *call,
                                             struct weft_error *err)
{
    const struct weft_linear_layout layout = weft_layout_linear(call->layer, &call->batch);
    const struct weft_nn_linear linear = linear_of(call);
    const struct weft_product_finish finish = {0};
    const void *dy = call->output_gradient;
    if (call->layer->bias) {
        weft_nn_cpu_map_bias(cpu, &linear, 1, dy, call, 1,
                             weft_nn_part(call->temporary, layout.backward.sums));
    }
    WEFT_TRY(weft_nn_cpu_map_weight(cpu, &linear, 1, dy, call, 0, err));
    if (!call->input_gradient) return WEFT_OK;
    return weft_nn_cpu_map_input(cpu, &linear, 1, &finish, dy, call->input_gradient, err);
}
