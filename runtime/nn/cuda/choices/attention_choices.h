/* SPDX-License-Identifier: Apache-2.0 */
/* The way of each shape of attention: own kernels, or a library's plan (attending.h). Rank 0
 * measures both, unless an earlier text or WEFT_ATTENTION decides. Forward and backward of a shape
 * are computed in one way. A library's plan is used only after a trial against fp64 (trial.h).
 *
 * Choices are the end of the text in choices.c. Its first line is "attention own", or has the
 * library's title; each shape has a line such as
 *
 *     bf16 16 1024 12 768 cudnn eng4_k24=0 eng8_k2=1
 *
 * with dtype, samples, rows of a sample, heads, hidden width, the way, and the engines of forward
 * and backward ("-": own). */
#ifndef WEFT_RUNTIME_NN_CUDA_CHOICES_ATTENTION_CHOICES_H
#define WEFT_RUNTIME_NN_CUDA_CHOICES_ATTENTION_CHOICES_H

#include "layers/recipe/op.h"
#include "runtime/nn/cuda/cuda.h"

struct weft_text;

/* The way of one shape. */
struct weft_cuda_attended {
    struct weft_cuda_attention shape; /* without qkv */
    bool by_library;
    char forward[96], backward[96];        /* engines */
    struct weft_cuda_attending_plan *plan; /* NULL: not prepared, or own */
};

/* True if texts have this part: the machine has a library, and kernels are not plain. */
bool weft_cuda_attention_chooses(const struct weft_nn_cuda *cuda);

/* The part of a text that begins with "attention ", or its end. */
const char *weft_cuda_attention_part(const char *text);
/* Do the work of weft_nn_choose and weft_nn_bind for this part of the text. `earlier` is a whole
 * text. */
WEFT_MUST_USE enum weft_status weft_cuda_attention_choose(
    struct weft_nn_cuda *cuda, const struct weft_layer *layers, int32_t n_layers,
    const struct weft_batch *batch, const char *earlier, struct weft_text *out,
    struct weft_text *warnings, struct weft_error *err);
WEFT_MUST_USE enum weft_status weft_cuda_attention_bind(struct weft_nn_cuda *cuda, const char *part,
                                                        struct weft_error *err);

/* True if a step of attention is on tensor cores. Its statistics use the place of probabilities,
 * which has at least as many bytes a row even if the plan reserves these. */
bool weft_cuda_on_tensor_cores(bool plain, const struct weft_walk *walk,
                               const struct weft_walk_step *step);
/* Raises needs to those of the bound ways of a walk. Own kernels' are in the needs of ops. */
void weft_cuda_attention_needs(const struct weft_nn_cuda *cuda, const struct weft_walk *walk,
                               struct weft_nn_needs *needs);
/* Do the work of weft_cuda_attend_heads and weft_cuda_attend_heads_backward for a step on tensor
 * cores, in the bound way. A library has the shapes whose rows are [q, k, v]; heads that share keys
 * are our own. The workspace has the bytes of the layer's needs. */
int weft_cuda_attention_forward(const struct weft_nn_cuda *cuda, const struct weft_walk *walk,
                                const struct weft_walk_step *step,
                                const struct weft_cuda_heads *heads, void *output,
                                float *statistics, void *workspace, struct CUstream_st *on);
int weft_cuda_attention_backward(const struct weft_nn_cuda *cuda, const struct weft_walk *walk,
                                 const struct weft_walk_step *step,
                                 const struct weft_cuda_heads *heads, const void *output,
                                 const float *statistics, const void *d_output, void *workspace,
                                 const struct weft_cuda_head_gradients *to, struct CUstream_st *on);

#endif
