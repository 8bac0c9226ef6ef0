/* A layer layout says where, inside a layer's `saved` and temporary buffers, each part lies: the
 * buffer plan that kinds size and runtime/nn computes on. Offsets are in bytes from the
 * buffer's start, each a multiple of WEFT_LAYOUT_ALIGN_BYTES; `bytes` is the buffer's size, 0 when
 * it is not needed, -1 when a size overflows (weft_layer_work then refuses the layer, so that
 * kernels need not look).
 *
 * Shapes below are row-major: B = samples, S = seq_len, T = B*S rows, h = hidden, f = ffn,
 * H = heads, d = h / H. Elements are of the compute dtype, but for those marked f32. A forward
 * never needs a temporary. Types that are not here (embedding, relu, gelu) need no buffer. */
#ifndef WEFT_LAYERS_SHARED_LAYOUT_H
#define WEFT_LAYERS_SHARED_LAYOUT_H

#include <stdint.h>

#include "spec/layer.h"

enum { WEFT_LAYOUT_ALIGN_BYTES = 64 };

/* A head's queries are columns [i*d, (i+1)*d) of qkv, its keys and values the same columns beyond h
 * and 2h: products read them in place, with a row stride of 3h.
 *
 * Backward runs mlp, then attention. What is dead by then gives its bytes to what comes:
 * d_qkv lies on d_fc, and d_attention and d_ln1 lie on d_ln2. */
struct weft_transformer_block_layout {
    struct {
        int64_t ln1_mean;      /* f32 [T] */
        int64_t ln1_rstd;      /* f32 [T] */
        int64_t ln1_out;       /* [T, h] */
        int64_t qkv;           /* [T, 3h] */
        int64_t probabilities; /* [B, H, S, S]; zero above the diagonal, or tiles of its kernels */
        int64_t attention;     /* [T, h], heads joined, before the projection */
        int64_t residual;      /* [T, h], input + projected attention */
        int64_t ln2_mean;      /* f32 [T] */
        int64_t ln2_rstd;      /* f32 [T] */
        int64_t ln2_out;       /* [T, h] */
        int64_t fc;            /* [T, f], before GELU */
        int64_t gelu;          /* [T, f] */
        int64_t bytes;
    } saved;
    struct {
        int64_t d_fc;        /* [T, f], first of the GELU's output, then in place of its input */
        int64_t d_qkv;       /* [T, 3h], on d_fc */
        int64_t d_ln2;       /* [T, h] */
        int64_t d_attention; /* [T, h], on d_ln2 */
        int64_t d_ln1;       /* [T, h], on d_ln2 */
        int64_t d_residual;  /* [T, h] */
        int64_t d_scores;    /* [S, S] of the one head of one sample that is in hand: more threads
                                share its rows, so the size does not depend on their number */
        int64_t sums; /* f32 [max(f, 3h)]: one column sum, or both of a layer norm ([2, h]) */
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
        int64_t sums; /* f32 [outputs], when it has a bias */
        int64_t bytes;
    } backward;
};

/* Forward computes logits and turns them, in place, into every row's d loss / d logits:
 * probabilities, less 1 at the target. Backward multiplies by loss_scale in its products. */
struct weft_lm_head_layout {
    struct {
        int64_t d_logits; /* [T, vocab] */
        int64_t bytes;
    } saved;
    struct {
        int64_t sums; /* f32 [vocab], when it has a bias */
        int64_t bytes;
    } backward;
};

struct weft_classifier_layout {
    struct {
        int64_t pooled;   /* [B, h], mean over the sequence */
        int64_t d_logits; /* [B, classes], as in lm_head */
        int64_t bytes;
    } saved;
    struct {
        int64_t d_pooled; /* [B, h] */
        int64_t sums;     /* f32 [classes], when it has a bias */
        int64_t bytes;
    } backward;
};

struct weft_transformer_block_layout weft_layout_transformer_block(const struct weft_layer *layer,
                                                                   const struct weft_batch *batch);
struct weft_layer_norm_layout weft_layout_layer_norm(const struct weft_layer *layer,
                                                     const struct weft_batch *batch);
struct weft_linear_layout weft_layout_linear(const struct weft_layer *layer,
                                             const struct weft_batch *batch);
struct weft_lm_head_layout weft_layout_lm_head(const struct weft_layer *layer,
                                               const struct weft_batch *batch);
struct weft_classifier_layout weft_layout_classifier(const struct weft_layer *layer,
                                                     const struct weft_batch *batch);

#endif
