/* SPDX-License-Identifier: Apache-2.0 */
/* A transformer block: layer norms, products with their finish, attention. */
#include <string.h>

#include "layers/recipe/layout.h"
#include "layers/recipe/walk.h"
#include "layers/shared/block.h"
#include "runtime/nn/cuda/attention_choices.h"
#include "runtime/nn/cuda/kinds.h"

enum tensor {
    LN1_WEIGHT,
    LN1_BIAS,
    QKV_WEIGHT,
    QKV_BIAS,
    PROJ_WEIGHT,
    PROJ_BIAS,
    LN2_WEIGHT,
    LN2_BIAS,
    FC_WEIGHT,
    FC_BIAS,
    MLP_PROJ_WEIGHT,
    MLP_PROJ_BIAS
};

/* Addresses of a call's buffers. layers/recipe/layout.h gives the shapes. */
struct block {
    int64_t rows, hidden, ffn;
    enum weft_dtype dtype;
    float *ln1_mean, *ln1_rstd, *ln2_mean, *ln2_rstd;
    void *ln1_out, *qkv, *attended, *residual, *ln2_out, *fc, *gelu;
    void *kept; /* attention's probabilities, or statistics of rows */
    void *d_fc, *d_qkv, *d_ln2, *d_attention, *d_ln1, *d_residual;
    float *sums;
    struct weft_cuda_attention attention;
    struct weft_cuda_linear to_qkv, to_residual, to_fc, to_output;
};

static struct weft_cuda_attention attention_of(const struct weft_layer *layer,
                                               const struct weft_batch *batch, const void *qkv)
{
    return (struct weft_cuda_attention){.dtype = batch->compute,
                                        .samples = batch->samples,
                                        .seq_len = batch->seq_len,
                                        .heads = weft_block_key(layer, WEFT_BLOCK_HEADS),
                                        .hidden = layer->hidden,
                                        .qkv = qkv};
}

/* True if tensor cores do attention. Their statistics use the place of probabilities, which has at
 * least as many bytes a row even if the plan reserves these. */
static bool by_tensor_cores(bool plain, const struct weft_layer *layer,
                            const struct weft_batch *batch)
{
    return !plain && weft_block_uses_tensor_cores(layer, batch);
}

bool weft_cuda_block_attends(bool plain, const struct weft_layer *layer,
                             const struct weft_batch *batch, struct weft_cuda_attention *out)
{
    if (strcmp(layer->kind->type, "transformer_block") != 0) return false;
    *out = attention_of(layer, batch, NULL);
    return by_tensor_cores(plain, layer, batch);
}

static int64_t most_of(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Parts of backward use the whole workspace one after another: partial sums of columns, then
 * gradients of scores or dots of rows. */
struct weft_nn_needs weft_cuda_block_needs(bool plain, const struct weft_layer *layer,
                                           const struct weft_batch *batch)
{
    const int64_t rows = batch->samples * batch->seq_len, h = layer->hidden;
    const int64_t width = most_of(weft_block_key(layer, WEFT_BLOCK_FFN), 3 * h);
    const int64_t heads = weft_block_key(layer, WEFT_BLOCK_HEADS);
    const int64_t of_heads = by_tensor_cores(plain, layer, batch)
                                 ? heads * rows * (int64_t)sizeof(float)
                                 : heads * rows * batch->seq_len * weft_dtype_bytes(batch->compute);
    const int64_t of_columns =
        most_of(weft_cuda_column_bytes(rows, width), weft_cuda_layer_norm_bytes(rows, h));
    return (struct weft_nn_needs){.backward_bytes =
                                      plain ? of_heads : most_of(of_heads, of_columns)};
}

int32_t weft_cuda_block_maps(const struct weft_layer *layer, const struct weft_batch *batch,
                             struct weft_cuda_map out[WEFT_CUDA_MOST_MAPS])
{
    const int64_t rows = batch->samples * batch->seq_len, h = layer->hidden;
    const int64_t f = weft_block_key(layer, WEFT_BLOCK_FFN);
    out[0] = (struct weft_cuda_map){rows, h, 3 * h, WEFT_CUDA_BIAS, 0, false, 0};
    out[1] = (struct weft_cuda_map){rows, h, h, WEFT_CUDA_BIAS | WEFT_CUDA_RESIDUAL, 0, false, 0};
    out[2] = (struct weft_cuda_map){rows, h, f, WEFT_CUDA_BIAS | WEFT_CUDA_GELU, 0, false, 0};
    out[3] = (struct weft_cuda_map){
        rows, f, h, WEFT_CUDA_BIAS | WEFT_CUDA_RESIDUAL, WEFT_CUDA_SLOPE, false, 0};
    return 4;
}

static struct weft_cuda_linear linear_of(const struct weft_nn_call *call, int weight,
                                         int64_t inputs, int64_t outputs, const void *x)
{
    return (struct weft_cuda_linear){.dtype = call->batch.compute,
                                     .rows = weft_cuda_rows(call),
                                     .inputs = inputs,
                                     .outputs = outputs,
                                     .x = x,
                                     .weight = call->tensors[weight]};
}

void *weft_cuda_value(const struct weft_nn_call *call, bool backward, const char *name,
                      const char *suffix)
{
    const struct weft_walk *walk = call->prepared;
    const struct weft_value *value = weft_walk_find(walk, name, suffix);
    const int64_t other_bytes = backward ? walk->backward_bytes : walk->forward_bytes;
    if (value == NULL) return NULL;
    switch (value->home) {
    case WEFT_VALUE_INPUT:
        return (void *)(uintptr_t)call->input;
    case WEFT_VALUE_OUTPUT:
        return call->output;
    case WEFT_VALUE_KEPT:
        return weft_cuda_part(call->saved, value->offset);
    case WEFT_VALUE_DROPPED:
        return weft_cuda_part(call->temporary, weft_dropped_offset(other_bytes) + value->offset);
    case WEFT_VALUE_TEMPORARY:
        return backward ? NULL : weft_cuda_part(call->temporary, value->offset);
    }
    return NULL;
}

static struct block block_of(const struct weft_nn_call *call, bool backward)
{
    const struct weft_transformer_block_layout at = WEFT_CUDA_LAYOUT(transformer_block, call);
    const int64_t h = call->layer->hidden, f = weft_block_key(call->layer, WEFT_BLOCK_FFN);
    const void *temporary = call->temporary;
    struct block block = {.rows = weft_cuda_rows(call),
                          .hidden = h,
                          .ffn = f,
                          .dtype = call->batch.compute,
                          .ln1_mean = weft_cuda_value(call, backward, "ln1", "mean"),
                          .ln1_rstd = weft_cuda_value(call, backward, "ln1", "rstd"),
                          .ln1_out = weft_cuda_value(call, backward, "ln1", NULL),
                          .qkv = weft_cuda_value(call, backward, "qkv", NULL),
                          .kept = weft_cuda_value(call, backward, "attention", "probabilities"),
                          .attended = weft_cuda_value(call, backward, "attention", NULL),
                          .residual = weft_cuda_value(call, backward, "residual", NULL),
                          .ln2_mean = weft_cuda_value(call, backward, "ln2", "mean"),
                          .ln2_rstd = weft_cuda_value(call, backward, "ln2", "rstd"),
                          .ln2_out = weft_cuda_value(call, backward, "ln2", NULL),
                          .fc = weft_cuda_value(call, backward, "fc", NULL),
                          .gelu = weft_cuda_value(call, backward, "gelu", NULL),
                          .d_fc = weft_cuda_part(temporary, at.backward.d_fc),
                          .d_qkv = weft_cuda_part(temporary, at.backward.d_qkv),
                          .d_ln2 = weft_cuda_part(temporary, at.backward.d_ln2),
                          .d_attention = weft_cuda_part(temporary, at.backward.d_attention),
                          .d_ln1 = weft_cuda_part(temporary, at.backward.d_ln1),
                          .d_residual = weft_cuda_part(temporary, at.backward.d_residual),
                          .sums = weft_cuda_part(temporary, at.backward.sums)};
    block.attention = attention_of(call->layer, &call->batch, block.qkv);
    block.to_qkv = linear_of(call, QKV_WEIGHT, h, 3 * h, block.ln1_out);
    block.to_residual = linear_of(call, PROJ_WEIGHT, h, h, block.attended);
    block.to_fc = linear_of(call, FC_WEIGHT, h, f, block.ln2_out);
    block.to_output = linear_of(call, MLP_PROJ_WEIGHT, f, h, block.gelu);
    return block;
}

static int attend_block(const struct weft_cuda_call *c, const struct block *b)
{
    if (by_tensor_cores(c->cuda->plain, c->call->layer, &c->call->batch))
        return weft_cuda_attention_forward(c->cuda, &b->attention, b->attended, b->kept,
                                           c->workspace, c->on);
    return weft_cuda_attend_plain(&b->attention, b->kept, b->attended, c->on);
}

static int attend_backward(const struct weft_cuda_call *c, const struct block *b)
{
    if (by_tensor_cores(c->cuda->plain, c->call->layer, &c->call->batch)) {
        return weft_cuda_attention_backward(c->cuda, &b->attention, b->attended, b->kept,
                                            b->d_attention, c->workspace, b->d_qkv, c->on);
    }
    return weft_cuda_attend_plain_backward(&b->attention, b->kept, b->d_attention, c->workspace,
                                           b->d_qkv, c->on);
}

/* Computes the parts that are saved. Without `products`, their results, GELU's output included, are
 * there already. */
static int fill_saved(const struct weft_cuda_call *c, const struct block *b, bool products)
{
    const struct weft_nn_call *call = c->call;
    const void *const *w = call->tensors;
    const struct weft_product_finish to_qkv = {.bias = w[QKV_BIAS]},
                                     to_residual = {.bias = w[PROJ_BIAS], .residual = call->input},
                                     to_fc = {.bias = w[FC_BIAS], .gelu = b->gelu};
    int code = weft_cuda_layer_norm(b->dtype, b->rows, b->hidden, call->input, w[LN1_WEIGHT],
                                    w[LN1_BIAS], b->ln1_out, b->ln1_mean, b->ln1_rstd, c->on);
    if (code == 0 && products) code = weft_cuda_map(c, &b->to_qkv, &to_qkv, b->qkv);
    if (code == 0) code = attend_block(c, b);
    if (code == 0 && products) code = weft_cuda_map(c, &b->to_residual, &to_residual, b->residual);
    if (code == 0) {
        code = weft_cuda_layer_norm(b->dtype, b->rows, b->hidden, b->residual, w[LN2_WEIGHT],
                                    w[LN2_BIAS], b->ln2_out, b->ln2_mean, b->ln2_rstd, c->on);
    }
    if (code == 0 && products) code = weft_cuda_map(c, &b->to_fc, &to_fc, b->fc);
    return code;
}

int weft_cuda_block_forward(const struct weft_cuda_call *c)
{
    const struct weft_nn_call *call = c->call;
    const struct block b = block_of(call, false);
    const struct weft_product_finish to_output = {.bias = call->tensors[MLP_PROJ_BIAS],
                                                  .residual = b.residual};
    const int code = fill_saved(c, &b, true);
    return code != 0 ? code : weft_cuda_map(c, &b.to_output, &to_output, call->output);
}

/* Computes the gradients of a map's weight and bias. */
static int map_backward(const struct weft_cuda_call *c, const struct block *b,
                        const struct weft_cuda_linear *linear, const void *dy, int weight, int bias)
{
    const int code = weft_cuda_map_bias(c, linear, NULL, dy, bias, b->sums, c->workspace);
    return code != 0 ? code : weft_cuda_map_weight(c, linear, NULL, dy, weight);
}

static int norm_backward(const struct weft_cuda_call *c, const struct block *b,
                         const struct weft_cuda_norm *norm, void *dx, int weight, int bias)
{
    int code = weft_cuda_layer_norm_backward(b->dtype, norm, dx, b->sums,
                                             c->cuda->plain ? NULL : c->workspace, c->on);
    if (code == 0) code = weft_cuda_give(c, weight, b->hidden, NULL, b->sums);
    return code != 0 ? code : weft_cuda_give(c, bias, b->hidden, NULL, b->sums + b->hidden);
}

/* From the output's gradient to the gradient of the residual between attention and MLP. */
static int mlp_backward(const struct weft_cuda_call *c, const struct block *b)
{
    const struct weft_nn_call *call = c->call;
    const struct weft_product_finish to_fc = {.gelu_input = b->fc}, to_ln2 = {0};
    const struct weft_cuda_norm norm = {.rows = b->rows,
                                        .width = b->hidden,
                                        .x = b->residual,
                                        .weight = call->tensors[LN2_WEIGHT],
                                        .mean = b->ln2_mean,
                                        .rstd = b->ln2_rstd,
                                        .dy = b->d_ln2,
                                        .residual = call->output_gradient};
    const void *dy = call->output_gradient;
    int code = map_backward(c, b, &b->to_output, dy, MLP_PROJ_WEIGHT, MLP_PROJ_BIAS);
    if (code == 0) code = weft_cuda_map_input(c, &b->to_output, NULL, &to_fc, dy, b->d_fc);
    if (code == 0) code = map_backward(c, b, &b->to_fc, b->d_fc, FC_WEIGHT, FC_BIAS);
    if (code == 0) code = weft_cuda_map_input(c, &b->to_fc, NULL, &to_ln2, b->d_fc, b->d_ln2);
    return code != 0 ? code : norm_backward(c, b, &norm, b->d_residual, LN2_WEIGHT, LN2_BIAS);
}

static int attention_backward(const struct weft_cuda_call *c, const struct block *b)
{
    const struct weft_nn_call *call = c->call;
    const struct weft_product_finish finish = {0};
    const struct weft_cuda_norm norm = {.rows = b->rows,
                                        .width = b->hidden,
                                        .x = call->input,
                                        .weight = call->tensors[LN1_WEIGHT],
                                        .mean = b->ln1_mean,
                                        .rstd = b->ln1_rstd,
                                        .dy = b->d_ln1,
                                        .residual = b->d_residual};
    int code = map_backward(c, b, &b->to_residual, b->d_residual, PROJ_WEIGHT, PROJ_BIAS);
    if (code == 0) {
        code =
            weft_cuda_map_input(c, &b->to_residual, NULL, &finish, b->d_residual, b->d_attention);
    }
    if (code == 0) code = attend_backward(c, b);
    if (code == 0) code = map_backward(c, b, &b->to_qkv, b->d_qkv, QKV_WEIGHT, QKV_BIAS);
    if (code == 0) code = weft_cuda_map_input(c, &b->to_qkv, NULL, &finish, b->d_qkv, b->d_ln1);
    return code != 0 ? code
                     : norm_backward(c, b, &norm, call->input_gradient, LN1_WEIGHT, LN1_BIAS);
}

int weft_cuda_block_backward(const struct weft_cuda_call *c)
{
    const struct block block = block_of(c->call, true);
    const enum weft_recompute level = c->call->recompute;
    int code = 0;
    if (level != WEFT_RECOMPUTE_NONE) code = fill_saved(c, &block, level == WEFT_RECOMPUTE_WHOLE);
    if (code == 0) code = mlp_backward(c, &block);
    return code != 0 ? code : attention_backward(c, &block);
}
