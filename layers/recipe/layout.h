/* SPDX-License-Identifier: Apache-2.0 */
/* A layer layout gives the offset of each part in a layer's `saved` and temporary buffers, by
 * names of its kind's steps (walk.h). runtime/nn/cuda computes on it. Offsets are bytes from the
 * buffer's start, multiples of WEFT_LAYOUT_ALIGN_BYTES. `bytes` is the buffer's size: 0 if it is
 * not needed. All are -1 if a size overflows. weft_layer_work refuses a layer with -1, so kernels
 * need no check.
 *
 * Shapes are row-major: B = samples, S = seq_len, T = B*S rows, h = hidden, f = ffn, H = heads, d =
 * h / H. Elements have the compute dtype, unless they are marked f32. Types without a layout
 * (embedding, relu, gelu) need no buffer. A frozen layer has the parts that no backward reads in
 * forward's temporary buffer. */
#ifndef WEFT_LAYERS_RECIPE_LAYOUT_H
#define WEFT_LAYERS_RECIPE_LAYOUT_H

#include <stdint.h>

#include "layers/shared/place.h"
#include "spec/layer.h"

/* Rows of logits begin at multiples of this from the first row, for any number of classes. A GPU's
 * fast products need aligned rows: an odd vocabulary would take nearly twice the time. Elements
 * between a row's end and the next row are neither read nor written. */
enum { WEFT_LAYOUT_ROW_BYTES = 128 };

/* Queries of head i are columns [i*d, (i+1)*d) of qkv. Its keys and values are the same columns
 * from h and 2h on. Products read them in place, with a row stride of 3h.
 *
 * At a level of recomputation some parts of `saved` are dropped: their offsets begin at the dropped
 * bytes of a temporary buffer (weft_dropped_offset). Selective drops parts that need no product
 * with weights: outputs of norms, attention and, not on a GPU, GELU. Whole drops all parts.
 *
 * Backward runs the MLP, then attention. Gradients are placed by their lives (place.h), so later
 * ones reuse the bytes of dead ones. */
struct weft_transformer_block_layout {
    struct {
        int64_t ln1_mean;      /* f32 [T] */
        int64_t ln1_rstd;      /* f32 [T] */
        int64_t ln1_out;       /* [T, h]; this and the others but qkv, residual and fc are dropped
                                  by selective recomputation */
        int64_t qkv;           /* [T, 3h] */
        int64_t probabilities; /* [B, H, S, S]; 0 above the diagonal, or in tiles of its kernels.
                                  On tensor cores statistics, f32 [B, H, S] */
        int64_t attention;     /* [T, h], heads joined, before the projection */
        int64_t residual;      /* [T, h], input + projected attention */
        int64_t ln2_mean;      /* f32 [T] */
        int64_t ln2_rstd;      /* f32 [T] */
        int64_t ln2_out;       /* [T, h] */
        int64_t fc;            /* [T, f], before GELU */
        int64_t gelu;          /* [T, f] */
        int64_t bytes;         /* of parts that are kept */
        int64_t dropped_bytes;
    } saved;
    struct {
        int64_t d_fc;        /* [T, f], gradient of GELU's output, then of its input in place */
        int64_t d_qkv;       /* [T, 3h] */
        int64_t d_ln2;       /* [T, h] */
        int64_t d_attention; /* [T, h] */
        int64_t d_ln1;       /* [T, h] */
        int64_t d_residual;  /* [T, h] */
        int64_t d_scores;    /* [S, S] of the current head of one sample. Several threads share its
                                rows, so the size does not depend on the number of threads. */
        int64_t sums; /* f32 [max(f, 3h)]: one column sum, or both sums of a layer norm ([2, h]) */
        int64_t bytes;
    } backward;
};

struct weft_layer_norm_layout {
    struct {
        int64_t mean; /* f32 [T] */
        int64_t rstd; /* f32 [T] */
        int64_t bytes;
    } saved;
    struct {
        int64_t sums; /* f32 [2, h]: gradients of weight, bias */
        int64_t bytes;
    } backward;
};

struct weft_linear_layout {
    struct {
        int64_t sums; /* f32 [outputs], if it has a bias */
        int64_t bytes;
    } backward;
};

/* Forward computes the logits and turns them in place into d loss / d logits: the probabilities,
 * minus 1 at the target. Backward applies loss_scale in its products. */
struct weft_lm_head_layout {
    int64_t gap; /* elements between rows of d_logits */
    struct {
        int64_t d_logits; /* [T, vocab] */
        int64_t bytes;
    } saved;
    struct {
        int64_t sums; /* f32 [vocab], if it has a bias */
        int64_t bytes;
    } backward;
};

struct weft_classifier_layout {
    int64_t gap; /* as in lm_head */
    struct {
        int64_t pooled;   /* [B, h], mean over the sequence */
        int64_t d_logits; /* [B, classes], as in lm_head */
        int64_t bytes;
    } saved;
    struct {
        int64_t d_pooled; /* [B, h] */
        int64_t sums;     /* f32 [classes], if it has a bias */
        int64_t bytes;
    } backward;
};

/* Layouts of a walk of the kind, which is derived once for all calls of a layer. */
struct weft_walk;
struct weft_transformer_block_layout weft_layout_transformer_block_of(const struct weft_walk *walk);
struct weft_layer_norm_layout weft_layout_layer_norm_of(const struct weft_walk *walk);
struct weft_linear_layout weft_layout_linear_of(const struct weft_walk *walk);
struct weft_lm_head_layout weft_layout_lm_head_of(const struct weft_walk *walk);
struct weft_classifier_layout weft_layout_classifier_of(const struct weft_walk *walk);

/* Layouts of a layer of the kind, for a batch. Each derives a walk. */
struct weft_transformer_block_layout weft_layout_transformer_block(const struct weft_layer *layer,
                                                                   const struct weft_batch *batch,
                                                                   enum weft_recompute level);
struct weft_layer_norm_layout weft_layout_layer_norm(const struct weft_layer *layer,
                                                     const struct weft_batch *batch);
struct weft_linear_layout weft_layout_linear(const struct weft_layer *layer,
                                             const struct weft_batch *batch);
struct weft_lm_head_layout weft_layout_lm_head(const struct weft_layer *layer,
                                               const struct weft_batch *batch);
struct weft_classifier_layout weft_layout_classifier(const struct weft_layer *layer,
                                                     const struct weft_batch *batch);

#endif
