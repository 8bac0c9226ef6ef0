/* SPDX-License-Identifier: Apache-2.0 */
/* Operations of layers on GPUs. The rules of kernels.h apply. */
#ifndef WEFT_RUNTIME_NN_CUDA_KERNELS_LAYERS_H
#define WEFT_RUNTIME_NN_CUDA_KERNELS_LAYERS_H

#include "runtime/nn/cuda/kernels/kernels.h"
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

/* GELU with the error function, and tanh with a backward from the output y; the CPU's bits. */
int weft_cuda_gelu_erf(enum weft_dtype dtype, int64_t n, const void *x, void *y,
                       struct CUstream_st *stream);
int weft_cuda_gelu_erf_backward(enum weft_dtype dtype, int64_t n, const void *x, const void *dy,
                                void *dx, struct CUstream_st *stream);
int weft_cuda_tanh(enum weft_dtype dtype, int64_t n, const void *x, void *y,
                   struct CUstream_st *stream);
int weft_cuda_tanh_backward(enum weft_dtype dtype, int64_t n, const void *y, const void *dy,
                            void *dx, struct CUstream_st *stream);
/* y = cap tanh(x / cap), and y may be x; d = d (1 - tanh(x / cap)^2), in place. The CPU's bits. */
int weft_cuda_soft_cap(enum weft_dtype dtype, int64_t n, float cap, const void *x, void *y,
                       struct CUstream_st *stream);
int weft_cuda_soft_cap_backward(enum weft_dtype dtype, int64_t n, float cap, const void *x, void *d,
                                struct CUstream_st *stream);

/* y = max(x, 0)^2, and its backward from x; the CPU's bits. */
int weft_cuda_squared_relu(enum weft_dtype dtype, int64_t n, const void *x, void *y,
                           struct CUstream_st *stream);
int weft_cuda_squared_relu_backward(enum weft_dtype dtype, int64_t n, const void *x, const void *dy,
                                    void *dx, struct CUstream_st *stream);
/* y = a + b; the CPU's bits. */
int weft_cuda_add_values(enum weft_dtype dtype, int64_t n, const void *a, const void *b, void *y,
                         struct CUstream_st *stream);
/* y = silu(gate) up, for rows of gate and up with a stride; y is dense. d_gate and d_up have the
 * stride too. dy has a stride of its own, and may be d_up. The CPU's bits. */
int weft_cuda_gate(enum weft_dtype dtype, int64_t rows, int64_t width, int64_t stride,
                   const void *gate, const void *up, void *y, struct CUstream_st *stream);
int weft_cuda_gate_backward(enum weft_dtype dtype, int64_t rows, int64_t width, int64_t stride,
                            const void *gate, const void *up, int64_t dy_stride, const void *dy,
                            void *d_gate, void *d_up, struct CUstream_st *stream);

/* y = gelu(gate) up. */
int weft_cuda_gate_gelu(enum weft_dtype dtype, int64_t rows, int64_t width, int64_t stride,
                        const void *gate, const void *up, void *y, struct CUstream_st *stream);
int weft_cuda_gate_gelu_backward(enum weft_dtype dtype, int64_t rows, int64_t width, int64_t stride,
                                 const void *gate, const void *up, int64_t dy_stride,
                                 const void *dy, void *d_gate, void *d_up,
                                 struct CUstream_st *stream);

/* y = (x - mean) rstd weight + bias in every row; the CPU's bits. */
int weft_cuda_layer_norm(enum weft_dtype dtype, int64_t rows, int64_t width, float epsilon,
                         const void *x, const void *weight, const void *bias, void *y, float *mean,
                         float *rstd, struct CUstream_st *stream);
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

/* y = x rstd (shift + weight) in every part of each row: `parts` adjacent ones of `width`. rstd
 * [rows, parts]. x, dx and the residual have rows of x_stride, y and dy rows of y_stride. Backward
 * is as in a layer norm, with `sums` [width] and a workspace of weft_cuda_rms_norm_bytes. */
struct weft_cuda_rms {
    int64_t rows, parts, width, x_stride, y_stride;
    const void *x, *weight;
    float shift; /* 0 or 1 */
};
int weft_cuda_rms_norm(enum weft_dtype dtype, const struct weft_cuda_rms *norm, float epsilon,
                       void *y, float *rstd, struct CUstream_st *stream);
int64_t weft_cuda_rms_norm_bytes(const struct weft_cuda_rms *norm);
int weft_cuda_rms_norm_backward(enum weft_dtype dtype, const struct weft_cuda_rms *norm,
                                const float *rstd, const void *dy, const void *residual, void *dx,
                                float *sums, void *workspace, struct CUstream_st *stream);

/* Turns pairs (j, j + size / 2) of each head in place by the angle position x frequency j, or back:
 * rows of samples with `heads` adjacent heads. The CPU's bits. */
enum { WEFT_CUDA_ROPE_PAIRS = 512 };
struct weft_cuda_rope {
    int64_t samples, seq_len, heads, size, stride;
    const float *frequencies; /* [size / 2], in the host's memory */
    bool back;
};
int weft_cuda_rope(enum weft_dtype dtype, const struct weft_cuda_rope *rope, void *x,
                   struct CUstream_st *stream);

/* Looks up rows by tokens [rows] and by their positions in sequences of seq_len: y = table[token] +
 * positions[row % seq_len] (positions may be NULL). The CPU's bits. *bad gets the minimum of itself
 * and the rows with a token outside of the table; such a token adds 0 to y. */
struct weft_cuda_embedding {
    int64_t rows, width, seq_len, vocab;
    const int32_t *tokens;
    float scale; /* multiplies rows of the table, and their gradients; 0: 1 */
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

/* y = x + table[0], or x + table[row % seq_len] by position. `first`, unless NULL, takes the place
 * of each sample's first row of x. The CPU's bits. */
struct weft_cuda_added_rows {
    int64_t rows, width, seq_len;
    bool by_position;
    const void *table, *first;
};
int weft_cuda_add_rows(enum weft_dtype dtype, const struct weft_cuda_added_rows *added,
                       const void *x, void *y, struct CUstream_st *stream);
/* Copies rows, and clears each sample's first one. */
int weft_cuda_clear_first_rows(enum weft_dtype dtype, int64_t rows, int64_t width, int64_t seq_len,
                               const void *from, void *to, struct CUstream_st *stream);

/* Turns logits [rows, width] in place into the gradient of -log softmax(logits)[target]. Rows of
 * logits are `stride` elements apart. `losses` [rows] gets these terms. *bad gets the minimum of
 * itself and the rows with a target out of range. The loss of such a row, and of one with
 * WEFT_NO_TARGET or WEFT_LEFT_OUT, is 0. WEFT_LEFT_OUT makes the row 0 too. */
int weft_cuda_cross_entropy(enum weft_dtype dtype, int64_t rows, int64_t width, int64_t stride,
                            const int32_t *targets, void *logits, double *losses, uint32_t *bad,
                            struct CUstream_st *stream);
/* Cross-entropy with the CPU's bits, except for the bits of log. */
int weft_cuda_cross_entropy_plain(enum weft_dtype dtype, int64_t rows, int64_t width,
                                  int64_t stride, const int32_t *targets, void *logits,
                                  double *losses, uint32_t *bad, struct CUstream_st *stream);
/* Cross-entropy of cap tanh(logits / cap). */
int weft_cuda_capped_cross_entropy(enum weft_dtype dtype, int64_t rows, int64_t width,
                                   int64_t stride, float cap, const int32_t *targets, void *logits,
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

/* Works in place on consecutive matrices [width, width]. Row i becomes the softmax of its columns 0
 * to i, or of the last `window` of these (0: of all), and 0 elsewhere; `both_ways`: of its whole
 * row. The CPU's bits, except for NaN. */
int weft_cuda_masked_softmax(enum weft_dtype dtype, int64_t matrices, int64_t width, bool both_ways,
                             int64_t window, void *x, struct CUstream_st *stream);
/* Columns of rows of padding become `to` in consecutive matrices [width, width], so many a sample.
 * Tokens are [samples, width]. */
int weft_cuda_hide_tokens(enum weft_dtype dtype, int64_t samples, int64_t matrices, int64_t width,
                          const int32_t *tokens, int32_t padding, float to, void *x,
                          struct CUstream_st *stream);
/* d = p (d - sum of d p in the row), in place; the CPU's bits. */
int weft_cuda_softmax_backward(enum weft_dtype dtype, int64_t rows, int64_t width, const void *p,
                               void *d, struct CUstream_st *stream);

#ifdef __cplusplus
}
#endif

#endif
