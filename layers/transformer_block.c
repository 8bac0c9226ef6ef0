/* GPT-2's block: pre-norm, causal attention, tanh GELU. Backward reads the input. */
#include "layers/recipe/recipe.h"
#include "layers/shared/block.h"
#include "layers/shared/layout.h"
#include "layers/shared/scratch.h"

static const struct weft_field transformer_block_keys[] = {WEFT_ROW_HIDDEN, WEFT_ROW_HEADS,
                                                           WEFT_ROW_FFN};

static enum weft_status transformer_block_needs(struct weft_subject *subject,
                                                struct weft_layer_work *work,
                                                struct weft_error *err)
{
    (void)err;
    struct weft_transformer_block_layout layout =
        weft_layout_transformer_block(subject->layer, subject->batch, WEFT_RECOMPUTE_NONE);
    double h = subject->h, f = (double)weft_block_key(subject->layer, WEFT_BLOCK_FFN);
    double weights = 4 * h * h + 2 * h * f;
    /* scores and values, each 2tsh, halved by causality */
    weft_block_set_flops(subject, weights, 2 * subject->t * subject->s * h, work);
    work->saved_bytes = layout.saved.bytes;
    work->backward_temporary_bytes = layout.backward.bytes;
    work->backward_scratch_bytes = weft_scratch_block(subject);
    work->backward_reads_input = true; /* the first layer norm reads it */
    for (int level = WEFT_RECOMPUTE_SELECTIVE; level < WEFT_RECOMPUTE_COUNT; level++) {
        layout = weft_layout_transformer_block(subject->layer, subject->batch,
                                               (enum weft_recompute)level);
        work->splits[level] = (struct weft_layer_split){
            .possible = true,
            .kept_bytes = layout.saved.bytes,
            .dropped_bytes = layout.saved.dropped_bytes,
        };
    }
    /* Restoring repeats attention, and whole also all products except the last. */
    const double attention = 2 * subject->t * subject->s * h;
    work->splits[WEFT_RECOMPUTE_SELECTIVE].flops = attention;
    work->splits[WEFT_RECOMPUTE_WHOLE].flops = 2 * subject->t * (weights - h * f) + attention;
    subject->weights = weights;
    return WEFT_OK;
}

static const struct weft_recipe_step transformer_block_steps[] = {
    {.op = &weft_op_norm,
     .in = {"x"},
     .out = {"ln1"},
     .kind = WEFT_WORD_LAYER,
     .tensors = {"ln1.weight", "ln1.bias"}},
    {.op = &weft_op_product,
     .in = {"ln1"},
     .out = {"qkv"},
     .columns = "3*hidden",
     .bias = "1",
     .tensors = {"attn.qkv.weight", "attn.qkv.bias"}},
    {.op = &weft_op_attend,
     .in = {"qkv[0:hidden]", "qkv[hidden:2*hidden]", "qkv[2*hidden:3*hidden]"},
     .out = {"attention"},
     .causal = "1",
     .heads = "heads",
     .kv_heads = "heads",
     .head_dim = "hidden/heads"},
    {.op = &weft_op_product,
     .in = {"attention"},
     .out = {"residual"},
     .columns = "hidden",
     .bias = "1",
     .add = "x",
     .init = WEFT_WORD_RESIDUAL,
     .tensors = {"attn.proj.weight", "attn.proj.bias"}},
    {.op = &weft_op_norm,
     .in = {"residual"},
     .out = {"ln2"},
     .kind = WEFT_WORD_LAYER,
     .tensors = {"ln2.weight", "ln2.bias"}},
    {.op = &weft_op_product,
     .in = {"ln2"},
     .out = {"fc", "gelu"},
     .columns = "ffn",
     .bias = "1",
     .then = WEFT_WORD_GELU,
     .tensors = {"mlp.fc.weight", "mlp.fc.bias"}},
    {.op = &weft_op_product,
     .in = {"gelu"},
     .out = {"y"},
     .columns = "hidden",
     .bias = "1",
     .add = "residual",
     .init = WEFT_WORD_RESIDUAL,
     .tensors = {"mlp.proj.weight", "mlp.proj.bias"}},
};
static const struct weft_recipe transformer_block_recipe = {WEFT_STEPS(transformer_block_steps),
                                                            .recomputes = true};

const struct weft_kind weft_kind_transformer_block = {
    .type = "transformer_block",
    .recipe = &transformer_block_recipe,
    .text = "GPT-2 block: pre-norm, causal attention, GELU",
    WEFT_KEYS(transformer_block_keys),
    .trains = true,
    .closes_residual = true,
    .by_rows = true,
    .complete = weft_block_complete,
    .check = weft_block_check,
    .shape = weft_block_shape,
    .needs = transformer_block_needs,
    .keeps = {"ln1 (mean, rstd, output), q, k, v, attention (probabilities or statistics, output), "
              "residual, ln2 (mean, rstd, output), fc, GELU",
              "q, k, v, residual, fc (on a GPU GELU too)", "the layer's input alone"},
    .add_sizes = weft_block_add_sizes,
};
