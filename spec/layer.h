/* What a layer needs, as pure functions of its sizes and of the batch: tensors, saved activations,
 * workspace, flops, bytes moved. runtime/nn computes on exactly the buffers declared here, laid out
 * inside as spec/layer_layout.h says.
 *
 * Tensor order of each type (index in weft_layer.tensors; h = hidden):
 *
 *   embedding          0 tokens [vocab, h]; 1 positions [positions, h] when positions > 0
 *   transformer_block  0 ln1.weight, 1 ln1.bias, 2 attn.qkv.weight [3h, h], 3 attn.qkv.bias,
 *                      4 attn.proj.weight [h, h], 5 attn.proj.bias, 6 ln2.weight, 7 ln2.bias,
 *                      8 mlp.fc.weight [ffn, h], 9 mlp.fc.bias, 10 mlp.proj.weight [h, ffn],
 *                      11 mlp.proj.bias (pre-norm GPT-2, causal attention, tanh GELU)
 *   layer_norm         0 weight, 1 bias
 *   linear             0 weight [outputs, inputs]; 1 bias when it has one
 *   relu, gelu         none
 *   lm_head            0 weight [vocab, h], the embedding's tokens when tied; 1 bias
 *   classifier         0 weight [classes, h]; 1 bias; reads the mean over the sequence
 *   llama_block        0 input_norm, 1 q [h, h], 2 k [kv_heads * d, h], 3 v, 4 o [h, h],
 *                      5 post_norm, 6 gate [ffn, h], 7 up [ffn, h], 8 down [h, ffn], with d = h /
 *                      heads (planning only)
 *   rms_norm           0 weight (planning only)
 *   encoder_block      as transformer_block; attention sees the whole sequence, and keeps no
 *                      probabilities (BERT, ViT; planning only)
 *   moe_block          0 input_norm, 1 q, 2 k, 3 v, 4 o, 5 post_norm, 6 router [experts, h],
 *                      7 gate [experts * ffn, h], 8 up, 9 down [experts * h, ffn] (Mixtral;
 *                      planning only)
 *   conv2d             0 weight [filters, channels * kernel^2]; 1 bias when it has one; then
 *                      norm.weight, norm.bias when normalised (planning only)
 *   bottleneck         0 conv1 [width, channels], 1 norm1.weight, 2 norm1.bias, 3 conv2 [width,
 *                      9 * width], 4, 5 norm2, 6 conv3 [filters, width], 7, 8 norm3; where it
 *                      projects: 9 shortcut [filters, channels], 10, 11 shortcut.norm (ResNet-50;
 *                      planning only)
 *   pool2d             none (planning only)
 *   custom             0 parameters [parameters] when there are any (planning only)
 *   supplied           those of its kind (include/weft.h), in its order
 *
 * With T = samples * seq_len rows, what flows between layers is [T, width] in the compute dtype.
 * The model's input is int32 token numbers [T] for an embedding, else numbers [T, hidden]. Targets
 * are int32 [T] for lm_head and [samples] for classifier. A loss layer has no output: the sum of
 * its rows' losses goes to the caller.
 *
 * Backward reads, beside weights, saved and the gradient of the output: the input for
 * transformer_block, layer_norm, gelu, and, unless frozen, embedding, linear, lm_head; the output
 * for relu; neither for classifier; what its kind says for a supplied layer.
 *
 * Flops: 2 a multiply-add. Attention counts half of its products, those below the diagonal,
 * whatever a kernel computes. Backward is twice forward; a frozen layer saves the products that
 * give gradients of weights. */
#ifndef WEFT_SPEC_LAYER_H
#define WEFT_SPEC_LAYER_H

#include <stdbool.h>
#include <stdint.h>

#include "spec/model.h"

struct weft_batch {
    int64_t samples; /* on one rank, one micro-step */
    int64_t seq_len;
    enum weft_dtype compute;
};

/* Buffers of one layer on one rank. All multiples of nothing in particular: the layout aligns. */
struct weft_layer_work {
    int64_t output_bytes; /* what the next layer reads; 0 for a loss layer */
    int64_t saved_bytes;  /* written by forward, read by backward, private to the layer */
    int64_t forward_temporary_bytes;
    int64_t backward_temporary_bytes;
    bool backward_reads_input;  /* backward needs the previous layer's output */
    bool backward_reads_output; /* backward needs this layer's own output */
    double forward_flops, backward_flops;
    double forward_moved_bytes,
        backward_moved_bytes; /* least memory traffic, for memory-bound layers */
};

/* Side of the square that an image layer gives: image / stride, rounded up (padding keeps the
 * rest), as PyTorch's ResNet and VGG have it. */
int64_t weft_layer_side(const struct weft_layer *layer);
/* True when a bottleneck's input is not of its output's shape, so that its shortcut is a product.
 */
bool weft_layer_projects(const struct weft_layer *layer);

/* WEFT_E_DATA, naming the layer, when a size overflows or seq_len exceeds positions. */
WEFT_MUST_USE enum weft_status weft_layer_work(const struct weft_layer *layer,
                                               const struct weft_batch *batch,
                                               struct weft_layer_work *out, struct weft_error *err);

/* A text that is equal for layers (and batches) that take the same time, e.g.
 * "transformer_block hidden=64 heads=4 ffn=256 samples=4 seq=64 f32"; the key of profile entries.
 * NULL when memory runs out; owned by the pool. */
WEFT_MUST_USE char *weft_layer_key(struct weft_pool *pool, const struct weft_layer *layer,
                                   const struct weft_batch *batch);

/* Bytes of the model's input and targets for one micro-step, held from the first forward to the
 * first layer's backward (input) and from the first forward to the last layer's backward
 * (targets). */
int64_t weft_model_input_bytes(const struct weft_model *model, const struct weft_batch *batch);
/* The same before it is loaded: numbers are fp32 then, whatever the layers compute in. */
int64_t weft_model_host_input_bytes(const struct weft_model *model, const struct weft_batch *batch);
int64_t weft_model_target_bytes(const struct weft_model *model, const struct weft_batch *batch);

#endif
