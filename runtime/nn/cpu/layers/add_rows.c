/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "runtime/nn/cpu/layers/walk.h"

enum { TABLE, FIRST };

static int64_t position_of(const struct weft_nn_call *call, int64_t row)
{
    return row % call->batch.seq_len + (call->cache != NULL ? call->cache->before : 0);
}

/* The row of the table that row `row` takes. */
static int64_t table_row_of(const struct weft_nn_walked *at, int64_t row)
{
    return at->step->sizes.positions > 0 ? position_of(at->call, row) : 0;
}

/* True if the learned vector takes the place of the row. */
static bool is_first(const struct weft_nn_walked *at, int64_t row)
{
    return at->step->n_tensors > FIRST && position_of(at->call, row) == 0;
}

enum weft_status weft_nn_cpu_add_rows_forward(const struct weft_nn_walked *at,
                                              struct weft_error *err)
{
    (void)err;
    const enum weft_dtype dtype = at->call->batch.compute;
    const int64_t width = at->in[0].columns;
    const void *table = weft_nn_step_weight(at, TABLE), *first = weft_nn_step_weight(at, FIRST);
    for (int64_t i = 0; i < at->in[0].rows; i++) {
        const void *x = weft_nn_at(dtype, at->in[0].data, i * width);
        weft_nn_step_kernels(at)->add(width, is_first(at, i) ? first : x,
                                      weft_nn_at(dtype, table, table_row_of(at, i) * width),
                                      weft_nn_to(dtype, at->out[0].data, i * width));
    }
    return WEFT_OK;
}

/* Adds rows of dy to the gradient of a tensor, in order, widened in pieces on the stack. */
static void add_rows_to(const struct weft_nn_walked *at, int32_t index)
{
    enum { PIECE = 1024 };
    const enum weft_dtype from = at->call->batch.compute, to = at->call->gradient_dtype;
    const int32_t tensor = weft_nn_step_tensor(at, index);
    const struct weft_layer_tensor *of = &at->walk->tensors[tensor];
    const int64_t width = at->in[0].columns, rows = of->columns > 0 ? of->rows : 1;
    void *gradient = at->call->gradients[tensor];
    float wide[PIECE];
    if (gradient == NULL) return;
    if (!at->call->accumulate[tensor])
        memset(gradient, 0, (size_t)(rows * width * weft_dtype_bytes(to)));
    for (int64_t i = 0; i < at->in[0].rows; i++) {
        if (index == FIRST && !is_first(at, i)) continue;
        const int64_t row = index == TABLE ? table_row_of(at, i) : 0;
        for (int64_t at_column = 0; at_column < width; at_column += PIECE) {
            const int64_t n = width - at_column < PIECE ? width - at_column : PIECE;
            at->cpu->kernels->widen(from, n,
                                    weft_nn_at(from, at->d_out.data, i * width + at_column), wide);
            at->cpu->kernels->layers[to]->add_to(n, 1, wide, true,
                                                 weft_nn_to(to, gradient, row * width + at_column));
        }
    }
}

enum weft_status weft_nn_cpu_add_rows_backward(const struct weft_nn_walked *at,
                                               struct weft_error *err)
{
    (void)err;
    const enum weft_dtype dtype = at->call->batch.compute;
    const size_t bytes = (size_t)(at->in[0].columns * weft_dtype_bytes(dtype));
    for (int32_t index = TABLE; index < at->step->n_tensors; index++)
        add_rows_to(at, index);
    for (int64_t i = 0; i < at->in[0].rows && at->d_in[0].data != NULL; i++) {
        char *to = weft_nn_to(dtype, at->d_in[0].data, i * at->in[0].columns);
        if (is_first(at, i))
            memset(to, 0, bytes);
        else
            memcpy(to, weft_nn_at(dtype, at->d_out.data, i * at->in[0].columns), bytes);
    }
    return WEFT_OK;
}
