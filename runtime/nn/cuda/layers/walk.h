/* SPDX-License-Identifier: Apache-2.0 */
/* The walk of a layer's steps (layers/recipe/walk.h) on a GPU. An op is one row of the table in
 * walk.c: its functions put kernels on a stream for one step, with the addresses of a call
 * (runtime/nn/step.h). They touch exactly the buffers of their call, and the workspace. */
#ifndef WEFT_RUNTIME_NN_CUDA_LAYERS_WALK_H
#define WEFT_RUNTIME_NN_CUDA_LAYERS_WALK_H

#include "runtime/nn/cuda/cuda.h"
#include "runtime/nn/step.h"

/* A walk with the bytes that the scratch of a GPU needs: of any one step, and of losses' scale. */
struct weft_cuda_walk {
    struct weft_walk walk;
    struct weft_nn_needs step_needs;
    int64_t scale_bytes;
};

struct weft_cuda_walked {
    const struct weft_nn_cuda *cuda;
    struct CUstream_st *on;
    const struct weft_nn_walked *at;
    char *scratch;   /* of the bytes of the step's op */
    float *times;    /* a factor of d_out in GPU memory; NULL: 1 */
    uint32_t *found; /* of a layer that reads tokens or targets */
};

/* Returns CUDA's code. */
typedef int weft_cuda_step_fn(const struct weft_cuda_walked *s);

weft_cuda_step_fn weft_cuda_product_forward, weft_cuda_product_backward;
weft_cuda_step_fn weft_cuda_norm_forward, weft_cuda_norm_backward;
weft_cuda_step_fn weft_cuda_rope_forward, weft_cuda_rope_backward;
weft_cuda_step_fn weft_cuda_gate_forward, weft_cuda_gate_step_backward;
weft_cuda_step_fn weft_cuda_attend_forward, weft_cuda_attend_step_backward;
weft_cuda_step_fn weft_cuda_activate_forward, weft_cuda_activate_backward;
weft_cuda_step_fn weft_cuda_embed_forward, weft_cuda_embed_backward;
weft_cuda_step_fn weft_cuda_mean_rows_forward, weft_cuda_mean_rows_backward;
weft_cuda_step_fn weft_cuda_first_rows_forward, weft_cuda_first_rows_backward;
weft_cuda_step_fn weft_cuda_add_rows_forward, weft_cuda_add_rows_backward;
weft_cuda_step_fn weft_cuda_loss_forward, weft_cuda_add_forward;

static inline enum weft_dtype weft_cuda_step_dtype(const struct weft_cuda_walked *s)
{
    return s->at->call->batch.compute;
}

/* Writes or adds n sums to the gradient of the step's tensor, unless it is frozen. */
static inline int weft_cuda_give(const struct weft_cuda_walked *s, int32_t index, int64_t n,
                                 const float *sums)
{
    const struct weft_nn_call *call = s->at->call;
    const int32_t tensor = weft_nn_step_tensor(s->at, index);
    if (call->gradients[tensor] == NULL) return 0;
    return weft_cuda_add(call->gradient_dtype, n, 1, s->times, sums, call->accumulate[tensor],
                         call->gradients[tensor], s->on);
}

/* Derives the walk of a layer with a recipe. WEFT_E_DATA if a GPU has no kernels of a step. */
WEFT_MUST_USE enum weft_status weft_cuda_walk_derive(bool plain, const struct weft_layer *layer,
                                                     const struct weft_batch *batch,
                                                     enum weft_recompute level,
                                                     struct weft_cuda_walk *out,
                                                     struct weft_error *err);
/* Put the kernels of a call on the stream. The workspace has the bytes of the layer's needs, and
 * the scale of losses lies `scale_at` bytes after its start. */
int weft_cuda_walk_forward(const struct weft_nn_cuda *cuda, const struct weft_cuda_walk *walk,
                           const struct weft_nn_call *call, char *workspace, uint32_t *found,
                           struct CUstream_st *on);
int weft_cuda_walk_backward(const struct weft_nn_cuda *cuda, const struct weft_cuda_walk *walk,
                            const struct weft_nn_call *call, char *workspace, int64_t scale_at,
                            uint32_t *found, struct CUstream_st *on);

#endif
