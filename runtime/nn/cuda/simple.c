/* SPDX-License-Identifier: Apache-2.0 */
/* Layers of one or two kernels: embedding, layer norm, activations. */
#include "layers/embedding.h"
#include "layers/recipe/layout.h"
#include "runtime/nn/cuda/kinds.h"

static struct weft_cuda_embedding embedding_of(const struct weft_nn_call *call)
{
    return (struct weft_cuda_embedding){.rows = weft_cuda_rows(call),
                                        .width = call->layer->hidden,
                                        .seq_len = call->batch.seq_len,
                                        .vocab = call->layer->vocab,
                                        .tokens = call->input};
}

int weft_cuda_embedding_forward(const struct weft_cuda_call *c)
{
    const struct weft_nn_call *call = c->call;
    const struct weft_cuda_embedding embedding = embedding_of(call);
    const bool positions = weft_embedding_positions(call->layer) > 0;
    return weft_cuda_embed(call->batch.compute, &embedding, call->tensors[0],
                           positions ? call->tensors[1] : NULL, call->output, c->found, c->on);
}

static struct weft_cuda_table table_of(const struct weft_nn_call *call, int tensor)
{
    return (struct weft_cuda_table){.dy = call->output_gradient,
                                    .gradient_dtype = call->gradient_dtype,
                                    .accumulate = call->accumulate[tensor],
                                    .gradient = call->gradients[tensor]};
}

int weft_cuda_embedding_backward(const struct weft_cuda_call *c)
{
    const struct weft_nn_call *call = c->call;
    const struct weft_cuda_embedding embedding = embedding_of(call);
    const struct weft_cuda_table tokens = table_of(call, 0), places = table_of(call, 1);
    const int64_t positions = weft_embedding_positions(call->layer);
    int code = 0;
    if (tokens.gradient != NULL)
        code = weft_cuda_embed_tokens(call->batch.compute, &embedding, &tokens, c->on);
    if (code != 0 || places.gradient == NULL || positions == 0) return code;
    return weft_cuda_embed_positions(call->batch.compute, &embedding, positions, &places, c->on);
}

struct weft_nn_needs weft_cuda_norm_needs(bool plain, const struct weft_layer *layer,
                                          const struct weft_batch *batch)
{
    const int64_t rows = batch->samples * batch->seq_len;
    return (struct weft_nn_needs){.backward_bytes =
                                      plain ? 0 : weft_cuda_layer_norm_bytes(rows, layer->hidden)};
}

int weft_cuda_norm_forward(const struct weft_cuda_call *c)
{
    const struct weft_nn_call *call = c->call;
    const struct weft_layer_norm_layout layout = WEFT_CUDA_LAYOUT(layer_norm, call);
    return weft_cuda_layer_norm(call->batch.compute, weft_cuda_rows(call), call->layer->hidden,
                                call->input, call->tensors[0], call->tensors[1], call->output,
                                weft_cuda_part(call->saved, layout.saved.mean),
                                weft_cuda_part(call->saved, layout.saved.rstd), c->on);
}

int weft_cuda_norm_backward(const struct weft_cuda_call *c)
{
    const struct weft_nn_call *call = c->call;
    const struct weft_layer_norm_layout layout = WEFT_CUDA_LAYOUT(layer_norm, call);
    const int64_t width = call->layer->hidden;
    const struct weft_cuda_norm norm = {.rows = weft_cuda_rows(call),
                                        .width = width,
                                        .x = call->input,
                                        .weight = call->tensors[0],
                                        .mean = weft_cuda_part(call->saved, layout.saved.mean),
                                        .rstd = weft_cuda_part(call->saved, layout.saved.rstd),
                                        .dy = call->output_gradient};
    float *sums = weft_cuda_part(call->temporary, layout.backward.sums);
    int code = weft_cuda_layer_norm_backward(call->batch.compute, &norm, call->input_gradient, sums,
                                             c->cuda->plain ? NULL : c->workspace, c->on);
    if (code == 0) code = weft_cuda_give(c, 0, width, NULL, sums);
    return code != 0 ? code : weft_cuda_give(c, 1, width, NULL, sums + width);
}

static int64_t elements_of(const struct weft_nn_call *call)
{
    return weft_cuda_rows(call) * call->layer->hidden;
}

int weft_cuda_relu_layer_forward(const struct weft_cuda_call *c)
{
    const struct weft_nn_call *call = c->call;
    return weft_cuda_relu(call->batch.compute, elements_of(call), call->input, call->output, c->on);
}

int weft_cuda_relu_layer_backward(const struct weft_cuda_call *c)
{
    const struct weft_nn_call *call = c->call;
    if (call->input_gradient == NULL) return 0;
    return weft_cuda_relu_backward(call->batch.compute, elements_of(call), call->output,
                                   call->output_gradient, call->input_gradient, c->on);
}

int weft_cuda_gelu_layer_forward(const struct weft_cuda_call *c)
{
    const struct weft_nn_call *call = c->call;
    return weft_cuda_gelu(call->batch.compute, elements_of(call), call->input, call->output, c->on);
}

int weft_cuda_gelu_layer_backward(const struct weft_cuda_call *c)
{
    const struct weft_nn_call *call = c->call;
    if (call->input_gradient == NULL) return 0;
    return weft_cuda_gelu_backward(call->batch.compute, elements_of(call), call->input,
                                   call->output_gradient, call->input_gradient, c->on);
}
