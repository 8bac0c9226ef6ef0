/* SPDX-License-Identifier: Apache-2.0 */
/* Operations of layers on GPUs. The rules of kernels.h apply. */
#ifndef WEFT_RUNTIME_NN_CUDA_LAYERS_H
#define WEFT_RUNTIME_NN_CUDA_LAYERS_H

#include "runtime/nn/cuda/kernels.h"
#include "runtime/nn/product.h"

#ifdef __cplusplus
extern "C" {
#endif

/* y = gelu(x); dx = dy gelu'(x), and dx may be dy. The CPU's bits. ReLU has them too, and its
 * backward takes the output y. A NaN stays a NaN, with any bits. */
int weft_cuda_gelu(enum weft_dtype dtype, int64_t n, const void *x, void *y,
                   struct CUstream_st *stream);
int weft_cuda_gelu_backward(enum weft_dtype dtype, int64_t n, const void *x, const void *dy,
                            void *dx, struct CUstream_st *stream);
int weft_cuda_relu(enum weft_dtype dtype, int64_t n, const void *x, void *y,
                   struct CUstream_st *stream);
int weft_cuda_relu_backward(enum weft_dtype dtype, int64_t n, const void *y, const void *dy,
                            void *dx, struct CUstream_st *stream);

/* y = (x - mean) rstd weight + bias in every row; the CPU's bits. */
int weft_cuda_layer_norm(enum weft_dtype dtype, int64_t rows, int64_t width, const void *x,
                         const void *weight, const void *bias, void *y, float *mean, float *rstd,
                         struct CUstream_st *stream);
/* dx = residual + gradient by x (either may be NULL), with the CPU's bits. `sums` [2, width],
 * unless NULL, gets the gradients of weight and bias, in an order that depends on the number of
 * rows alone. The workspace has weft_cuda_layer_norm_bytes(rows, width) bytes. Without one the sums
 * are in row order, with the CPU's bits. */
struct weft_cuda_norm {
    int64_t rows, width;
    const void *x, *weight;
    const float *mean, *rstd; /* from forward */
    const void *dy, *residual;
};
int64_t weft_cuda_layer_norm_bytes(int64_t rows, int64_t width);
int weft_cuda_layer_norm_backward(enum weft_dtype dtype, const struct weft_cuda_norm *norm,
                                  void *dx, float *sums, void *workspace,
                                  struct CUstream_st *stream);

/* Looks up rows by tokens [rows] and by their positions in sequences of seq_len: y = table[token] +
 * positions[row % seq_len] (positions may be NULL). The CPU's bits. *bad gets the minimum of itself
 * and the rows with a token outside of the table; such a token adds 0 to y. */
struct weft_cuda_embedding {
    int64_t rows, width, seq_len, vocab;
    const int32_t *tokens;
};
int weft_cuda_embed(enum weft_dtype dtype, const struct weft_cuda_embedding *embedding,
                    const void *table, const void *positions, void *y, uint32_t *bad,
                    struct CUstream_st *stream);
/* Gradients of the tables: sums of rows of dy in their order, in fp32; in fp32 the CPU's bits. */
struct weft_cuda_table {
    const void *dy;
    enum weft_dtype gradient_dtype; /* f32 or dy's */
    bool accumulate;
    void *gradient;
};
int weft_cuda_embed_tokens(enum weft_dtype dtype, const struct weft_cuda_embedding *embedding,
                           const struct weft_cuda_table *table, struct CUstream_st *stream);
/* `positions`: rows of the table; those from seq_len on get nothing. */
int weft_cuda_embed_positions(enum weft_dtype dtype, const struct weft_cuda_embedding *embedding,
                              int64_t positions, const struct weft_cuda_table *table,
                              struct CUstream_st *stream);

/* Turns logits [rows, width] in place into the gradient of -log softmax(logits)[target]. Rows of
 * logits are `stride` elements apart. `losses` [rows] gets these terms. *bad gets the minimum of
 * itself and the rows with a target out of range. The loss of such a row, and of one with
 * WEFT_NO_TARGET, is 0. */
int weft_cuda_cross_entropy(enum weft_dtype dtype, int64_t rows, int64_t width, int64_t stride,
                            const int32_t *targets, void *logits, double *losses, uint32_t *bad,
                            struct CUstream_st *stream);
/* The same with the CPU's bits, except for those of log. */
int weft_cuda_cross_entropy_plain(enum weft_dtype dtype, int64_t rows, int64_t width,
                                  int64_t stride, const int32_t *targets, void *logits,
                                  double *losses, uint32_t *bad, struct CUstream_st *stream);
/* Sums the losses in order; `adds`: adds to *total. */
int weft_cuda_loss_total(int64_t n, const double *losses, bool adds, double *total,
                         struct CUstream_st *stream);

/* c = alpha op(a) op(b) (+ c), with a finish, as in weft_gemm_run. Triangles and column sums are
 * refused. Every element is a chain of fmaf in the order of k. A batch is count[0] x count[1]
 * products with the given distances of operands, in elements; NULL: one product. The finish is the
 * same for the whole batch. *times in GPU memory is another factor of alpha; NULL: 1. */
struct weft_cuda_batch {
    int64_t count[2], a[2], b[2], c[2];
};
int weft_cuda_product(const struct weft_product *product, const struct weft_cuda_batch *batch,
                      const float *times, struct CUstream_st *stream);

/* Means over the sequence: y [samples, width] of x [samples, seq_len, width]. Their gradient is dy
 * / seq_len in every row of dx. The CPU's bits. */
int weft_cuda_pool(enum weft_dtype dtype, int64_t samples, int64_t seq_len, int64_t width,
                   const void *x, void *y, struct CUstream_st *stream);
int weft_cuda_spread(enum weft_dtype dtype, int64_t samples, int64_t seq_len, int64_t width,
                     const void *dy, void *dx, struct CUstream_st *stream);

/* Works in place on consecutive causal matrices [width, width]. Row i becomes the softmax of its
 * columns 0 to i, and 0 after them. The CPU's bits, except for NaN. */
int weft_cuda_causal_softmax(enum weft_dtype dtype, int64_t matrices, int64_t width, void *x,
                             struct CUstream_st *stream);
/* d = p (d - sum of d p in the row), in place; the CPU's bits. */
int weft_cuda_softmax_backward(enum weft_dtype dtype, int64_t rows, int64_t width, const void *p,
                               void *d, struct CUstream_st *stream);

/* Causal attention of every head of every sample, as in struct weft_nn_attention: rows of qkv are
 * [q, k, v], each for all heads; the output is [samples seq_len, hidden]. Statistics and dots are
 * [samples, heads, seq_len]. Probabilities and gradients of scores are rounded to the dtype in
 * between. Sums are fp32, in an order that depends on seq_len alone. It needs bf16 or f16, heads of
 * a multiple of 8 up to 128, and matrices at a multiple of 16 bytes; it refuses others. */
struct weft_cuda_attention {
    enum weft_dtype dtype;
    int64_t samples, seq_len, heads, hidden;
    const void *qkv;
};
bool weft_cuda_attends(const struct weft_cuda_attention *attention);
int weft_cuda_attend(const struct weft_cuda_attention *attention, void *output, float *statistics,
                     struct CUstream_st *stream);
/* `output` and `statistics` are from forward, `dots` is scratch, and d_qkv is written. */
int weft_cuda_attend_backward(const struct weft_cuda_attention *attention, const void *output,
                              const float *statistics, const void *d_output, float *dots,
                              void *d_qkv, struct CUstream_st *stream);

/* Attention for any dtype and size of heads, by whole score matrices [samples, heads, seq_len,
 * seq_len]. Forward saves the probabilities for backward; d_scores is scratch. */
int weft_cuda_attend_plain(const struct weft_cuda_attention *attention, void *probabilities,
                           void *output, struct CUstream_st *stream);
int weft_cuda_attend_plain_backward(const struct weft_cuda_attention *attention,
                                    const void *probabilities, const void *d_output, void *d_scores,
                                    void *d_qkv, struct CUstream_st *stream);

#ifdef __cplusplus
}
#endif

#endif
