/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/recipe/layout.h"
#include "runtime/nn/cuda/kinds.h"

int weft_cuda_map(const struct weft_cuda_call *c, const struct weft_cuda_linear *linear,
                  const struct weft_product_finish *finish, void *y)
{
    struct weft_product product = weft_product_dense(false, true, linear->rows, linear->outputs,
                                                     linear->inputs, linear->dtype);
    product.a = linear->x;
    product.b = linear->weight;
    product.c = y;
    product.c_stride = linear->outputs + linear->gap;
    product.finish = *finish;
    return weft_cuda_multiply(c->cuda, &product, NULL, c->on);
}

int weft_cuda_map_input(const struct weft_cuda_call *c, const struct weft_cuda_linear *linear,
                        const float *times, const struct weft_product_finish *finish,
                        const void *dy, void *dx)
{
    struct weft_product product = weft_product_dense(false, false, linear->rows, linear->inputs,
                                                     linear->outputs, linear->dtype);
    product.a = dy;
    product.a_stride = linear->outputs + linear->gap;
    product.b = linear->weight;
    product.c = dx;
    product.finish = *finish;
    return weft_cuda_multiply(c->cuda, &product, times, c->on);
}

int weft_cuda_map_weight(const struct weft_cuda_call *c, const struct weft_cuda_linear *linear,
                         const float *times, const void *dy, int tensor)
{
    const struct weft_nn_call *call = c->call;
    struct weft_product product = weft_product_dense(true, false, linear->outputs, linear->inputs,
                                                     linear->rows, linear->dtype);
    if (call->gradients[tensor] == NULL) return 0;
    product.c_dtype = call->gradient_dtype;
    product.a = dy;
    product.a_stride = linear->outputs + linear->gap;
    product.b = linear->x;
    product.c = call->gradients[tensor];
    product.accumulate = call->accumulate[tensor];
    return weft_cuda_multiply(c->cuda, &product, times, c->on);
}

int weft_cuda_give(const struct weft_cuda_call *c, int tensor, int64_t n, const float *times,
                   const float *sums)
{
    const struct weft_nn_call *call = c->call;
    if (call->gradients[tensor] == NULL) return 0;
    return weft_cuda_add(call->gradient_dtype, n, 1, times, sums, call->accumulate[tensor],
                         call->gradients[tensor], c->on);
}

int weft_cuda_map_bias(const struct weft_cuda_call *c, const struct weft_cuda_linear *linear,
                       const float *times, const void *dy, int tensor, float *sums, void *workspace)
{
    if (c->call->gradients[tensor] == NULL) return 0;
    const int code = weft_cuda_column_sums(linear->dtype, linear->rows, linear->outputs,
                                           linear->outputs + linear->gap, dy, sums,
                                           c->cuda->plain ? NULL : workspace, c->on);
    return code != 0 ? code : weft_cuda_give(c, tensor, linear->outputs, times, sums);
}

static struct weft_cuda_linear linear_of_call(const struct weft_nn_call *call)
{
    return (struct weft_cuda_linear){.dtype = call->batch.compute,
                                     .rows = weft_cuda_rows(call),
                                     .inputs = call->layer->hidden,
                                     .outputs = call->layer->outputs,
                                     .x = call->input,
                                     .weight = call->tensors[0]};
}

struct weft_nn_needs weft_cuda_linear_needs(bool plain, const struct weft_layer *layer,
                                            const struct weft_batch *batch)
{
    const int64_t rows = batch->samples * batch->seq_len;
    const bool sums = layer->bias && !plain;
    return (struct weft_nn_needs){.backward_bytes =
                                      sums ? weft_cuda_column_bytes(rows, layer->outputs) : 0};
}

int32_t weft_cuda_linear_maps(const struct weft_layer *layer, const struct weft_batch *batch,
                              struct weft_cuda_map out[WEFT_CUDA_MOST_MAPS])
{
    out[0] = (struct weft_cuda_map){.rows = batch->samples * batch->seq_len,
                                    .inputs = layer->hidden,
                                    .outputs = layer->outputs,
                                    .finish = layer->bias ? WEFT_CUDA_BIAS : 0};
    return 1;
}

int weft_cuda_linear_forward(const struct weft_cuda_call *c)
{
    const struct weft_cuda_linear linear = linear_of_call(c->call);
    const struct weft_product_finish finish = {.bias = c->call->layer->bias ? c->call->tensors[1]
                                                                            : NULL};
    return weft_cuda_map(c, &linear, &finish, c->call->output);
}

int weft_cuda_linear_backward(const struct weft_cuda_call *c)
{
    const struct weft_nn_call *call = c->call;
    const struct weft_linear_layout layout = WEFT_CUDA_LAYOUT(linear, call);
    const struct weft_cuda_linear linear = linear_of_call(call);
    const struct weft_product_finish finish = {0};
    const void *dy = call->output_gradient;
    int code = 0;
    if (call->layer->bias) {
        code =
            weft_cuda_map_bias(c, &linear, NULL, dy, 1,
                               weft_cuda_part(call->temporary, layout.backward.sums), c->workspace);
    }
    if (code == 0) code = weft_cuda_map_weight(c, &linear, NULL, dy, 0);
    if (code != 0 || call->input_gradient == NULL) return code;
    return weft_cuda_map_input(c, &linear, NULL, &finish, dy, call->input_gradient);
}
