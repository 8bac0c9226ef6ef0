/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes of rows that kernels take, and types of functions that the table has twice. */
#ifndef WEFT_RUNTIME_NN_CPU_KERNELS_SHAPES_H
#define WEFT_RUNTIME_NN_CPU_KERNELS_SHAPES_H

#include <stdbool.h>
#include <stdint.h>

/* Parts of rows that are normalised alone: `parts` adjacent ones of `width` in every row. */
struct weft_parts {
    int64_t rows, parts, width;
    int64_t x_stride; /* of rows of x, its gradient and the residual */
    int64_t y_stride; /* of rows of y and its gradient */
    float shift;      /* added to each weight, unless 0 */
};

/* Rows of samples with `heads` adjacent heads of `size` columns each. Row i of a sample is position
 * `first` + i. */
struct weft_rope_rows {
    int64_t samples, seq_len, first, heads, size, stride;
    const float *frequencies; /* [size / 2], of layers/shared/rope.h */
    bool back;
};

typedef void weft_gate_fn(int64_t rows, int64_t width, int64_t stride, const void *gate,
                          const void *up, void *y);
typedef void weft_gate_backward_fn(int64_t rows, int64_t width, int64_t stride, const void *gate,
                                   const void *up, int64_t dy_stride, const void *dy, void *d_gate,
                                   void *d_up);

#endif
