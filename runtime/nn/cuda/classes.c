/* SPDX-License-Identifier: Apache-2.0 */
/* Layers with classes and a loss: a map to logits, and their gradient in place. */
#include "layers/recipe/layout.h"
#include "runtime/nn/cuda/kinds.h"
#include "runtime/nn/cuda/record.h"

/* The workspace has losses of rows in forward. In backward it has the scale of gradients, then
 * partial sums of columns. */
enum { SCALE_BYTES = 64 };

static struct weft_nn_needs needs_of_classes(bool plain, const struct weft_layer *layer,
                                             int64_t rows, int64_t outputs)
{
    const bool sums = layer->bias && !plain;
    return (struct weft_nn_needs){
        .forward_bytes = rows * (int64_t)sizeof(double),
        .backward_bytes = SCALE_BYTES + (sums ? weft_cuda_column_bytes(rows, outputs) : 0)};
}

static int classify_rows(const struct weft_cuda_call *c, const struct weft_cuda_linear *linear,
                         void *d_logits)
{
    const struct weft_nn_call *call = c->call;
    const struct weft_product_finish finish = {.bias = call->layer->bias ? call->tensors[1] : NULL};
    double *losses = (double *)(void *)c->workspace;
    int code = weft_cuda_map(c, linear, &finish, d_logits);
    if (code == 0) {
        code = (c->cuda->plain ? weft_cuda_cross_entropy_plain : weft_cuda_cross_entropy)(
            linear->dtype, linear->rows, linear->outputs, linear->outputs + linear->gap,
            call->targets, d_logits, losses, c->found, c->on);
    }
    if (code != 0) return code;
    return weft_cuda_loss_total(linear->rows, losses, call->adds_loss, call->loss, c->on);
}

static int classify_backward(const struct weft_cuda_call *c, const struct weft_cuda_linear *linear,
                             const void *d_logits, float *sums, void *dx)
{
    const struct weft_nn_call *call = c->call;
    const struct weft_product_finish finish = {0};
    float *times = (float *)(void *)c->workspace;
    int code = weft_cuda_scale(call->loss_scale, call->scale, times, c->on);
    if (code == 0 && call->layer->bias) {
        code = weft_cuda_map_bias(c, linear, times, d_logits, 1, sums, c->workspace + SCALE_BYTES);
    }
    if (code == 0) code = weft_cuda_map_weight(c, linear, times, d_logits, 0);
    if (code != 0 || dx == NULL) return code;
    return weft_cuda_map_input(c, linear, times, &finish, d_logits, dx);
}

static struct weft_cuda_linear head_of_call(const struct weft_nn_call *call, int64_t gap)
{
    return (struct weft_cuda_linear){.dtype = call->batch.compute,
                                     .rows = weft_cuda_rows(call),
                                     .inputs = call->layer->hidden,
                                     .outputs = call->layer->vocab,
                                     .gap = gap,
                                     .x = call->input,
                                     .weight = call->tensors[0]};
}

struct weft_nn_needs weft_cuda_lm_head_needs(bool plain, const struct weft_layer *layer,
                                             const struct weft_batch *batch)
{
    return needs_of_classes(plain, layer, batch->samples * batch->seq_len, layer->vocab);
}

static int32_t maps_of_classes(const struct weft_layer *layer, int64_t rows, int64_t outputs,
                               int64_t gap, struct weft_cuda_map out[WEFT_CUDA_MOST_MAPS])
{
    *out = (struct weft_cuda_map){.rows = rows,
                                  .inputs = layer->hidden,
                                  .outputs = outputs,
                                  .finish = layer->bias ? WEFT_CUDA_BIAS : 0,
                                  .timed = true,
                                  .gap = gap};
    return 1;
}

int32_t weft_cuda_lm_head_maps(const struct weft_layer *layer, const struct weft_batch *batch,
                               struct weft_cuda_map out[WEFT_CUDA_MOST_MAPS])
{
    return maps_of_classes(layer, batch->samples * batch->seq_len, layer->vocab,
                           weft_layout_lm_head(layer, batch).gap, out);
}

int32_t weft_cuda_classifier_maps(const struct weft_layer *layer, const struct weft_batch *batch,
                                  struct weft_cuda_map out[WEFT_CUDA_MOST_MAPS])
{
    return maps_of_classes(layer, batch->samples, layer->outputs,
                           weft_layout_classifier(layer, batch).gap, out);
}

int weft_cuda_lm_head_forward(const struct weft_cuda_call *c)
{
    const struct weft_lm_head_layout layout = WEFT_CUDA_LAYOUT(lm_head, c->call);
    const struct weft_cuda_linear linear = head_of_call(c->call, layout.gap);
    return classify_rows(c, &linear, weft_cuda_part(c->call->saved, layout.saved.d_logits));
}

int weft_cuda_lm_head_backward(const struct weft_cuda_call *c)
{
    const struct weft_nn_call *call = c->call;
    const struct weft_lm_head_layout layout = WEFT_CUDA_LAYOUT(lm_head, call);
    const struct weft_cuda_linear linear = head_of_call(call, layout.gap);
    return classify_backward(c, &linear, weft_cuda_part(call->saved, layout.saved.d_logits),
                             weft_cuda_part(call->temporary, layout.backward.sums),
                             call->input_gradient);
}

static struct weft_cuda_linear classifier_of_call(const struct weft_nn_call *call, int64_t gap,
                                                  const void *pooled)
{
    return (struct weft_cuda_linear){.dtype = call->batch.compute,
                                     .rows = call->batch.samples,
                                     .inputs = call->layer->hidden,
                                     .outputs = call->layer->outputs,
                                     .gap = gap,
                                     .x = pooled,
                                     .weight = call->tensors[0]};
}

struct weft_nn_needs weft_cuda_classifier_needs(bool plain, const struct weft_layer *layer,
                                                const struct weft_batch *batch)
{
    return needs_of_classes(plain, layer, batch->samples, layer->outputs);
}

int weft_cuda_classifier_forward(const struct weft_cuda_call *c)
{
    const struct weft_nn_call *call = c->call;
    const struct weft_classifier_layout layout = WEFT_CUDA_LAYOUT(classifier, call);
    void *pooled = weft_cuda_value(call, false, "pooled", NULL);
    const struct weft_cuda_linear linear = classifier_of_call(call, layout.gap, pooled);
    const int code = weft_cuda_pool(linear.dtype, call->batch.samples, call->batch.seq_len,
                                    linear.inputs, call->input, pooled, c->on);
    if (code != 0) return code;
    return classify_rows(c, &linear, weft_cuda_part(call->saved, layout.saved.d_logits));
}

int weft_cuda_classifier_backward(const struct weft_cuda_call *c)
{
    const struct weft_nn_call *call = c->call;
    const struct weft_classifier_layout layout = WEFT_CUDA_LAYOUT(classifier, call);
    const struct weft_cuda_linear linear =
        classifier_of_call(call, layout.gap, weft_cuda_value(call, true, "pooled", NULL));
    void *d_pooled = call->input_gradient != NULL
                         ? weft_cuda_part(call->temporary, layout.backward.d_pooled)
                         : NULL;
    const int code =
        classify_backward(c, &linear, weft_cuda_part(call->saved, layout.saved.d_logits),
                          weft_cuda_part(call->temporary, layout.backward.sums), d_pooled);
    if (code != 0 || d_pooled == NULL) return code;
    return weft_cuda_spread(linear.dtype, call->batch.samples, call->batch.seq_len, linear.inputs,
                            d_pooled, call->input_gradient, c->on);
}
