/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels are loops over elements and rows, without products. Sources are compiled for several
 * instruction levels, and layers' loops also for each dtype. Const tables name them, and the
 * program chooses the best level of its CPU. All levels give the same bits: there is no contraction
 * and no reassociation. A sum runs in 16 lanes, element i in lane i mod 16, added as a fixed tree.
 * So bits do not depend on level, alignment, or the division of elements. Whole heads of attention
 * do not exist at the plain level, and have their own bits, as products do.
 *
 * Matrices are row-major, and dense unless a stride is given. Buffers do not overlap unless stated.
 * `sums` is overwritten. Kernels allocate nothing. */
#ifndef WEFT_RUNTIME_NN_CPU_KERNELS_KERNELS_H
#define WEFT_RUNTIME_NN_CPU_KERNELS_KERNELS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/normal.h"
#include "runtime/nn/cpu/kernels/shapes.h"
#include "runtime/nn/optimizer.h"

/* Loops over elements of one dtype, passed as void *. Statistics and sums are fp32. Inputs are
 * widened, and results rounded once. */
struct weft_layer_kernels {
    /* y = x + bias in every row. A NULL x or bias counts as 0. x may be y. Both have the stride. */
    void (*fill)(int64_t rows, int64_t width, const void *x, const void *bias, int64_t stride,
                 void *y);
    /* sums[j] = sum over rows of x[i][j], in row order. */
    void (*column_sums)(int64_t rows, int64_t width, int64_t stride, const void *x, float *sums);
    /* y = alpha x + bias. A NULL bias counts as 0. */
    void (*scale)(int64_t n, float alpha, const void *x, const void *bias, void *y);
    /* y = alpha x, or y += alpha x. */
    void (*add_to)(int64_t n, float alpha, const float *x, bool accumulate, void *y);

    /* y = (x - mean) rstd weight + bias, row by row, with rstd = 1 / sqrt(variance + epsilon). */
    void (*layer_norm)(int64_t rows, int64_t width, float epsilon, const void *x,
                       const void *weight, const void *bias, void *y, float *mean, float *rstd);
    /* dx = residual + gradient by x. dx NULL: not wanted; residual NULL: 0. `sums` [2, width] gets
     * the gradients of weight and bias. */
    void (*layer_norm_backward)(int64_t rows, int64_t width, const void *x, const void *weight,
                                const float *mean, const float *rstd, const void *dy,
                                const void *residual, void *dx, float *sums);

    /* y = x rstd (shift + weight) with rstd = 1 / sqrt(mean of squares + epsilon), for each part of
     * each row. All parts share the weight. rstd [rows, parts]. */
    void (*rms_norm)(const struct weft_parts *parts, float epsilon, const void *x,
                     const void *weight, void *y, float *rstd);
    /* Equals layer_norm_backward in form; `sums` [width] gets the gradient of weight. */
    void (*rms_norm_backward)(const struct weft_parts *parts, const void *x, const void *weight,
                              const float *rstd, const void *dy, const void *residual, void *dx,
                              float *sums);
    /* Turns pairs (j, j + size / 2) of each head in place, by the angle position * frequency j in
     * fp32, or back. Positions are at most 2^20, and frequencies at most 1. */
    void (*rope)(const struct weft_rope_rows *rows, void *x);

    /* y = silu(gate) up, for rows of gate and up with a stride, or with gelu. y is dense. */
    weft_gate_fn *gate, *gate_gelu;
    /* d_gate = dy up silu'(gate) and d_up = dy silu(gate), which have the stride too. dy has a
     * stride of its own, and may be d_up. */
    weft_gate_backward_fn *gate_backward, *gate_gelu_backward;

    /* y = gelu(x) = 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))). */
    void (*gelu)(int64_t n, const void *x, void *y);
    /* x += bias in every row, y = gelu(x). */
    void (*bias_gelu)(int64_t rows, int64_t width, const void *bias, void *x, void *y);
    /* dx = dy gelu'(x); dx may be dy. `sums` [width] gets the sums of dx's columns, unless NULL. */
    void (*gelu_backward)(int64_t rows, int64_t width, const void *x, const void *dy, void *dx,
                          float *sums);
    void (*add)(int64_t n, const void *a, const void *b, void *y);
    void (*relu)(int64_t n, const void *x, void *y);
    /* dx = y > 0 ? dy : 0, from relu's output y. */
    void (*relu_backward)(int64_t n, const void *y, const void *dy, void *dx);
    /* y = max(x, 0)^2, and dx = 2 max(x, 0) dy; dx may be dy. */
    void (*squared_relu)(int64_t n, const void *x, void *y);
    void (*squared_relu_backward)(int64_t n, const void *x, const void *dy, void *dx);
    /* GELU with the error function; dx may be dy. And tanh, with dx = dy (1 - y^2). */
    void (*gelu_erf)(int64_t n, const void *x, void *y);
    void (*gelu_erf_backward)(int64_t n, const void *x, const void *dy, void *dx);
    void (*tanh)(int64_t n, const void *x, void *y);
    void (*tanh_backward)(int64_t n, const void *y, const void *dy, void *dx);

    /* Works in place on rows `first`, first + 1, ... of a causal score matrix, `width` columns of
     * each. Row i becomes the softmax of its columns 0..i, and 0 after them. */
    void (*causal_softmax)(int64_t rows, int64_t first, int64_t width, int64_t stride, void *x);
    /* Columns of row i up to first + i - window become -inf. */
    void (*hide_columns)(int64_t rows, int64_t first, int64_t window, int64_t stride, void *x);
    /* Columns with this token become -inf in each row. */
    void (*hide_tokens)(int64_t rows, int64_t width, int64_t stride, const int32_t *tokens,
                        int32_t hidden, void *x);
    /* x = cap tanh(x / cap), in place; and d = d (1 - tanh(x / cap)^2), of x before. Of x after, in
     * 16 bits, the slope near 0 would have lost its digits. */
    void (*cap)(int64_t rows, int64_t width, int64_t stride, float cap, void *x);
    void (*cap_backward)(int64_t rows, int64_t width, int64_t stride, float cap, const void *x,
                         void *d);
    /* d = p (d - sum of d p in the row), in place. */
    void (*softmax_backward)(int64_t rows, int64_t width, int64_t stride, const void *p, void *d);
    /* Turns logits in place into the gradient of -log softmax(logits)[target]. Returns the sum of
     * the rows' losses in row order. Targets must be in range, or WEFT_NO_TARGET, which leaves its
     * row unchanged, or WEFT_LEFT_OUT, which makes its row 0. */
    double (*cross_entropy)(int64_t rows, int64_t width, int64_t stride, const int32_t *targets,
                            void *logits);
    /* Cross-entropy of cap tanh(logits / cap), which a row without a target gets. */
    double (*capped_cross_entropy)(int64_t rows, int64_t width, int64_t stride, float cap,
                                   const int32_t *targets, void *logits);
};

/* A head of one sample's causal attention. */
struct weft_head {
    enum weft_dtype dtype; /* of inputs, outputs and gradients; arithmetic is fp32 */
    int64_t seq_len, size;
    int64_t query_stride, key_stride, value_stride; /* of rows, and of their gradients */
    int64_t output_stride;                          /* of rows of the output and its gradient */
    float scale;                                    /* of scores: 1 / sqrt(size) */
    const void *query, *key, *value;
    float *log_sums; /* of each row's exponentials, instead of saved probabilities */
    int64_t sums_stride;
};

/* Outputs of backward: all of them in f32. In 16 bits it may be the query's alone, with key and
 * value NULL, or those of some rows of keys without the query's. Bits do not depend on it. */
struct weft_head_gradients {
    void *query, *key, *value;
    bool adds; /* to key and value, which another head of queries has written */

    /* 16 bits: sums of both gradients, [2, end - first, size], for rows of keys from `first` up to
     * `end`, which are whole tiles. `adds` is of the sums. The last head of queries rounds them. */
    float *sums;
    int64_t first, end;
    bool ends;
};

/* Requirements of a head's kernels: seq_len and size are multiples of the side. */
enum { WEFT_HEAD_SIDE = 64, WEFT_HEAD_MOST_SIZE = 128 };

/* A sum of squares of mantissas, integers below 2^24 with the leading bit. It covers numbers with
 * an exponent field (0 counts as 1) of at least `window`, in units of that field. */
enum { WEFT_SQUARES_MOST = 512 };
struct weft_squares {
    uint64_t low, high; /* the sum is low + 2^24 high */
    int32_t window;     /* at least 1; the largest number's field is below window + 16 */
    bool any_below;     /* below the window and not 0 */
};

struct weft_kernels {
    const char *level; /* "plain", "avx2", "avx512" */
    const struct weft_layer_kernels *layers[WEFT_DTYPE_COUNT];

    /* Convert between fp32 and a dtype; f32 is copied. */
    void (*widen)(enum weft_dtype dtype, int64_t n, const void *x, float *y);
    void (*narrow)(enum weft_dtype dtype, int64_t n, const float *x, void *y);

    /* Numbers first, first + 1, ... of a law. */
    void (*normal)(const struct weft_normal *law, int64_t first, int64_t n, float *x);

    /* An update of elements, with the tensor's decay; moments that are not kept are NULL. NULL for
     * optimizers that agree on sums. */
    void (*update[WEFT_OPTIMIZER_COUNT])(const struct weft_optimizer *optimizer, float decay,
                                         int64_t n, float *parameters, const float *gradients,
                                         float *moment1, float *moment2);
    /* AdamW's parts for LAMB: the moments, and the resulting steps without the rate. */
    void (*adam_moments)(const struct weft_adamw *adamw, int64_t n, const float *gradients,
                         float *moment1, float *moment2);
    void (*adam_steps)(const struct weft_adamw *adamw, int64_t n, const float *parameters,
                       const float *moment1, const float *moment2, float *steps);

    /* Adds the squares of at most WEFT_SQUARES_MOST numbers, finite or not. */
    void (*add_squares)(int64_t n, const float *x, struct weft_squares *squares);

    /* y[j][i] = x[i][j] for all of x [rows, columns]. NULL at levels that cannot do it at the speed
     * of memory. */
    void (*turn)(int64_t rows, int64_t columns, const float *x, int64_t x_stride, float *y,
                 int64_t y_stride);

    /* A whole head: writes the output, and probabilities [seq_len, seq_len] in an order of the
     * kernels' own for backward. Without probabilities it writes log_sums, and backward computes
     * each tile again. Both NULL at levels that are no faster than single products. Probabilities
     * are for f32, and for levels that save them. */
    void (*attend)(const struct weft_head *head, float *probabilities, void *output);
    void (*attend_backward)(const struct weft_head *head, const float *probabilities,
                            const void *output, const void *d_output,
                            struct weft_head_gradients to);
    bool attend_saves;

    /* e^x, for tests: within 3e-7 of the true value, relative; 0 below -86.6, inf above 88.3. */
    void (*exponential)(int64_t n, const float *x, float *y);
};

#define WEFT_NORM_EPSILON 1e-5f

/* Level `index` of this build and CPU, from plain up; NULL past the last. */
const struct weft_kernels *weft_kernels_level(int32_t index);
/* The highest of them, or the one that WEFT_KERNELS names, if there is such a level. */
const struct weft_kernels *weft_kernels_best(void);
/* The name in WEFT_KERNELS; NULL if it is unset or empty. */
const char *weft_kernels_named(void);

#endif
