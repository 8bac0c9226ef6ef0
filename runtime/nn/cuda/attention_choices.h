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
#ifndef WEFT_RUNTIME_NN_CUDA_ATTENTION_CHOICES_H
#define WEFT_RUNTIME_NN_CUDA_ATTENTION_CHOICES_H

#include "runtime/nn/cuda/cuda.h"

struct weft_text;

/* The way of one shape. */
struct weft_cuda_attended {
    struct weft_cuda_attention shape; /* without qkv */
    bool by_library;
    char forward[96], backward[96];        /* engines */
    struct weft_cuda_attending_plan *plan; /* NULL: not prepared, or own */
};

/* Opens the library as `name` wants: "own", "auto", or the library's name. "auto" and NULL go on
 * without one that cannot be opened, and *unopened has the reason. */
WEFT_MUST_USE enum weft_status weft_cuda_attention_open(struct weft_nn_cuda *cuda, const char *name,
                                                        struct weft_error *unopened,
                                                        struct weft_error *err);
void weft_cuda_attention_close(struct weft_nn_cuda *cuda);
/* Writes the last part of the back end's description: the library, and after binding the engines.
 * *unopened is why there is none. */
void weft_cuda_attention_describe(struct weft_nn_cuda *cuda, const struct weft_error *unopened);
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

/* Raises needs to those of the bound way. Own kernels' are in the kind's needs. */
void weft_cuda_attention_needs(const struct weft_nn_cuda *cuda, const struct weft_layer *layer,
                               const struct weft_batch *batch, struct weft_nn_needs *needs);
/* Do the work of weft_cuda_attend and weft_cuda_attend_backward in the bound way. The workspace has
 * the bytes of the layer's needs. */
int weft_cuda_attention_forward(const struct weft_nn_cuda *cuda,
                                const struct weft_cuda_attention *attention, void *output,
                                float *statistics, void *workspace, struct CUstream_st *on);
int weft_cuda_attention_backward(const struct weft_nn_cuda *cuda,
                                 const struct weft_cuda_attention *attention, const void *output,
                                 const float *statistics, const void *d_output, void *workspace,
                                 void *d_qkv, struct CUstream_st *on);

#endif
