/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of tables: rows of dy are added to the rows of a table that they took, in order, in
 * fp32, and rounded once to the gradient's dtype. */
#ifndef WEFT_RUNTIME_NN_CPU_LAYERS_TABLE_H
#define WEFT_RUNTIME_NN_CPU_LAYERS_TABLE_H

#include "runtime/nn/cpu/layers/walk.h"

/* Rows of dy that took one row of a table: `first`, and then every `step`-th row, or, if tokens is
 * not NULL, rows with the token of `first`. */
struct weft_nn_taken {
    const int32_t *tokens;
    int64_t first, step;
};

/* Adds `scale` times the taken ones of `rows` rows of dy, of the compute dtype, to a row of the
 * gradient: to its value if `adds`, otherwise to 0. */
void weft_nn_cpu_table_row(const struct weft_nn_walked *at, const struct weft_nn_taken *taken,
                           int64_t rows, int64_t width, float scale, bool adds, void *gradient);

#endif
