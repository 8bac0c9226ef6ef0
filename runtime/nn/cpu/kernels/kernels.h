/* Kernels are the loops over elements and rows that are not products. Their sources are compiled
 * for several instruction-set levels, those over elements of layers also for every dtype; const
 * tables name them, and the best level that the CPU has is chosen when the program runs. All levels
 * give the same bits: no contraction, no reassociation; a sum runs in 16 lanes, element i in lane i
 * mod 16, added up as a fixed tree. So bits depend neither on the level, nor on alignment, nor on
 * how elements are cut up. Whole heads of attention alone are of one level, and like products have
 * bits of their own.
 *
 * Matrices are row-major and dense unless a stride is given. Where it is not said, buffers do not
 * overlap. `sums` is overwritten; kernels allocate nothing. */
#ifndef WEFT_RUNTIME_NN_CPU_KERNELS_KERNELS_H
#define WEFT_RUNTIME_NN_CPU_KERNELS_KERNELS_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/nn/optimizer.h"

/* Loops over elements of one dtype, which stand as void *; statistics and sums are fp32. What is
 * read is widened, what is written rounded once. */
struct weft_layer_kernels {
    /* y = x + bias in every row. x, or bias, may be NULL: then 0. x may be y. */
    void (*fill)(int64_t rows, int64_t width, const void *x, const void *bias, void *y);
    /* sums[j] = sum over rows of x[i][j], in row order. */
    void (*column_sums)(int64_t rows, int64_t width, const void *x, float *sums);
    /* y = alpha x, or y += alpha x. */
    void (*add_to)(int64_t n, float alpha, const float *x, bool accumulate, void *y);

    /* y = (x - mean) rstd weight + bias, row by row, variance + WEFT_NORM_EPSILON. */
    void (*layer_norm)(int64_t rows, int64_t width, const void *x, const void *weight,
                       const void *bias, void *y, float *mean, float *rstd);
    /* dx = residual + gradient by x (either may be NULL: dx not wanted, residual 0); sums [2,
     * width]: gradients of weight and bias. */
    void (*layer_norm_backward)(int64_t rows, int64_t width, const void *x, const void *weight,
                                const float *mean, const float *rstd, const void *dy,
                                const void *residual, void *dx, float *sums);

    /* y = gelu(x) = 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))). */
    void (*gelu)(int64_t n, const void *x, void *y);
    /* x += bias in every row, y = gelu(x). */
    void (*bias_gelu)(int64_t rows, int64_t width, const void *bias, void *x, void *y);
    /* dx = dy gelu'(x); dx may be dy. sums [width] of dx's columns, unless NULL. */
    void (*gelu_backward)(int64_t rows, int64_t width, const void *x, const void *dy, void *dx,
                          float *sums);
    void (*relu)(int64_t n, const void *x, void *y);
    /* dx = y > 0 ? dy : 0, from relu's output y. */
    void (*relu_backward)(int64_t n, const void *y, const void *dy, void *dx);

    /* In place, rows `first`, first + 1, ... of a causal score matrix, `width` columns of each:
     * row i becomes softmax over its columns 0..i, and 0 beyond. */
    void (*causal_softmax)(int64_t rows, int64_t first, int64_t width, int64_t stride, void *x);
    /* d = p (d - sum of d p in the row), in place. */
    void (*softmax_backward)(int64_t rows, int64_t width, int64_t stride, const void *p, void *d);
    /* In place: logits become the gradient of -log softmax(logits)[target] by themselves. Returns
     * the sum of the rows' losses in row order. Targets must be in range, or WEFT_NO_TARGET: that
     * row is left as it is. */
    double (*cross_entropy)(int64_t rows, int64_t width, const int32_t *targets, void *logits);
};

/* A head of one sample's causal attention: where its rows begin, and how they are apart. */
struct weft_head {
    int64_t seq_len, size;
    int64_t stride;        /* of rows of query, key, value and their gradients */
    int64_t output_stride; /* of rows of the output and its gradient */
    float scale;           /* of scores: 1 / sqrt(size) */
    const float *query, *key, *value;
};

/* Written. */
struct weft_head_gradients {
    float *query, *key, *value;
};

/* What kernels of a head take: seq_len and size are multiples of the side. */
enum { WEFT_HEAD_SIDE = 64, WEFT_HEAD_MOST_SIZE = 128 };

/* Squares of mantissas, integers below 2^24 with the leading bit written out, added up in units of
 * the exponent field `window`: those of numbers whose field (0 counts as 1) is not below it. */
enum { WEFT_SQUARES_MOST = 512 };
struct weft_squares {
    uint64_t low, high; /* the sum is low + 2^24 high */
    int32_t window;     /* from 1 on; the greatest number lies within the 16 from there */
    bool any_below;     /* that is not 0 */
};

struct weft_kernels {
    const char *level; /* "plain", "avx2", "avx512" */
    const struct weft_layer_kernels *layers[WEFT_DTYPE_COUNT];

    /* Between fp32 and a dtype; in f32 a copy. */
    void (*widen)(enum weft_dtype dtype, int64_t n, const void *x, float *y);
    void (*narrow)(enum weft_dtype dtype, int64_t n, const float *x, void *y);

    void (*adamw)(const struct weft_adamw *adamw, int64_t n, float *parameters,
                  const float *gradients, float *moment1, float *moment2);
    /* LAMB's parts of it: the moments, and the steps that they make, without the rate. */
    void (*adam_moments)(const struct weft_adamw *adamw, int64_t n, const float *gradients,
                         float *moment1, float *moment2);
    void (*adam_steps)(const struct weft_adamw *adamw, int64_t n, const float *parameters,
                       const float *moment1, const float *moment2, float *steps);
    /* momentum NULL: none is kept, and the setting is not read. */
    void (*sgd)(const struct weft_sgd *sgd, int64_t n, float *parameters, const float *gradients,
                float *momentum);

    /* Adds the squares of at most WEFT_SQUARES_MOST numbers, finite or not. */
    void (*add_squares)(int64_t n, const float *x, struct weft_squares *squares);

    /* y[j][i] = x[i][j] for all of x [rows, columns]. NULL at a level that has no instructions to
     * do it as fast as memory goes. */
    void (*turn)(int64_t rows, int64_t columns, const float *x, int64_t x_stride, float *y,
                 int64_t y_stride);

    /* A whole head in f32: the output, and probabilities [seq_len, seq_len] in an order of the
     * kernels' own, which backward reads. Both NULL at a level that has no instructions to do it
     * faster than products one by one. */
    void (*attend)(const struct weft_head *head, float *probabilities, float *output);
    void (*attend_backward)(const struct weft_head *head, const float *probabilities,
                            const float *output, const float *d_output,
                            struct weft_head_gradients to);

    /* e^x, for tests: within 3e-7 of the true value, relative; 0 below -86.6, inf above 88.3. */
    void (*exponential)(int64_t n, const float *x, float *y);
};

#define WEFT_NORM_EPSILON 1e-5f

/* Every level in this build that the CPU has, from the plain one up; NULL when `index` is past the
 * last. */
const struct weft_kernels *weft_kernels_level(int32_t index);
/* The highest of them. */
const struct weft_kernels *weft_kernels_best(void);

#endif
