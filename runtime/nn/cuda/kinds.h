/* SPDX-License-Identifier: Apache-2.0 */
/* Forward and backward of the kinds of layers that train on a GPU, one file for each family. They
 * touch exactly the buffers of their call, at the offsets of layers/recipe/layout.h, and the
 * workspace. */
#ifndef WEFT_RUNTIME_NN_CUDA_KINDS_H
#define WEFT_RUNTIME_NN_CUDA_KINDS_H

#include "layers/recipe/layout.h"
#include "runtime/nn/cuda/multiply.h"

struct weft_cuda_call {
    const struct weft_nn_cuda *cuda;
    struct CUstream_st *on;
    const struct weft_nn_call *call;
    char *workspace; /* of the bytes in the kind's needs */
    uint32_t *found; /* of a layer that reads tokens or targets */
};

/* Returns CUDA's code. */
typedef int weft_cuda_kind_fn(const struct weft_cuda_call *c);
/* Bytes of workspace, forward and backward. */
typedef struct weft_nn_needs weft_cuda_needs_fn(bool plain, const struct weft_layer *layer,
                                                const struct weft_batch *batch);

weft_cuda_kind_fn weft_cuda_embedding_forward, weft_cuda_embedding_backward;
weft_cuda_kind_fn weft_cuda_block_forward, weft_cuda_block_backward;
weft_cuda_kind_fn weft_cuda_norm_forward, weft_cuda_norm_backward;
weft_cuda_kind_fn weft_cuda_linear_forward, weft_cuda_linear_backward;
weft_cuda_kind_fn weft_cuda_relu_layer_forward, weft_cuda_relu_layer_backward;
weft_cuda_kind_fn weft_cuda_gelu_layer_forward, weft_cuda_gelu_layer_backward;
weft_cuda_kind_fn weft_cuda_lm_head_forward, weft_cuda_lm_head_backward;
weft_cuda_kind_fn weft_cuda_classifier_forward, weft_cuda_classifier_backward;
weft_cuda_needs_fn weft_cuda_block_needs, weft_cuda_norm_needs, weft_cuda_linear_needs;
weft_cuda_needs_fn weft_cuda_lm_head_needs, weft_cuda_classifier_needs;

/* The part of a buffer at an offset. */
static inline void *weft_cuda_part(const void *buffer, int64_t offset_bytes)
{
    return (char *)(uintptr_t)buffer + offset_bytes;
}

/* The layout of a call's layer. Calls of layers with a recipe have a walk. */
#define WEFT_CUDA_LAYOUT(kind, call) weft_layout_##kind##_of((call)->prepared)

/* The memory of a value of the call's walk, by name and suffix (weft_walk_find). NULL for a value
 * of forward's temporaries in backward, which reads none of them. block.c has it. */
void *weft_cuda_value(const struct weft_nn_call *call, bool backward, const char *name,
                      const char *suffix);

static inline int64_t weft_cuda_rows(const struct weft_nn_call *call)
{
    return call->batch.samples * call->batch.seq_len;
}

/* The products of a kind's map, forward and backward. */
struct weft_cuda_map {
    int64_t rows, inputs, outputs;
    unsigned finish, input_finish; /* enum weft_cuda_finish: of forward, and of dx */
    bool timed;                    /* backward has a factor in GPU memory */
    int64_t gap;                   /* elements between rows of outputs */
};
enum { WEFT_CUDA_MOST_MAPS = 4 };
/* Returns the number of maps. */
typedef int32_t weft_cuda_maps_fn(const struct weft_layer *layer, const struct weft_batch *batch,
                                  struct weft_cuda_map out[WEFT_CUDA_MOST_MAPS]);
weft_cuda_maps_fn weft_cuda_block_maps, weft_cuda_linear_maps, weft_cuda_lm_head_maps;
weft_cuda_maps_fn weft_cuda_classifier_maps;
/* True if the layer is a block whose attention is on tensor cores; its shape, without qkv. */
bool weft_cuda_block_attends(bool plain, const struct weft_layer *layer,
                             const struct weft_batch *batch, struct weft_cuda_attention *out);
/* bind.c: maps of any layer; 0 if it has no products, or does not train here. */
weft_cuda_maps_fn weft_nn_cuda_maps;

/* A linear map y = x W^T + bias on `rows` dense rows; W is [outputs, inputs]. `gap` elements
 * lie between rows of y, and of its gradient. */
struct weft_cuda_linear {
    enum weft_dtype dtype;
    int64_t rows, inputs, outputs, gap;
    const void *x, *weight;
};

/* y = x W^T, then the finish. */
int weft_cuda_map(const struct weft_cuda_call *c, const struct weft_cuda_linear *linear,
                  const struct weft_product_finish *finish, void *y);
/* Backward of a map. *times is a factor in GPU memory; NULL: 1.
 *
 * map_input: dx = dy W, then the finish. map_weight: the gradient dy^T x of tensor `tensor`, unless
 * it is frozen. map_bias: the gradient of a bias, column sums of dy, with `sums` and the workspace
 * as scratch. give: writes or adds n sums to a gradient. */
int weft_cuda_map_input(const struct weft_cuda_call *c, const struct weft_cuda_linear *linear,
                        const float *times, const struct weft_product_finish *finish,
                        const void *dy, void *dx);
int weft_cuda_map_weight(const struct weft_cuda_call *c, const struct weft_cuda_linear *linear,
                         const float *times, const void *dy, int tensor);
int weft_cuda_map_bias(const struct weft_cuda_call *c, const struct weft_cuda_linear *linear,
                       const float *times, const void *dy, int tensor, float *sums,
                       void *workspace);
int weft_cuda_give(const struct weft_cuda_call *c, int tensor, int64_t n, const float *times,
                   const float *sums);

#endif
