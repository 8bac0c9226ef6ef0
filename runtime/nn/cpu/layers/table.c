/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/nn/cpu/layers/table.h"

#include <string.h>

static int64_t next_taken(const struct weft_nn_taken *taken, int64_t row, int64_t rows)
{
    if (taken->tokens == NULL) return row + taken->step;
    for (row++; row < rows && taken->tokens[row] != taken->tokens[taken->first];)
        row++;
    return row;
}

void weft_nn_cpu_table_row(const struct weft_nn_walked *at, const struct weft_nn_taken *taken,
                           int64_t rows, int64_t width, float scale, bool adds, void *gradient)
{
    enum { PIECE = 1024 };
    const struct weft_kernels *kernels = at->cpu->kernels;
    const enum weft_dtype from = at->call->batch.compute, to = at->call->gradient_dtype;
    float wide[PIECE], sums[PIECE];
    for (int64_t column = 0; column < width; column += PIECE) {
        const int64_t n = width - column < PIECE ? width - column : PIECE;
        void *out = weft_nn_to(to, gradient, column);
        float *sum = to == WEFT_F32 ? out : sums;
        if (!adds)
            memset(sum, 0, (size_t)n * sizeof *sum);
        else if (to != WEFT_F32)
            kernels->widen(to, n, out, sum);
        for (int64_t row = taken->first; row < rows; row = next_taken(taken, row, rows)) {
            const void *piece = weft_nn_at(from, at->d_out.data, row * width + column);
            if (from != WEFT_F32) kernels->widen(from, n, piece, wide);
            kernels->layers[WEFT_F32]->add_to(n, scale, from == WEFT_F32 ? piece : wide, true, sum);
        }
        if (to != WEFT_F32) kernels->narrow(to, n, sum, out);
    }
}
