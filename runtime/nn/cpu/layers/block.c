#include <string.h>

#include "layers/shared/block.h"
#include "layers/shared/layout.h"
#include "runtime/nn/cpu/cpu.h"

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

/* Addresses of a call's buffers. layers/shared/layout.h gives the shapes. */
struct block {
    int64_t rows, hidden, ffn;
    float *ln1_mean, *ln1_rstd, *ln2_mean, *ln2_rstd;
    void *ln1_out, *qkv, *attended, *residual, *ln2_out, *fc, *gelu;
    void *d_fc, *d_qkv, *d_ln2, *d_attention, *d_ln1, *d_residual, *d_scores;
    float *sums;
    struct weft_nn_attention attention;
    struct weft_nn_linear to_qkv, to_residual, to_fc, to_output;
};

static struct weft_nn_linear linear_of(const struct weft_nn_call *call, int weight, int64_t inputs,
                                       int64_t outputs, const void *x)
{
    return (struct weft_nn_linear){.dtype = call->batch.compute,
                                   .rows = call->batch.samples * call->batch.seq_len,
                                   .inputs = inputs,
                                   .outputs = outputs,
                                   .x = x,
                                   .weight = call->tensors[weight]};
}

/* Rows of [q, k, v]. */
static void set_rows(enum weft_dtype dtype, const void *qkv, int64_t hidden,
                     struct weft_nn_attention *attention)
{
    attention->query = qkv;
    attention->key = weft_nn_at(dtype, qkv, hidden);
    attention->value = weft_nn_at(dtype, qkv, 2 * hidden);
    attention->query_stride = attention->key_stride = attention->value_stride = 3 * hidden;
}

/* `temporary_bytes` come before the dropped ones in the call's temporary buffer. */
static struct block block_of(const struct weft_nn_call *call, int64_t temporary_bytes)
{
    const struct weft_transformer_block_layout at =
        weft_layout_transformer_block(call->layer, &call->batch, call->recompute);
    const int64_t h = call->layer->hidden, f = weft_block_key(call->layer, WEFT_BLOCK_FFN);
    char *saved = call->saved, *dropped = NULL;
    if (call->recompute != WEFT_RECOMPUTE_NONE)
        dropped = weft_nn_part(call->temporary, weft_dropped_offset(temporary_bytes));
    char *products = call->recompute == WEFT_RECOMPUTE_WHOLE ? dropped : saved;
    char *others = call->recompute == WEFT_RECOMPUTE_NONE ? saved : dropped;
    struct block block = {
        .rows = call->batch.samples * call->batch.seq_len,
        .hidden = h,
        .ffn = f,
        .ln1_mean = weft_nn_part(others, at.saved.ln1_mean),
        .ln1_rstd = weft_nn_part(others, at.saved.ln1_rstd),
        .ln1_out = weft_nn_part(others, at.saved.ln1_out),
        .qkv = weft_nn_part(products, at.saved.qkv),
        .attended = weft_nn_part(others, at.saved.attention),
        .residual = weft_nn_part(products, at.saved.residual),
        .ln2_mean = weft_nn_part(others, at.saved.ln2_mean),
        .ln2_rstd = weft_nn_part(others, at.saved.ln2_rstd),
        .ln2_out = weft_nn_part(others, at.saved.ln2_out),
        .fc = weft_nn_part(products, at.saved.fc),
        .gelu = weft_nn_part(others, at.saved.gelu),
        .attention = {.dtype = call->batch.compute,
                      .samples = call->batch.samples,
                      .seq_len = call->batch.seq_len,
                      .probabilities = weft_nn_part(others, at.saved.probabilities)}};
    const int64_t heads = weft_block_key(call->layer, WEFT_BLOCK_HEADS);
    block.attention.heads = block.attention.kv_heads = heads;
    block.attention.size = h / heads;
    set_rows(call->batch.compute, block.qkv, h, &block.attention);
    block.to_qkv = linear_of(call, QKV_WEIGHT, h, 3 * h, block.ln1_out);
    block.to_residual = linear_of(call, PROJ_WEIGHT, h, h, block.attended);
    block.to_fc = linear_of(call, FC_WEIGHT, h, f, block.ln2_out);
    block.to_output = linear_of(call, MLP_PROJ_WEIGHT, f, h, block.gelu);
    return block;
}

static struct block block_backward_of(const struct weft_nn_call *call)
{
    const struct weft_transformer_block_layout at =
        weft_layout_transformer_block(call->layer, &call->batch, call->recompute);
    char *temporary = call->temporary;
    struct block block = block_of(call, at.backward.bytes);
    block.d_fc = weft_nn_part(temporary, at.backward.d_fc);
    block.d_qkv = weft_nn_part(temporary, at.backward.d_qkv);
    block.d_ln2 = weft_nn_part(temporary, at.backward.d_ln2);
    block.d_attention = weft_nn_part(temporary, at.backward.d_attention);
    block.d_ln1 = weft_nn_part(temporary, at.backward.d_ln1);
    block.d_residual = weft_nn_part(temporary, at.backward.d_residual);
    block.d_scores = weft_nn_part(temporary, at.backward.d_scores);
    block.sums = weft_nn_part(temporary, at.backward.sums);
    return block;
}

/* Attends with this call's rows, which follow those in the cache. */
static enum weft_status attend_behind(const struct weft_nn_cpu *cpu,
                                      const struct weft_nn_call *call, const struct block *b,
                                      struct weft_error *err)
{
    const struct weft_nn_cache *cache = call->cache;
    const enum weft_dtype dtype = call->batch.compute;
    struct weft_nn_attention attention = b->attention;
    attention.seq_len = cache->before + b->rows;
    attention.first = cache->before;
    set_rows(dtype, cache->qkv, b->hidden, &attention);
    attention.query = b->qkv;
    attention.probabilities = cache->scores;
    memcpy(weft_nn_to(dtype, cache->qkv, cache->before * 3 * b->hidden), b->qkv,
           (size_t)(b->rows * 3 * b->hidden * weft_dtype_bytes(dtype)));
    return weft_nn_cpu_attend_from(cpu, &attention, b->attended, err);
}

/* Computes the parts that are saved. Without `products`, results of products with weights are there
 * already. */
static enum weft_status fill_saved(const struct weft_nn_cpu *cpu, const struct weft_nn_call *call,
                                   const struct block *b, bool products, struct weft_error *err)
{
    const struct weft_layer_kernels *kernels = weft_nn_kernels(cpu, call);
    const void *const *w = call->tensors;
    const void *x = call->input;
    const struct weft_product_finish to_qkv = {.bias = w[QKV_BIAS]},
                                     to_residual = {.bias = w[PROJ_BIAS], .residual = x},
                                     to_fc = {.bias = w[FC_BIAS], .gelu = b->gelu};

    kernels->layer_norm(b->rows, b->hidden, x, w[LN1_WEIGHT], w[LN1_BIAS], b->ln1_out, b->ln1_mean,
                        b->ln1_rstd);
    if (products) WEFT_TRY(weft_nn_cpu_map(cpu, &b->to_qkv, &to_qkv, b->qkv, err));
    WEFT_TRY(call->cache != NULL ? attend_behind(cpu, call, b, err)
                                 : weft_nn_cpu_attend(cpu, &b->attention, b->attended, err));
    if (products) WEFT_TRY(weft_nn_cpu_map(cpu, &b->to_residual, &to_residual, b->residual, err));

    kernels->layer_norm(b->rows, b->hidden, b->residual, w[LN2_WEIGHT], w[LN2_BIAS], b->ln2_out,
                        b->ln2_mean, b->ln2_rstd);
    if (products) return weft_nn_cpu_map(cpu, &b->to_fc, &to_fc, b->fc, err);
    kernels->gelu(b->rows * b->ffn, b->fc, b->gelu); /* the bits of the product's finish */
    return WEFT_OK;
}

enum weft_status weft_nn_cpu_block_forward(const struct weft_nn_cpu *cpu,
                                           const struct weft_nn_call *call, struct weft_error *err)
{
    const struct block b = block_of(call, 0);
    const struct weft_product_finish to_output = {.bias = call->tensors[MLP_PROJ_BIAS],
                                                  .residual = b.residual};
    WEFT_TRY(fill_saved(cpu, call, &b, true, err));
    return weft_nn_cpu_map(cpu, &b.to_output, &to_output, call->output, err);
}

/* From the output's gradient to the gradient of the residual between attention and MLP. */
static enum weft_status mlp_backward(const struct weft_nn_cpu *cpu, const struct weft_nn_call *call,
                                     const struct block *b, struct weft_error *err)
{
    const struct weft_layer_kernels *kernels = weft_nn_kernels(cpu, call);
    const struct weft_product_finish to_fc = {.gelu_input = b->fc, .column_sums = b->sums};
    const struct weft_product_finish to_ln2 = {0};
    const void *dy = call->output_gradient;
    weft_nn_cpu_map_bias(cpu, &b->to_output, 1, dy, call, MLP_PROJ_BIAS, b->sums);
    WEFT_TRY(weft_nn_cpu_map_weight(cpu, &b->to_output, 1, dy, call, MLP_PROJ_WEIGHT, err));

    WEFT_TRY(weft_nn_cpu_map_input(cpu, &b->to_output, 1, &to_fc, dy, b->d_fc, err));
    weft_nn_cpu_give(cpu, call, FC_BIAS, b->ffn, 1, b->sums);
    WEFT_TRY(weft_nn_cpu_map_weight(cpu, &b->to_fc, 1, b->d_fc, call, FC_WEIGHT, err));
    WEFT_TRY(weft_nn_cpu_map_input(cpu, &b->to_fc, 1, &to_ln2, b->d_fc, b->d_ln2, err));

    kernels->layer_norm_backward(b->rows, b->hidden, b->residual, call->tensors[LN2_WEIGHT],
                                 b->ln2_mean, b->ln2_rstd, b->d_ln2, dy, b->d_residual, b->sums);
    weft_nn_cpu_give(cpu, call, LN2_WEIGHT, b->hidden, 1, b->sums);
    weft_nn_cpu_give(cpu, call, LN2_BIAS, b->hidden, 1, b->sums + b->hidden);
    return WEFT_OK;
}

static enum weft_status attention_backward(const struct weft_nn_cpu *cpu,
                                           const struct weft_nn_call *call, const struct block *b,
                                           struct weft_error *err)
{
    const struct weft_product_finish finish = {0};
    weft_nn_cpu_map_bias(cpu, &b->to_residual, 1, b->d_residual, call, PROJ_BIAS, b->sums);
    WEFT_TRY(
        weft_nn_cpu_map_weight(cpu, &b->to_residual, 1, b->d_residual, call, PROJ_WEIGHT, err));
    WEFT_TRY(weft_nn_cpu_map_input(cpu, &b->to_residual, 1, &finish, b->d_residual, b->d_attention,
                                   err));
    const enum weft_dtype dtype = call->batch.compute;
    const struct weft_nn_attention_gradients to = {.query = b->d_qkv,
                                                   .key = weft_nn_to(dtype, b->d_qkv, b->hidden),
                                                   .value =
                                                       weft_nn_to(dtype, b->d_qkv, 2 * b->hidden),
                                                   .scores = b->d_scores};
    WEFT_TRY(
        weft_nn_cpu_attend_backward(cpu, &b->attention, b->attended, b->d_attention, &to, err));
    weft_nn_cpu_map_bias(cpu, &b->to_qkv, 1, b->d_qkv, call, QKV_BIAS, b->sums);
    WEFT_TRY(weft_nn_cpu_map_weight(cpu, &b->to_qkv, 1, b->d_qkv, call, QKV_WEIGHT, err));
    WEFT_TRY(weft_nn_cpu_map_input(cpu, &b->to_qkv, 1, &finish, b->d_qkv, b->d_ln1, err));

    const struct weft_layer_kernels *kernels = weft_nn_kernels(cpu, call);
    kernels->layer_norm_backward(b->rows, b->hidden, call->input, call->tensors[LN1_WEIGHT],
                                 b->ln1_mean, b->ln1_rstd, b->d_ln1, b->d_residual,
                                 call->input_gradient, b->sums);
    weft_nn_cpu_give(cpu, call, LN1_WEIGHT, b->hidden, 1, b->sums);
    weft_nn_cpu_give(cpu, call, LN1_BIAS, b->hidden, 1, b->sums + b->hidden);
    return WEFT_OK;
}

enum weft_status weft_nn_cpu_block_backward(const struct weft_nn_cpu *cpu,
                                            const struct weft_nn_call *call, struct weft_error *err)
{
    const struct block block = block_backward_of(call);
    if (call->recompute != WEFT_RECOMPUTE_NONE)
        WEFT_TRY(fill_saved(cpu, call, &block, call->recompute == WEFT_RECOMPUTE_WHOLE, err));
    WEFT_TRY(mlp_backward(cpu, call, &block, err));
    return attention_backward(cpu, call, &block, err);
}
