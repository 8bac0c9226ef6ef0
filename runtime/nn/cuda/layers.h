/* What the layers of a back end for GPUs are made of. kernels.h says what holds for all of it. */
#ifndef WEFT_RUNTIME_NN_CUDA_LAYERS_H
#define WEFT_RUNTIME_NN_CUDA_LAYERS_H

#include "runtime/nn/cuda/kernels.h"
#include "runtime/nn/product.h"

#ifdef __cplusplus
extern "C" {
#endif

/* y = gelu(x); dx = dy gelu'(x), and dx may be dy. The CPU's bits; so with ReLU, whose backward
 * takes its output y, but for what is no number: that stays none. */
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
/* dx = residual + gradient by x (either may be NULL), the CPU's bits; sums [2, width], unless NULL:
 * gradients of weight and bias, in an order that depends on the number of rows alone. The workspace
 * has weft_cuda_layer_norm_bytes(rows, width); without one the order is that of the rows, and bits
 * are the CPU's. */
struct weft_cuda_norm {
    int64_t rows, width;
    const void *x, *weight;
    const float *mean, *rstd; /* as forward wrote them */
    const void *dy, *residual;
};
int64_t weft_cuda_layer_norm_bytes(int64_t rows, int64_t width);
int weft_cuda_layer_norm_backward(enum weft_dtype dtype, const struct weft_cuda_norm *norm,
                                  void *dx, float *sums, void *workspace,
                                  struct CUstream_st *stream);

/* Rows of a table by tokens [rows], and by their positions in sequences of seq_len: y =
 * table[token] + positions[row % seq_len] (positions may be NULL); the CPU's bits. *bad becomes the
 * least row whose token is outside of the table, if that is less; the token's part of y is 0. */
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

/* In place: logits [rows, width] become the gradient of -log softmax(logits)[target] by themselves;
 * losses [rows] are those terms. *bad becomes the least row whose target is out of range, if that
 * is less. The loss of such a row, and of one with WEFT_NO_TARGET, is 0. */
int weft_cuda_cross_entropy(enum weft_dtype dtype, int64_t rows, int64_t width,
                            const int32_t *targets, void *logits, double *losses, uint32_t *bad,
                            struct CUstream_st *stream);
/* The same with the CPU's bits, but for log's. */
int weft_cuda_cross_entropy_plain(enum weft_dtype dtype, int64_t rows, int64_t width,
                                  const int32_t *targets, void *logits, double *losses,
                                  uint32_t *bad, struct CUstream_st *stream);
/* Their sum, in their order; `adds`: it is added to *total. */
int weft_cuda_loss_total(int64_t n, const double *losses, bool adds, double *total,
                         struct CUstream_st *stream);

/* c = alpha op(a) op(b) (+ c), finished, as weft_gemm_run has it but for triangles and column sums,
 * which are refused; every element is a chain of fmaf in the order of k from 0 on. A batch is
 * count[0] x count[1] products, whose operands begin so many elements apart; NULL: one product.
 * What finishes a product does not move with the batch. *times is another factor of alpha, of the
 * GPU's memory; NULL: 1. */
struct weft_cuda_batch {
    int64_t count[2], a[2], b[2], c[2];
};
int weft_cuda_product(const struct weft_product *product, const struct weft_cuda_batch *batch,
                      const float *times, struct CUstream_st *stream);

/* Means over the sequence: y [samples, width] of x [samples, seq_len, width]; and their gradient,
 * dy / seq_len in every row of dx. The CPU's bits. */
int weft_cuda_pool(enum weft_dtype dtype, int64_t samples, int64_t seq_len, int64_t width,
                   const void *x, void *y, struct CUstream_st *stream);
int weft_cuda_spread(enum weft_dtype dtype, int64_t samples, int64_t seq_len, int64_t width,
                     const void *dy, void *dx, struct CUstream_st *stream);

/* In place, causal matrices [width, width], one behind the other: row i becomes softmax over its
 * columns 0 to i, and 0 beyond. The CPU's bits, of numbers. */
int weft_cuda_causal_softmax(enum weft_dtype dtype, int64_t matrices, int64_t width, void *x,
                             struct CUstream_st *stream);
/* d = p (d - sum of d p in the row), in place; the CPU's bits. */
int weft_cuda_softmax_backward(enum weft_dtype dtype, int64_t rows, int64_t width, const void *p,
                               void *d, struct CUstream_st *stream);

/* Causal attention of every head of every sample, as struct weft_nn_attention has it: rows of qkv
 * [q, k, v], each of all heads; output [samples seq_len, hidden]. Statistics and dots are [samples,
 * heads, seq_len]. Probabilities and gradients of scores are rounded to the dtype on their way, and
 * sums are fp32 in an order that depends on seq_len alone. bf16 and f16, heads of a multiple of 8
 * up to 128, matrices at a multiple of 16 bytes; otherwise refused. */
struct weft_cuda_attention {
    enum weft_dtype dtype;
    int64_t samples, seq_len, heads, hidden;
    const void *qkv;
};
bool weft_cuda_attends(const struct weft_cuda_attention *attention);
int weft_cuda_attend(const struct weft_cuda_attention *attention, void *output, float *statistics,
                     struct CUstream_st *stream);
/* output and statistics as forward wrote them; dots is scratch; d_qkv is written. */
int weft_cuda_attend_backward(const struct weft_cuda_attention *attention, const void *output,
                              const float *statistics, const void *d_output, float *dots,
                              void *d_qkv, struct CUstream_st *stream);

/* The same in any dtype and size of heads by whole score matrices [samples, heads, seq_len,
 * seq_len]: probabilities, which forward leaves for backward, and d_scores, which is scratch. */
int weft_cuda_attend_plain(const struct weft_cuda_attention *attention, void *probabilities,
                           void *output, struct CUstream_st *stream);
int weft_cuda_attend_plain_backward(const struct weft_cuda_attention *attention,
                                    const void *probabilities, const void *d_output, void *d_scores,
                                    void *d_qkv, struct CUstream_st *stream);

#ifdef __cplusplus
}
#endif

#endif
